"""Gathers, scatters and slices taken by an index array."""

import cuda.tile as ct


@ct.kernel
def scale_by_sum(a, WIDTH: ct.Constant[int]):
    """Multiply a row by its own sum, in place."""
    at = (ct.Slice(0, 1), ct.arange(1, dtype=ct.int32), ct.Slice(0, WIDTH))
    row = ct.load_advanced_indexing(a, at).reshape((WIDTH,))
    total = ct.sum(row, axis=0)
    ct.store_advanced_indexing(a, at, (row * total).reshape((1, 1, WIDTH)))


@ct.kernel
def zero_rows(out, rows, n: int, HEIGHT: ct.Constant[int], WIDTH: ct.Constant[int]):
    """Write zeros into the rows that an array names."""
    row = ct.gather(rows, ct.arange(HEIGHT, dtype=ct.int32))
    column = ct.arange(WIDTH, dtype=ct.int32)
    zeros = ct.full((HEIGHT, WIDTH), 0.0, dtype=ct.float16)
    ct.scatter(out, (row[:, None], column[None, :]), zeros)


@ct.kernel
def gathered_product(
    a, b, c, rows, HEIGHT: ct.Constant[int], WIDTH: ct.Constant[int], DEPTH: ct.Constant[int]
):
    """Matrix product of the rows of `a` that an array names with `b`, into the same rows of `c`."""
    block = ct.bid(0)
    row = ct.gather(rows, ct.arange(HEIGHT, dtype=ct.int32))
    total = ct.full((HEIGHT, WIDTH), 0.0, dtype=ct.float32)
    for step in range(ct.cdiv(a.shape[1], DEPTH)):
        inner = step * DEPTH + ct.arange(DEPTH, dtype=ct.int32)
        left = ct.gather(a, (row[:, None], inner[None, :]))
        right = ct.load(b, (step, block), shape=(DEPTH, WIDTH), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    column = block * WIDTH + ct.arange(WIDTH, dtype=ct.int32)
    ct.scatter(c, (row[:, None], column[None, :]), total.astype(c.dtype))
