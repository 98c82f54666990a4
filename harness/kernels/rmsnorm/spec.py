"""RMSNorm on the host side: arguments, tile heuristics and grids."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.description import ArrayArgument, ConstantArgument, Kernel
from harness.kernels.tiles import (
    four_kilobyte_tiles,
    next_power_of_two,
    persistent_grid,
    row_grid,
    row_tile_grid,
    whole_row_tiles,
)

_EIGHT_BIT_FLOATS = {"float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"}

_ARRAYS = (
    ArrayArgument("x", ("M", "N"), follows_layout=True),
    ArrayArgument("w", ("N",), dtype_for=_EIGHT_BIT_FLOATS),
    ArrayArgument("y", ("M", "N"), role="out", dtype_for=_EIGHT_BIT_FLOATS),
    ArrayArgument("rstd", ("M",), dtype="float32", role="out"),
)
_TILES = (ConstantArgument("TILE_M", "tile_m"), ConstantArgument("TILE_N", "tile_n"))
_SCALING = (ConstantArgument("EPS", "eps"), ConstantArgument("OFFSET", "offset"))
_FORMULAS = (
    ("rstd", "1 / sqrt(mean(x * x, axis=1) + EPS)"),
    ("y", "x * rstd[:, None] * (OFFSET + w)"),
)
_LOAD = (ConstantArgument("ALLOW_TMA", "allow_tma"), ConstantArgument("LATENCY", "latency"))
_SETTINGS = {"eps": 1e-6, "offset": 0.0}


def _kernel(function: str, **settings: object) -> Kernel:
    return Kernel(
        name=f"rmsnorm.{function}",
        path=Path(__file__).with_name("device.py"),
        canonical="kernels/rmsnorm/device.py",
        function=function,
        dims=("M", "N"),
        reference="rmsnorm",
        formulas=_FORMULAS,
        rows="M",
        **settings,  # type: ignore[arg-type]
    )


KERNELS = (
    _kernel(
        "static_persistent",
        arguments=(*_ARRAYS, *_TILES, *_SCALING, *_LOAD),
        knobs={"tile_m": None, "tile_n": None, "allow_tma": True, "latency": 10, **_SETTINGS},
        heuristics=whole_row_tiles,
        grid=persistent_grid,
    ),
    _kernel(
        "multi_wave_reload",
        arguments=(*_ARRAYS, ConstantArgument("N", "N"), _TILES[1], *_SCALING, _LOAD[1]),
        knobs={"tile_n": None, "latency": 1, **_SETTINGS},
        heuristics=four_kilobyte_tiles,
        grid=row_grid,
    ),
    _kernel(
        "multi_wave_cached",
        arguments=(*_ARRAYS, ConstantArgument("N", "N"), _TILES[1], *_SCALING, _LOAD[1]),
        knobs={"tile_n": None, "latency": 1, **_SETTINGS},
        heuristics=lambda values: {"tile_n": next_power_of_two(values["N"])},
        grid=row_grid,
    ),
    _kernel(
        "tiled",
        arguments=(*_ARRAYS, *_TILES, *_SCALING, *_LOAD),
        knobs={"tile_m": 1, "tile_n": None, "allow_tma": True, "latency": 1, **_SETTINGS},
        heuristics=four_kilobyte_tiles,
        grid=row_tile_grid,
    ),
)
