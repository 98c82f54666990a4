"""A matrix product whose left rows are picked by an index array, and scattered back to them."""

import cuda.tile as ct


@ct.kernel(opt_level=3)
def indirect(left, right, out, index, M: ct.Constant[int], N: ct.Constant[int], K: ct.Constant[int]):
    block = ct.bid(0)
    row = ct.gather(index, ct.arange(M, dtype=ct.int32))
    total = ct.full((M, N), 0.0, dtype=ct.float32)
    for k in range(ct.cdiv(left.shape[1], K)):
        inner = k * K + ct.arange(K, dtype=ct.int32)
        a = ct.gather(left, (row[:, None], inner[None, :]))
        b = ct.load(right, (k, block), shape=(K, N), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(a, b, total)
    column = block * N + ct.arange(N, dtype=ct.int32)
    ct.scatter(out, (row[:, None], column[None, :]), total.astype(out.dtype))
