"""Zeroes scattered to the rows that an index array picks."""

import cuda.tile as ct


@ct.kernel(opt_level=3)
def clear(out, index, count: int, M: ct.Constant[int], N: ct.Constant[int]):
    row = ct.gather(index, ct.arange(M, dtype=ct.int32))
    column = ct.arange(N, dtype=ct.int32)
    ct.scatter(out, (row[:, None], column[None, :]), ct.full((M, N), 0.0, dtype=ct.float16))
