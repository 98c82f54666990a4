"""Matrix product device code: c = a @ b, accumulated in float32.

a: (M, K); b: (K, N); c: (M, N). Only `cuda.tile` is imported: compilers and reports see this text.
"""

import cuda.tile as ct


@ct.kernel
def tiled(
    a,
    b,
    c,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """One block a tile of c."""
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((TILE_M, TILE_N), 0.0, dtype=ct.float32)
    for step in range(ct.cdiv(a.shape[1], TILE_K)):
        a_tile = ct.load(
            a,
            index=(row, step),
            shape=(TILE_M, TILE_K),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        )
        b_tile = ct.load(
            b,
            index=(step, column),
            shape=(TILE_K, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        )
        total = ct.mma(a_tile, b_tile, total)
    ct.store(c, index=(row, column), tile=total.astype(c.dtype), allow_tma=ALLOW_TMA)


@ct.kernel
def persistent(
    a,
    b,
    c,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    TILE_K: ct.Constant[int],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """As many blocks as SMs stride over the tiles of c, row by row."""
    across = ct.cdiv(c.shape[1], TILE_N)
    tiles = ct.cdiv(c.shape[0], TILE_M) * across
    for tile in range(ct.bid(0), tiles, ct.num_blocks(0)):
        row, column = tile // across, tile % across
        total = ct.full((TILE_M, TILE_N), 0.0, dtype=ct.float32)
        for step in range(ct.cdiv(a.shape[1], TILE_K)):
            a_tile = ct.load(
                a,
                index=(row, step),
                shape=(TILE_M, TILE_K),
                padding_mode=ct.PaddingMode.ZERO,
                latency=LATENCY,
                allow_tma=ALLOW_TMA,
            )
            b_tile = ct.load(
                b,
                index=(step, column),
                shape=(TILE_K, TILE_N),
                padding_mode=ct.PaddingMode.ZERO,
                latency=LATENCY,
                allow_tma=ALLOW_TMA,
            )
            total = ct.mma(a_tile, b_tile, total)
        ct.store(c, index=(row, column), tile=total.astype(c.dtype), allow_tma=ALLOW_TMA)
