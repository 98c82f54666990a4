"""RMSNorm device code: y = x * rsqrt(mean(x^2, axis 1) + EPS) * (OFFSET + w).

x, y: (M, N); w: (N,); rstd: (M,) float32, the reciprocal root mean square of each row. OFFSET is 0
as in Llama or 1 as in Gemma 3. Only `cuda.tile` is imported: compilers and reports see this text.
"""

import cuda.tile as ct


@ct.kernel
def static_persistent(
    x,
    w,
    y,
    rstd,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    EPS: ct.Constant[float],
    OFFSET: ct.Constant[float],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """As many blocks as SMs stride over tiles of rows; a tile spans a whole row, w is loaded once."""
    columns = x.shape[1]
    w_tile = ct.load(w, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    scale = (OFFSET + w_tile.astype(ct.float32)).reshape((1, TILE_N))
    for tile in range(ct.bid(0), ct.cdiv(x.shape[0], TILE_M), ct.num_blocks(0)):
        x_tile = ct.load(
            x,
            index=(tile, 0),
            shape=(TILE_M, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        ).astype(ct.float32)
        mean_square = ct.sum(x_tile * x_tile, axis=1, keepdims=True) / columns
        inverse = ct.rsqrt(mean_square + EPS)
        ct.store(rstd, index=(tile,), tile=inverse.reshape((TILE_M,)), allow_tma=False)
        y_tile = (x_tile * inverse * scale).astype(y.dtype)
        ct.store(y, index=(tile, 0), tile=y_tile, allow_tma=False, latency=3)


@ct.kernel
def multi_wave_reload(
    x,
    w,
    y,
    rstd,
    N: ct.Constant[int],
    TILE_N: ct.Constant[int],
    EPS: ct.Constant[float],
    OFFSET: ct.Constant[float],
    LATENCY: ct.Constant[int],
):
    """One block a row, two passes: gather the row for its sum of squares, gather it again to scale it."""
    row = ct.bid(0)
    lane = ct.arange(TILE_N, dtype=ct.int32)
    squares = ct.full((TILE_N,), 0.0, dtype=ct.float32)
    for step in range(ct.cdiv(N, TILE_N)):
        x_tile = ct.gather(x, (row, step * TILE_N + lane), latency=LATENCY).astype(ct.float32)
        squares += x_tile * x_tile
    inverse = ct.rsqrt(ct.sum(squares, axis=0, keepdims=False) / N + EPS)
    ct.scatter(rstd, row, inverse)
    for step in range(ct.cdiv(N, TILE_N)):
        column = step * TILE_N + lane
        scale = OFFSET + ct.gather(w, column, latency=LATENCY).astype(ct.float32)
        x_tile = ct.gather(x, (row, column), latency=LATENCY).astype(ct.float32)
        ct.scatter(y, (row, column), (x_tile * inverse * scale).astype(y.dtype), latency=LATENCY)


@ct.kernel
def multi_wave_cached(
    x,
    w,
    y,
    rstd,
    N: ct.Constant[int],
    TILE_N: ct.Constant[int],
    EPS: ct.Constant[float],
    OFFSET: ct.Constant[float],
    LATENCY: ct.Constant[int],
):
    """One block a row, one gather: the row stays in registers between the two uses."""
    row = ct.bid(0)
    column = ct.arange(TILE_N, dtype=ct.int32)
    x_tile = ct.gather(x, (row, column), latency=LATENCY).astype(ct.float32)
    inverse = ct.rsqrt(ct.sum(x_tile * x_tile, axis=0, keepdims=False) / N + EPS)
    ct.scatter(rstd, row, inverse)
    scale = OFFSET + ct.gather(w, column, latency=LATENCY).astype(ct.float32)
    ct.scatter(y, (row, column), (x_tile * inverse * scale).astype(y.dtype), latency=LATENCY)


@ct.kernel
def tiled(
    x,
    w,
    y,
    rstd,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    EPS: ct.Constant[float],
    OFFSET: ct.Constant[float],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """One block a tile of rows, two passes of tile loads over the columns."""
    block = ct.bid(0)
    columns = x.shape[1]
    squares = ct.full((TILE_M, TILE_N), 0.0, dtype=ct.float32)
    for step in range(ct.cdiv(columns, TILE_N)):
        x_tile = ct.load(
            x,
            index=(block, step),
            shape=(TILE_M, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        ).astype(ct.float32)
        squares += x_tile * x_tile
    inverse = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / columns + EPS)
    ct.store(rstd, index=(block,), tile=inverse.reshape((TILE_M,)), allow_tma=False)
    for step in range(ct.cdiv(columns, TILE_N)):
        w_tile = ct.load(w, index=(step,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
        scale = (OFFSET + w_tile.astype(ct.float32)).reshape((1, TILE_N))
        x_tile = ct.load(
            x,
            index=(block, step),
            shape=(TILE_M, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        ).astype(ct.float32)
        ct.store(y, index=(block, step), tile=(x_tile * inverse * scale).astype(y.dtype), allow_tma=False)
