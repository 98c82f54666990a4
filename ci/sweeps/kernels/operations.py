"""One operation a kernel, over element types: the quickest way to a compiler's rarely trodden paths."""

import cuda.tile as ct


@ct.kernel
def padding(a, b, KIND: ct.Constant[int]):
    """Copy with each kind of padding in turn."""
    mode = (
        ct.PaddingMode.ZERO
        if KIND == 0
        else ct.PaddingMode.NEG_ZERO
        if KIND == 1
        else ct.PaddingMode.NAN
        if KIND == 2
        else ct.PaddingMode.POS_INF
        if KIND == 3
        else ct.PaddingMode.NEG_INF
    )
    ct.store(b, (0, 0), ct.load(a, (0, 0), shape=(4, 32), padding_mode=mode))


@ct.kernel
def cumulative(a, b, AXIS: ct.Constant[int], REVERSE: ct.Constant[bool]):
    ct.store(b, (0, 0), ct.cumsum(ct.load(a, (0, 0), shape=(16, 32)), axis=AXIS, reverse=REVERSE))


@ct.kernel
def product(a, b, AXIS: ct.Constant[int]):
    t = ct.cumprod(ct.load(a, (0, 0), shape=(16, 32)), axis=AXIS)
    ct.store(b, (0, 0), t)


@ct.kernel
def where_largest(a, b, AXIS: ct.Constant[int]):
    at = ct.argmax(ct.load(a, (0, 0), shape=(16, 32)), axis=AXIS, keepdims=True)
    ct.store(b, (0, 0), ct.broadcast_to(at, (16, 32)).astype(b.dtype))


@ct.kernel
def extremes(a, b, AXIS: ct.Constant[int]):
    t = ct.load(a, (0, 0), shape=(16, 32))
    span = ct.max(t, axis=AXIS, keepdims=True) - ct.min(t, axis=AXIS, keepdims=True)
    ct.store(b, (0, 0), ct.broadcast_to(span, (16, 32)))


@ct.kernel
def multiply(a, b, c, M: ct.Constant[int], N: ct.Constant[int], K: ct.Constant[int]):
    left = ct.load(a, (0, 0), shape=(M, K))
    right = ct.load(b, (0, 0), shape=(K, N))
    ct.store(c, (0, 0), ct.mma(left, right, ct.zeros((M, N), dtype=c.dtype)))


@ct.kernel
def turn(a, b):
    t = ct.load(a, (0, 0), shape=(16, 32))
    ct.store(b, (0, 0), ct.permute(t.reshape((4, 4, 32)), (2, 0, 1)).reshape((32, 16)))


@ct.kernel
def join(a, b, AXIS: ct.Constant[int]):
    t = ct.load(a, (0, 0), shape=(16, 16))
    ct.store(b, (0, 0), ct.cat((t, t), AXIS))


@ct.kernel
def cut(a, b):
    t = ct.load(a, (0, 0), shape=(16, 32))
    ct.store(b, (0, 0), ct.extract(t, (1, 1), shape=(8, 16)))


@ct.kernel
def count(a, b):
    i = ct.arange(64, dtype=ct.int32)
    ct.atomic_add(a, i, ct.gather(b, i))


@ct.kernel
def compare_and_swap(a, b):
    i = ct.arange(64, dtype=ct.int32)
    t = ct.gather(b, i)
    ct.scatter(b, i, ct.atomic_cas(a, i, t, t + t))


@ct.kernel
def powers(a, b):
    t = ct.load(a, (0, 0), shape=(16, 32))
    ct.store(b, (0, 0), ct.pow(t, t) + ct.tanh(t) + ct.atan2(t, t))


@ct.kernel
def remainders(a, b):
    t = ct.load(a, (0, 0), shape=(16, 32))
    ct.store(b, (0, 0), ct.mod(t, t) + ct.floordiv(t, t))


@ct.kernel
def casts(a, b):
    ct.store(b, (0, 0), ct.load(a, (0, 0), shape=(16, 32)).astype(b.dtype))


@ct.kernel
def swizzled(a, b):
    """Read rows that a computation on the array names."""
    row = ct.load(a, (0, 0), shape=(1, 32)).astype(ct.int32).reshape((32,))
    t = ct.gather(a, (row[:, None], ct.arange(32, dtype=ct.int32)[None, :]))
    ct.store(b, (0, 0), t)


@ct.kernel
def scattered(a, b):
    """Write to rows and columns that are both ranges."""
    i = ct.arange(16, dtype=ct.int32)
    ct.scatter(b, (i[:, None], i[None, :]), ct.load(a, (0, 0), shape=(16, 16)))


@ct.kernel
def while_loop(a, b):
    """A tile carried through a loop whose end is data."""
    t = ct.load(a, (0, 0), shape=(16, 32))
    left = ct.bid(0)
    while left > 0:
        t = t + t
        left = left // 2
    ct.store(b, (0, 0), t)
