"""Small kernels after reports from the field, one per kind of fault."""

import cuda.tile as ct


@ct.kernel
def add(a, b, out, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, (i,), ct.load(a, (i,), shape=(TILE,)) + ct.load(b, (i,), shape=(TILE,)))


@ct.kernel
def carried_scalar(out, stop: int):
    c = ct.bid(0)
    for i in range(stop):
        if c > i:
            c -= i + 1
    ct.store(out, (0,), c)


@ct.kernel(opt_level=3, num_ctas=2, occupancy=4)
def hinted(a, out, TILE: ct.Constant[int]):
    ct.store(out, (ct.bid(0),), ct.load(a, (ct.bid(0),), shape=(TILE,)))


@ct.kernel
def methods(a, out, TILE: ct.Constant[int]):
    """Methods of a tile are Python inside cuda.tile, so the bytecode names cuda.tile's own file."""
    x = ct.load(a, (ct.bid(0),), shape=(TILE,)).reshape((1, TILE)).astype(ct.float16)
    ct.store(out, (ct.bid(0),), x.reshape((TILE,)).astype(ct.float32))


@ct.kernel
def wrong_type(a, out, TILE: ct.Constant[int]):
    ct.store(out, (0,), ct.load(a, (0,), shape=(TILE,)) + "text")


@ct.kernel
def advanced_index(a, WIDTH: ct.Constant[int]):
    row = ct.arange(1, dtype=ct.int32)
    where = (ct.Slice(0, 1), row, ct.Slice(0, WIDTH))
    t = ct.load_advanced_indexing(a, where).reshape((1, WIDTH))
    ct.store_advanced_indexing(a, where, (t + t).reshape((1, 1, WIDTH)))


def softmax(padding):
    @ct.kernel
    def kernel(a, b, ROWS: ct.Constant[int], WIDTH: ct.Constant[int]):
        for i in range(ct.bid(0), ROWS, ct.num_blocks(0)):
            x = ct.load(a, (i, 0), shape=(1, WIDTH), padding_mode=padding).astype(ct.float32)
            e = ct.exp(x - ct.max(x, axis=-1, keepdims=True))
            ct.store(b, (i, 0), (e / ct.sum(e, axis=-1, keepdims=True)).astype(a.dtype))

    return kernel


negative_infinity = softmax(ct.PaddingMode.NEG_INF)
zero = softmax(ct.PaddingMode.ZERO)
