"""Tile sizes and grids as users' launch code chooses them, shared by kernels over rows of a matrix."""

from __future__ import annotations

from harness.kernels.arrays import ITEMSIZE
from harness.kernels.description import Values


def cdiv(n: int, divisor: int) -> int:
    """How many tiles of `divisor` cover n."""
    return -(-n // divisor)


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
    """No more blocks than SMs."""
    tiles = cdiv(values["M"], values["tile_m"]) * cdiv(values["N"], values["tile_n"])
    return (min(sm_count, tiles), 1, 1)


def row_grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    """A block per row."""
    return (values["M"], 1, 1)


def row_tile_grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    """A block per tile of rows."""
    return (cdiv(values["M"], values["tile_m"]), 1, 1)
