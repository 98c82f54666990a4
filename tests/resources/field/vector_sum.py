"""The sum of two vectors, a tile a block."""

import cuda.tile as ct


@ct.kernel
def vector_sum(x, y, total, N: ct.Constant[int]):
    block = ct.bid(0)
    left = ct.load(x, (block,), shape=(N,))
    right = ct.load(y, (block,), shape=(N,))
    ct.store(total, (block,), left + right)
