"""RMSNorm on the host side: arguments, tile heuristics and grids as users' launch code has them."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.arrays import ITEMSIZE
from harness.kernels.description import ArrayArgument, ConstantArgument, Kernel, Values

_EIGHT_BIT_FLOATS = {"float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"}

_ARRAYS = (
    ArrayArgument("x", ("M", "N"), follows_layout=True),
    ArrayArgument("w", ("N",), dtype_for=_EIGHT_BIT_FLOATS),
    ArrayArgument("y", ("M", "N"), role="out", dtype_for=_EIGHT_BIT_FLOATS),
    ArrayArgument("rstd", ("M",), dtype="float32", role="out"),
)
_TILES = (ConstantArgument("TILE_M", "tile_m"), ConstantArgument("TILE_N", "tile_n"))
_SCALING = (ConstantArgument("EPS", "eps"), ConstantArgument("OFFSET", "offset"))
_LOAD = (ConstantArgument("ALLOW_TMA", "allow_tma"), ConstantArgument("LATENCY", "latency"))
_SETTINGS = {"eps": 1e-6, "offset": 0.0}


def next_power_of_two(n: int) -> int:
    """Smallest power of two that is at least n (1 for n < 2)."""
    return 1 << max(n - 1, 0).bit_length()


def whole_row_tiles(values: Values) -> Values:
    """One tile spans a row; 16 rows a tile up to 1024 columns, 4 above, 2 from 16384."""
    tile_n = values["tile_n"] if values.get("tile_n") is not None else next_power_of_two(values["N"])
    return {"tile_n": tile_n, "tile_m": 16 if tile_n <= 1024 else 2 if tile_n >= 16384 else 4}


def four_kilobyte_tiles(values: Values) -> Values:
    """A tile holds at most 4096 bytes of a row."""
    return {"tile_n": min(4096 // ITEMSIZE[values["dtype"]], next_power_of_two(values["N"]))}


def persistent_grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    """No more blocks than SMs; one even without rows, since its loop then runs zero times."""
    tiles = -(-values["M"] // values["tile_m"]) * -(-values["N"] // values["tile_n"])
    return (max(1, min(sm_count, tiles)), 1, 1)


def row_grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    """A block per row; one even without rows, since gathers and scatters mask what lies outside."""
    return (max(1, values["M"]), 1, 1)


def row_tile_grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    """A block per tile of rows: none without rows, since a tile load or store that lies entirely
    outside its array is undefined (cuda.tile's documentation of `ct.load` and `ct.store`)."""
    return (-(-values["M"] // values["tile_m"]), 1, 1)


def _kernel(function: str, **settings: object) -> Kernel:
    return Kernel(
        name=f"rmsnorm.{function}",
        path=Path(__file__).with_name("device.py"),
        canonical="kernels/rmsnorm/device.py",
        function=function,
        dims=("M", "N"),
        reference="rmsnorm",
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
