"""From a compiled cell to a `Launch`: arguments in calling-convention order, grid, reference."""

from __future__ import annotations

from pathlib import Path

from harness.execute.protocol import (
    EXPRESSIONS,
    Argument,
    ArrayValue,
    JitCall,
    Launch,
    Reference,
    Relation,
    ScalarValue,
    Timeouts,
)
from harness.expression import parse
from harness.kernels.description import ArrayArgument, ConstantArgument, Kernel, ScalarArgument, Values
from harness.model import Case, Cell, Inspection

RELATED = 8
"""One case in so many, by its digest, is also checked against second ways to its answer."""


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
    case = cell.case
    kernel = kernel.described_by(case)
    if kernel.grid is None:
        raise ValueError(f"kernel {kernel.name} does not say its launch grid")
    jit = _jit(case, kernel) if case.engine == "jit" else None
    related = jit is None and int(case.digest[:8], 16) % RELATED == 0
    return Launch(
        case=cell.id,
        cubin=str(cubin),
        cubin_sha256=cubin_sha256,
        symbol=inspection.symbol,
        arch=cell.arch,
        grid=_grid(kernel, kernel.values(case), sm_count),
        arguments=arguments_of(case, kernel),
        seed=case.seed,
        reference=_reference(case, kernel),
        timed=timed,
        timeouts=timeouts,
        relations=relations_of(case, kernel, sm_count) if related else (),
        jit=jit,
    )


def _jit(case: Case, kernel: Kernel) -> JitCall:
    """Arrays and scalars by name, constants by value, all in the order of the kernel's parameters."""
    values = kernel.values(case)
    return JitCall(
        path=str(kernel.path),
        function=kernel.function,
        hints=tuple(case.hints.to_json().items()),
        parameters=tuple(argument.name for argument in kernel.arguments),
        constants=tuple((a.name, values[a.of]) for a in kernel.arguments if isinstance(a, ConstantArgument)),
    )


def relations_of(case: Case, kernel: Kernel, sm_count: int) -> tuple[Relation, ...]:
    """Second ways to the case's answer. Every launch keeps to what the cubin was compiled to assume:
    strides, alignment, and row counts divisible by 16 where the case's own is."""
    if kernel.rows is None or kernel.grid is None:
        return ()
    values = kernel.values(case)
    rows = values[kernel.rows]
    axes = {
        a.name: a.dims.index(kernel.rows)
        for a in kernel.arguments
        if isinstance(a, ArrayArgument) and kernel.rows in a.dims
    }
    known = any(
        a.of == kernel.rows for a in kernel.arguments if isinstance(a, ScalarArgument | ConstantArgument)
    )
    if rows < 2:
        return ()
    whole = (rows, _grid(kernel, values, sm_count))
    found = [Relation("rows_permuted", axes, (whole,))]
    half = rows // 32 * 16 if rows % 16 == 0 else rows // 2
    if half and not known:
        counts = (half, rows - half)
        parts = tuple((n, _grid(kernel, {**values, kernel.rows: n}, sm_count)) for n in counts)
        found.append(Relation("rows_split", axes, parts))
    if kernel.reference == "rmsnorm":
        found.append(Relation("scaled", axes, (whole,)))
    return tuple(found)


def _grid(kernel: Kernel, values: Values, sm_count: int) -> tuple[int, int, int]:
    assert kernel.grid is not None
    return kernel.grid(values, sm_count)


def nothing_to_launch(case: Case, kernel: Kernel, sm_count: int | None) -> str | None:
    """Why there is no launch for this case, in one sentence; None if there is one, as far as can be told:
    without a GPU, whose `sm_count` would be known, no grid is worked out."""
    kernel = kernel.described_by(case)
    if kernel.grid is None:
        return f"kernel {kernel.name} does not say its launch grid"
    if sm_count is not None and 0 in _grid(kernel, kernel.values(case), sm_count):
        return "its grid is empty: with these sizes there is nothing to launch"
    return None


def arguments_of(case: Case, kernel: Kernel) -> tuple[Argument, ...]:
    """Launch arguments of a case. Constants are baked into the cubin and left out."""
    values = kernel.values(case)
    placed = {p.name: p for p in kernel.placements(case)}
    found: list[Argument] = []
    for argument in kernel.arguments:
        if isinstance(argument, ArrayArgument):
            p = placed[argument.name]
            kind = argument.values or (case.values if argument.follows_layout else "normal")
            found.append(ArrayValue(p.name, p.dtype, p.shape, p.strides, p.offset, argument.role, kind))
        elif isinstance(argument, ScalarArgument):
            found.append(ScalarValue(argument.name, argument.dtype, values[argument.of]))
    return tuple(found)


def _reference(case: Case, kernel: Kernel) -> Reference | None:
    """What the case says its outputs are, or the kernel's own reference, and the numbers that it may read."""
    values = kernel.values(case)
    if case.run is not None and case.run.reference:
        read = {name for _, text in case.run.reference for name in parse(text).names}
        numbers = {k: float(v) for k, v in values.items() if k in read and isinstance(v, int | float)}
        return Reference(EXPRESSIONS, numbers, {}, case.run.reference, dict(case.run.tolerance))
    if kernel.reference is None:
        return None
    numbers = {
        k: float(v) for k, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)
    }
    return Reference(kernel.reference, numbers)
