"""Vector addition on the host side."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.description import ArrayArgument, ConstantArgument, Kernel, Values
from harness.kernels.tiles import cdiv


def _grid(values: Values, sm_count: int) -> tuple[int, int, int]:
    return (cdiv(values["N"], values["tile_n"]), 1, 1)


KERNELS = (
    Kernel(
        name="vector.add",
        path=Path(__file__).with_name("device.py"),
        canonical="kernels/vector/device.py",
        function="add",
        dims=("N",),
        dtypes=("bfloat16", "float16", "float32"),
        arguments=(
            ArrayArgument("a", ("N",), follows_layout=True),
            ArrayArgument("b", ("N",)),
            ArrayArgument("out", ("N",), role="out"),
            ConstantArgument("TILE_N", "tile_n"),
            ConstantArgument("ALLOW_TMA", "allow_tma"),
            ConstantArgument("LATENCY", "latency"),
        ),
        knobs={"tile_n": 1024, "allow_tma": True, "latency": 3},
        grid=_grid,
        reference="vector_add",
        formulas=(("out", "a + b"),),
        rows="N",
    ),
)
