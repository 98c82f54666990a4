"""A scalar that a loop changes only on one branch."""

import cuda.tile as ct


@ct.kernel
def countdown(result, limit: int):
    left = ct.bid(0)
    for step in range(limit):
        if left > step:
            left -= step + 1
    ct.store(result, (0,), left)
