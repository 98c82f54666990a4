"""RMSNorm backward on the host side. `T`, the number of row tiles, follows from the shape."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.description import ArrayArgument, ConstantArgument, Kernel, Values
from harness.kernels.tiles import cdiv, row_tile_grid, whole_row_tiles


def _tiles(values: Values) -> Values:
    """Whole rows, and how many tiles of them there are."""
    tiles = dict(whole_row_tiles(values))
    tile_m = values["tile_m"] if values.get("tile_m") is not None else tiles["tile_m"]
    return {**tiles, "T": max(1, cdiv(values["M"], tile_m))}


KERNELS = (
    Kernel(
        name="rmsnorm_backward.tiled",
        path=Path(__file__).with_name("device.py"),
        canonical="kernels/rmsnorm_backward/device.py",
        function="tiled",
        dims=("M", "N"),
        dtypes=("bfloat16", "float16", "float32"),
        arguments=(
            ArrayArgument("x", ("M", "N"), follows_layout=True),
            ArrayArgument("w", ("N",)),
            ArrayArgument("rstd", ("M",), dtype="float32"),
            ArrayArgument("dy", ("M", "N")),
            ArrayArgument("dx", ("M", "N"), role="out"),
            ArrayArgument("dw", ("T", "N"), dtype="float32", role="out"),
            ConstantArgument("TILE_M", "tile_m"),
            ConstantArgument("TILE_N", "tile_n"),
            ConstantArgument("OFFSET", "offset"),
            ConstantArgument("ALLOW_TMA", "allow_tma"),
            ConstantArgument("LATENCY", "latency"),
        ),
        knobs={"tile_m": None, "tile_n": None, "offset": 0.0, "allow_tma": True, "latency": 3},
        heuristics=_tiles,
        grid=row_tile_grid,
        reference="rmsnorm_backward",
        formulas=(
            ("g", "dy * (OFFSET + w)"),
            ("r", "rstd[:, None]"),
            ("dx", "r * (g - x * r * r * mean(g * x, axis=1, keepdims=True))"),
        ),
    ),
)
