"""Layer norm device code: y = (x - mean) * rsqrt(var + EPS) * w + b, mean and variance over a row.

x, y: (M, N); w, b: (N,); mean, rstd: (M,) float32. Two passes over the row in registers: the variance is
that of the centred row. Only `cuda.tile` is imported: compilers and reports see this text.
"""

import cuda.tile as ct


@ct.kernel
def persistent(
    x,
    w,
    b,
    y,
    mean,
    rstd,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    EPS: ct.Constant[float],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """As many blocks as SMs stride over tiles of whole rows; w and b are loaded once."""
    columns = x.shape[1]
    inside = (ct.arange(TILE_N, dtype=ct.int32) < columns).reshape((1, TILE_N))
    scale = ct.load(w, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    shift = ct.load(b, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    scale = scale.astype(ct.float32).reshape((1, TILE_N))
    shift = shift.astype(ct.float32).reshape((1, TILE_N))
    for tile in range(ct.bid(0), ct.cdiv(x.shape[0], TILE_M), ct.num_blocks(0)):
        x_tile = ct.load(
            x,
            index=(tile, 0),
            shape=(TILE_M, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        ).astype(ct.float32)
        middle = ct.sum(x_tile, axis=1, keepdims=True) / columns
        centred = ct.where(inside, x_tile - middle, 0.0)
        inverse = ct.rsqrt(ct.sum(centred * centred, axis=1, keepdims=True) / columns + EPS)
        ct.store(mean, index=(tile,), tile=middle.reshape((TILE_M,)), allow_tma=False)
        ct.store(rstd, index=(tile,), tile=inverse.reshape((TILE_M,)), allow_tma=False)
        y_tile = (centred * inverse * scale + shift).astype(y.dtype)
        ct.store(y, index=(tile, 0), tile=y_tile, allow_tma=False, latency=3)


@ct.kernel
def tiled(
    x,
    w,
    b,
    y,
    mean,
    rstd,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    EPS: ct.Constant[float],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """One block a tile of rows, three passes of tile loads over the columns."""
    block = ct.bid(0)
    columns = x.shape[1]
    lane = ct.arange(TILE_N, dtype=ct.int32)
    total = ct.full((TILE_M, TILE_N), 0.0, dtype=ct.float32)
    for step in range(ct.cdiv(columns, TILE_N)):
        total += ct.load(
            x,
            index=(block, step),
            shape=(TILE_M, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        ).astype(ct.float32)
    middle = ct.sum(total, axis=1, keepdims=True) / columns
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
        inside = (step * TILE_N + lane < columns).reshape((1, TILE_N))
        centred = ct.where(inside, x_tile - middle, 0.0)
        squares += centred * centred
    inverse = ct.rsqrt(ct.sum(squares, axis=1, keepdims=True) / columns + EPS)
    ct.store(mean, index=(block,), tile=middle.reshape((TILE_M,)), allow_tma=False)
    ct.store(rstd, index=(block,), tile=inverse.reshape((TILE_M,)), allow_tma=False)
    for step in range(ct.cdiv(columns, TILE_N)):
        scale = ct.load(w, index=(step,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
        shift = ct.load(b, index=(step,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
        scale = scale.astype(ct.float32).reshape((1, TILE_N))
        shift = shift.astype(ct.float32).reshape((1, TILE_N))
        x_tile = ct.load(
            x,
            index=(block, step),
            shape=(TILE_M, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        ).astype(ct.float32)
        y_tile = ((x_tile - middle) * inverse * scale + shift).astype(y.dtype)
        ct.store(y, index=(block, step), tile=y_tile, allow_tma=False)
