"""Arithmetic on a tile, an operation a kernel: x and y are (M, N), z is (M, N) unless it says otherwise.

Arrays may be smaller than the tile of 16 x 32: the edge is part of the question.
"""

import cuda.tile as ct

SHAPE = (16, 32)


def tile(x):
    return ct.load(x, (0, 0), shape=SHAPE, padding_mode=ct.PaddingMode.ZERO)


@ct.kernel
def difference(x, y, z):
    ct.store(z, (0, 0), tile(x) - tile(y))


@ct.kernel
def product(x, y, z):
    ct.store(z, (0, 0), tile(x) * tile(y))


@ct.kernel
def quotient(x, y, z):
    ct.store(z, (0, 0), tile(x) / tile(y))


@ct.kernel
def floor_quotient(x, y, z):
    ct.store(z, (0, 0), tile(x) // (tile(y) | 1))


@ct.kernel
def remainder(x, y, z):
    ct.store(z, (0, 0), tile(x) % (tile(y) | 1))


@ct.kernel
def bits(x, y, z):
    ct.store(z, (0, 0), (tile(x) & tile(y)) | (tile(x) ^ 5))


@ct.kernel
def shifts(x, y, z):
    ct.store(z, (0, 0), (tile(x) << 2) + (tile(y) >> 1))


@ct.kernel
def larger(x, y, z):
    ct.store(z, (0, 0), ct.maximum(tile(x), tile(y)))


@ct.kernel
def chosen(x, y, z):
    ct.store(z, (0, 0), ct.where(tile(x) > tile(y), tile(x), -tile(y)))


@ct.kernel
def fused(x, y, z):
    ct.store(z, (0, 0), tile(x) * tile(y) + tile(x) - tile(y) * 3)


@ct.kernel
def row_sum(x, z):
    ct.store(z, (0,), ct.sum(tile(x), axis=1))


@ct.kernel
def column_sum(x, z):
    ct.store(z, (0,), ct.sum(tile(x), axis=0))


@ct.kernel
def row_product(x, z):
    ct.store(z, (0,), ct.prod(tile(x), axis=1))


@ct.kernel
def row_max(x, z):
    t = ct.load(x, (0, 0), shape=SHAPE)
    ct.store(z, (0,), ct.max(t, axis=1))


@ct.kernel
def column_min(x, z):
    t = ct.load(x, (0, 0), shape=SHAPE)
    ct.store(z, (0,), ct.min(t, axis=0))


@ct.kernel
def running_sum(x, z):
    ct.store(z, (0, 0), ct.cumsum(tile(x), axis=1))


@ct.kernel
def running_column_sum(x, z):
    ct.store(z, (0, 0), ct.cumsum(tile(x), axis=0))


@ct.kernel
def turned(x, z):
    ct.store(z, (0, 0), ct.transpose(tile(x)))


@ct.kernel
def folded(x, z):
    ct.store(z, (0, 0), ct.permute(tile(x).reshape((4, 4, 32)), (1, 2, 0)).reshape((32, 16)))


@ct.kernel
def converted(x, z):
    ct.store(z, (0, 0), tile(x).astype(z.dtype))


@ct.kernel
def matrix_product(x, y, z):
    left = ct.load(x, (0, 0), shape=(16, 32), padding_mode=ct.PaddingMode.ZERO)
    right = ct.load(y, (0, 0), shape=(32, 16), padding_mode=ct.PaddingMode.ZERO)
    ct.store(z, (0, 0), ct.mma(left, right, ct.zeros((16, 16), dtype=z.dtype)))
