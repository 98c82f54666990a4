"""Matrix product on the host side: arguments, tile sizes and grids."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.description import ArrayArgument, ConstantArgument, Kernel, Values
from harness.kernels.tiles import cdiv

_ARGUMENTS = (
    ArrayArgument("a", ("M", "K"), follows_layout=True),
    ArrayArgument("b", ("K", "N")),
    ArrayArgument("c", ("M", "N"), role="out"),
    ConstantArgument("TILE_M", "tile_m"),
    ConstantArgument("TILE_N", "tile_n"),
    ConstantArgument("TILE_K", "tile_k"),
    ConstantArgument("ALLOW_TMA", "allow_tma"),
    ConstantArgument("LATENCY", "latency"),
)


def _tile_grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    """A block per tile of c."""
    return (cdiv(values["M"], values["tile_m"]), cdiv(values["N"], values["tile_n"]), 1)


def _persistent_grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    """No more blocks than SMs."""
    down, across, _ = _tile_grid(values, sm_count)
    return (min(sm_count, down * across), 1, 1)


KERNELS = tuple(
    Kernel(
        name=f"matmul.{function}",
        path=Path(__file__).with_name("device.py"),
        canonical="kernels/matmul/device.py",
        function=function,
        dims=("M", "N", "K"),
        dtypes=("bfloat16", "float16"),
        arguments=_ARGUMENTS,
        knobs={"tile_m": 64, "tile_n": 64, "tile_k": 64, "allow_tma": True, "latency": 3},
        grid=grid,
        reference="matmul",
        formulas=(("c", "a @ b"),),
    )
    for function, grid in (("tiled", _tile_grid), ("persistent", _persistent_grid))
)
