"""Softmax of rows, with what lies outside the row taken for minus infinity or for zero."""

import cuda.tile as ct


@ct.kernel
def padded_with_infinity(a, b, WIDTH: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(a, (row, 0), shape=(1, WIDTH), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
    e = ct.exp(x - ct.max(x, axis=-1, keepdims=True))
    ct.store(b, (row, 0), (e / ct.sum(e, axis=-1, keepdims=True)).astype(a.dtype))


@ct.kernel
def padded_with_zero(a, b, WIDTH: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(a, (row, 0), shape=(1, WIDTH), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    e = ct.exp(x - ct.max(x, axis=-1, keepdims=True))
    ct.store(b, (row, 0), (e / ct.sum(e, axis=-1, keepdims=True)).astype(a.dtype))
