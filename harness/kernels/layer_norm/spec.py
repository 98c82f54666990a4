"""Layer norm on the host side: arguments, tile heuristics and grids."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.description import ArrayArgument, ConstantArgument, Kernel
from harness.kernels.tiles import four_kilobyte_tiles, persistent_grid, row_tile_grid, whole_row_tiles

_ARGUMENTS = (
    ArrayArgument("x", ("M", "N"), follows_layout=True),
    ArrayArgument("w", ("N",)),
    ArrayArgument("b", ("N",)),
    ArrayArgument("y", ("M", "N"), role="out"),
    ArrayArgument("mean", ("M",), dtype="float32", role="out"),
    ArrayArgument("rstd", ("M",), dtype="float32", role="out"),
    ConstantArgument("TILE_M", "tile_m"),
    ConstantArgument("TILE_N", "tile_n"),
    ConstantArgument("EPS", "eps"),
    ConstantArgument("ALLOW_TMA", "allow_tma"),
    ConstantArgument("LATENCY", "latency"),
)


_FORMULAS = (
    ("mean", "mean(x, axis=1)"),
    ("centred", "x - mean[:, None]"),
    ("rstd", "1 / sqrt(mean(centred * centred, axis=1) + EPS)"),
    ("y", "centred * rstd[:, None] * w + b"),
)


def _kernel(function: str, **settings: object) -> Kernel:
    return Kernel(
        name=f"layer_norm.{function}",
        path=Path(__file__).with_name("device.py"),
        canonical="kernels/layer_norm/device.py",
        function=function,
        dims=("M", "N"),
        dtypes=("bfloat16", "float16", "float32"),
        arguments=_ARGUMENTS,
        reference="layer_norm",
        formulas=_FORMULAS,
        rows="M",
        **settings,  # type: ignore[arg-type]
    )


KERNELS = (
    _kernel(
        "persistent",
        knobs={"tile_m": None, "tile_n": None, "eps": 1e-5, "allow_tma": True, "latency": 10},
        heuristics=whole_row_tiles,
        grid=persistent_grid,
    ),
    _kernel(
        "tiled",
        knobs={"tile_m": 1, "tile_n": None, "eps": 1e-5, "allow_tma": True, "latency": 3},
        heuristics=four_kilobyte_tiles,
        grid=row_tile_grid,
    ),
)
