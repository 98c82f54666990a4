"""Does a JIT launch assume of an array what the lab assumes? Asked of cuda.tile itself, on a GPU host.

    python -m harness.compile.signature_check FRONTEND_ROOT

FRONTEND_ROOT is a directory with `cuda/tile` in it. `KernelSignature.from_kernel_args` needs the
driver's library, so the comparison runs only where that is; the arrays need no memory, since only
their description is read. Prints a line per array; exit code 1 if any differs.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.compile.tracer_worker import CanonicalFinder, SignatureBuilder
from harness.kernels.arrays import ITEMSIZE, LAYOUTS, Placement, assume, contiguous, place

_TYPE_STRINGS = {"float32": "<f4", "float16": "<f2", "int32": "<i4", "int8": "|i1", "float64": "<f8"}
_BASE_ADDRESS = 0x7F00_0000_0000

_PROBE = """
import cuda.tile as ct


@ct.kernel
def probe(a):
    pass
"""


class FakeArray:
    """Describes an array by `__cuda_array_interface__`; there is no memory behind it."""

    def __init__(self, placement: Placement) -> None:
        itemsize = ITEMSIZE[placement.dtype]
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": placement.shape,
            "strides": tuple(stride * itemsize for stride in placement.strides),
            "typestr": _TYPE_STRINGS[placement.dtype],
            "data": (_BASE_ADDRESS + placement.offset * itemsize, False),
        }


def samples() -> Iterator[Placement]:
    """Aligned, odd, sliced, transposed, broadcast, single-row and zero-size arrays of ranks 0 to 6."""
    for dtype in _TYPE_STRINGS:
        for shape in ((16384, 512), (7, 1000), (33, 4097), (1, 512), (16, 1), (1, 1), (0, 512), (48, 48)):
            for layout in LAYOUTS:
                yield place("a", dtype, shape, layout)
            yield Placement("a", dtype, shape, contiguous(shape[::-1])[::-1])
            yield Placement("a", dtype, shape, (0, 1))
        for any_shape in ((), (1,), (16,), (17,), (2, 3, 4), (16, 32, 64, 16), (2,) * 5, (2,) * 6):
            yield Placement("a", dtype, any_shape, contiguous(any_shape))


def probe_kernel() -> Any:
    """A kernel with one parameter; the frontend wants a file to read its text from."""
    module: dict[str, Any] = {"__name__": "probe"}
    exec(compile(_PROBE, "probe.py", "exec"), module)
    return module["probe"]


def main() -> int:
    """Compare all samples; the number that differ decides the exit code."""
    root = os.path.realpath(sys.argv[1])
    sys.path.insert(0, root)
    sys.meta_path.insert(0, CanonicalFinder(root))
    version = (Path(root) / "cuda/tile/VERSION").read_text().strip()
    builder = SignatureBuilder(version)
    api = importlib.import_module("cuda.tile.compilation")
    convention = api.CallingConvention.cutile_python_v1()
    kernel, checked, different = probe_kernel(), 0, 0
    for placement in samples():
        theirs = api.KernelSignature.from_kernel_args(kernel, (FakeArray(placement),), convention)
        ours = builder.build([assume(placement).to_json()], "cutile_python_v1")
        checked += 1
        if theirs.parameters != ours.parameters:
            different += 1
            print(f"{placement}\n  cuda.tile: {theirs.parameters[0]}\n  lab:       {ours.parameters[0]}")
    print(f"cuda-tile {version}: {checked} arrays, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
