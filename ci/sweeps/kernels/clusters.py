"""Operations whose data has to cross the blocks of a cluster when `num_ctas` is above 1.

x is (M, N); a block takes a tile of TM whole rows of TN = N columns unless it says otherwise.
"""

import cuda.tile as ct


def rows(x, TM, TN, TMA):
    return ct.load(x, index=(ct.bid(0), 0), shape=(TM, TN), allow_tma=TMA).astype(ct.float32)


@ct.kernel
def row_sum(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    ct.store(y, (ct.bid(0),), ct.sum(rows(x, TM, TN, TMA), axis=1).astype(y.dtype), allow_tma=TMA)


@ct.kernel
def row_max(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    ct.store(y, (ct.bid(0),), ct.max(rows(x, TM, TN, TMA), axis=1).astype(y.dtype), allow_tma=TMA)


@ct.kernel
def column_sum(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    total = ct.sum(rows(x, TM, TN, TMA), axis=0, keepdims=True)
    ct.store(y, (ct.bid(0), 0), total.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def running_row_sum(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = ct.cumsum(rows(x, TM, TN, TMA), axis=1)
    ct.store(y, (ct.bid(0), 0), t.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def running_column_sum(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = ct.cumsum(rows(x, TM, TN, TMA), axis=0)
    ct.store(y, (ct.bid(0), 0), t.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def centred(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = rows(x, TM, TN, TMA)
    t = t - ct.sum(t, axis=1, keepdims=True) / TN
    ct.store(y, (ct.bid(0), 0), t.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def softmax(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = rows(x, TM, TN, TMA)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (ct.bid(0), 0), (e / ct.sum(e, axis=1, keepdims=True)).astype(y.dtype), allow_tma=TMA)


@ct.kernel
def turned(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = ct.transpose(rows(x, TM, TN, TMA))
    ct.store(y, (0, ct.bid(0)), t.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def folded(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = rows(x, TM, TN, TMA).reshape((TN, TM))
    ct.store(y, (ct.bid(0), 0), t.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def product(x, w, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    left = ct.load(x, index=(ct.bid(0), 0), shape=(TM, TN), allow_tma=TMA)
    right = ct.load(w, index=(0, 0), shape=(TN, TN), allow_tma=TMA)
    t = ct.mma(left, right, ct.zeros((TM, TN), dtype=ct.float32))
    ct.store(y, (ct.bid(0), 0), t.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def scaled(x, w, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    scale = ct.load(w, index=(0,), shape=(TN,)).astype(ct.float32).reshape((1, TN))
    ct.store(y, (ct.bid(0), 0), (rows(x, TM, TN, TMA) * scale).astype(y.dtype), allow_tma=TMA)


@ct.kernel
def mirrored(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    row = (ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32)).reshape((TM, 1))
    column = (TN - 1 - ct.arange(TN, dtype=ct.int32)).reshape((1, TN))
    ct.store(y, (ct.bid(0), 0), ct.gather(x, (row, column)), allow_tma=TMA)


@ct.kernel
def persistent_row_sum(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    for i in range(ct.bid(0), ct.cdiv(x.shape[0], TM), ct.num_blocks(0)):
        t = ct.load(x, index=(i, 0), shape=(TM, TN), allow_tma=TMA).astype(ct.float32)
        ct.store(y, (i,), ct.sum(t, axis=1).astype(y.dtype), allow_tma=TMA)


@ct.kernel
def row_sum_by_halves(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    total = ct.zeros((TM, TN // 4), dtype=ct.float32)
    for i in range(4):
        t = ct.load(x, index=(ct.bid(0), i), shape=(TM, TN // 4), allow_tma=TMA)
        total += t.astype(ct.float32)
    ct.store(y, (ct.bid(0),), ct.sum(total, axis=1).astype(y.dtype), allow_tma=TMA)


@ct.kernel
def two_sums(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = rows(x, TM, TN, TMA)
    both = ct.sum(t, axis=1) + ct.sum(t * t, axis=1)
    ct.store(y, (ct.bid(0),), both.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def where_largest(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    ct.store(y, (ct.bid(0),), ct.argmax(rows(x, TM, TN, TMA), axis=1).astype(y.dtype))


@ct.kernel
def column_max(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    top = ct.max(rows(x, TM, TN, TMA), axis=0, keepdims=True)
    ct.store(y, (ct.bid(0), 0), top.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def side_by_side(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = rows(x, TM, TN, TMA)
    ct.store(y, (ct.bid(0), 0), ct.cat((t, -t), 1).astype(y.dtype), allow_tma=TMA)


@ct.kernel
def right_half(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = ct.extract(rows(x, TM, TN, TMA), (0, 1), shape=(TM, TN // 2))
    ct.store(y, (ct.bid(0), 0), t.astype(y.dtype), allow_tma=TMA)


@ct.kernel
def scattered(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    row = (ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32)).reshape((TM, 1))
    column = (TN - 1 - ct.arange(TN, dtype=ct.int32)).reshape((1, TN))
    ct.scatter(y, (row, column), rows(x, TM, TN, TMA).astype(y.dtype))


@ct.kernel
def total_sum(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = rows(x, TM, TN, TMA)
    ct.store(y, (ct.bid(0),), ct.sum(ct.sum(t, axis=1), axis=0).astype(y.dtype).reshape((1,)))


@ct.kernel
def squared_distance(x, y, TM: ct.Constant[int], TN: ct.Constant[int], TMA: ct.Constant[bool]):
    t = rows(x, TM, TN, TMA)
    d = ct.sum((t.reshape((TM, 1, TN)) - ct.max(t, axis=0).reshape((1, 1, TN))) ** 2, axis=2)
    ct.store(y, (ct.bid(0),), d.reshape((TM,)).astype(y.dtype))
