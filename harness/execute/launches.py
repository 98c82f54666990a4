"""From a compiled cell to a `Launch`: arguments in calling-convention order, grid, reference."""

from __future__ import annotations

from pathlib import Path

from harness.execute.protocol import Argument, ArrayValue, Launch, Reference, ScalarValue, Timeouts
from harness.kernels.description import ArrayArgument, Kernel, ScalarArgument
from harness.model import Case, Cell, Inspection


def launch_of(
    cell: Cell,
    kernel: Kernel,
    inspection: Inspection,
    cubin: Path,
    cubin_sha256: str,
    sm_count: int,
    timeouts: Timeouts,
    *,
    timed: bool = False,
) -> Launch:
    """The launch of a cell's case. Raises ValueError for a kernel that says nothing about its grid."""
    if kernel.grid is None:
        raise ValueError(f"kernel {kernel.name} does not say its launch grid")
    case = cell.case
    grid = kernel.grid(kernel.values(case), sm_count)
    return Launch(
        case=cell.id,
        cubin=str(cubin),
        cubin_sha256=cubin_sha256,
        symbol=inspection.symbol,
        arch=cell.arch,
        grid=(max(1, grid[0]), max(1, grid[1]), max(1, grid[2])),
        arguments=arguments_of(case, kernel),
        seed=case.seed,
        reference=_reference(case, kernel),
        timed=timed,
        timeouts=timeouts,
    )


def arguments_of(case: Case, kernel: Kernel) -> tuple[Argument, ...]:
    """Launch arguments of a case. Constants are baked into the cubin and left out."""
    values = kernel.values(case)
    placed = {p.name: p for p in kernel.placements(case)}
    found: list[Argument] = []
    for argument in kernel.arguments:
        if isinstance(argument, ArrayArgument):
            p = placed[argument.name]
            kind = case.values if argument.follows_layout else "normal"
            found.append(ArrayValue(p.name, p.dtype, p.shape, p.strides, p.offset, argument.role, kind))
        elif isinstance(argument, ScalarArgument):
            found.append(ScalarValue(argument.name, argument.dtype, values[argument.of]))
    return tuple(found)


def _reference(case: Case, kernel: Kernel) -> Reference | None:
    """The reference's name, and those settings of the case that are plain numbers."""
    if kernel.reference is None:
        return None
    values = kernel.values(case)
    numbers = {
        k: float(v) for k, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)
    }
    return Reference(kernel.reference, numbers)
