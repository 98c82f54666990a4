"""Vector device code: out = a + b, all (N,). Only `cuda.tile` is imported."""

import cuda.tile as ct


@ct.kernel
def add(a, b, out, TILE_N: ct.Constant[int], ALLOW_TMA: ct.Constant[bool], LATENCY: ct.Constant[int]):
    """A block per tile; the sum is taken in float32."""
    block = ct.bid(0)
    left = ct.load(
        a,
        index=(block,),
        shape=(TILE_N,),
        padding_mode=ct.PaddingMode.ZERO,
        latency=LATENCY,
        allow_tma=ALLOW_TMA,
    ).astype(ct.float32)
    right = ct.load(
        b,
        index=(block,),
        shape=(TILE_N,),
        padding_mode=ct.PaddingMode.ZERO,
        latency=LATENCY,
        allow_tma=ALLOW_TMA,
    ).astype(ct.float32)
    ct.store(out, index=(block,), tile=(left + right).astype(out.dtype), allow_tma=ALLOW_TMA)
