"""The control kernel's host side: `out` is (N,) float32, N at least 16."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.description import ArrayArgument, Kernel

CONTROL = Kernel(
    name="control",
    path=Path(__file__).with_name("device.py"),
    canonical="kernels/control/device.py",
    function="control",
    dims=("N",),
    arguments=(ArrayArgument("out", ("N",), dtype="float32", role="out"),),
    grid=lambda values, sm_count: (1, 1, 1),
)
