"""Scalars that change from one turn of a loop to the next."""

import cuda.tile as ct


@ct.kernel
def count_down(out, stop: int):
    """Take from the block's number as long as something is left."""
    left = ct.bid(0)
    for turn in range(stop):
        if left > turn:
            left -= turn + 1
    ct.store(out, (0,), left)
