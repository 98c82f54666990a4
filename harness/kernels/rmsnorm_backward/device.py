"""RMSNorm backward device code, for y = x * rstd * (OFFSET + w).

With g = dy * (OFFSET + w): dx = rstd * (g - x * rstd^2 * mean(g * x)). The weight's gradient is the sum of
dy * x * rstd over all rows; each block sums its own rows into its row of dw.
x, dy, dx: (M, N); w: (N,); rstd: (M,) float32; dw: (T, N) float32, a row per tile of TILE_M rows.
Only `cuda.tile` is imported: compilers and reports see this text.
"""

import cuda.tile as ct


@ct.kernel
def tiled(
    x,
    w,
    rstd,
    dy,
    dx,
    dw,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    OFFSET: ct.Constant[float],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """One block a tile of whole rows."""
    block = ct.bid(0)
    columns = x.shape[1]
    w_tile = ct.load(w, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    scale = (OFFSET + w_tile.astype(ct.float32)).reshape((1, TILE_N))
    inverse = ct.load(rstd, index=(block,), shape=(TILE_M,), padding_mode=ct.PaddingMode.ZERO)
    inverse = inverse.reshape((TILE_M, 1))
    x_tile = ct.load(
        x,
        index=(block, 0),
        shape=(TILE_M, TILE_N),
        padding_mode=ct.PaddingMode.ZERO,
        latency=LATENCY,
        allow_tma=ALLOW_TMA,
    ).astype(ct.float32)
    dy_tile = ct.load(
        dy,
        index=(block, 0),
        shape=(TILE_M, TILE_N),
        padding_mode=ct.PaddingMode.ZERO,
        latency=LATENCY,
        allow_tma=ALLOW_TMA,
    ).astype(ct.float32)
    gradient = dy_tile * scale
    mean = ct.sum(gradient * x_tile, axis=1, keepdims=True) / columns
    dx_tile = inverse * (gradient - x_tile * (inverse * inverse * mean))
    ct.store(dx, index=(block, 0), tile=dx_tile.astype(dx.dtype), allow_tma=False)
    partial = ct.sum(dy_tile * x_tile * inverse, axis=0, keepdims=True)
    ct.store(dw, index=(block, 0), tile=partial, allow_tma=False)
