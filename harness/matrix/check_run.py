"""Faults in what a [[case]] says about running a kernel of the reader's own: grid, extents, values.

What a kernel is compiled to assume must be true of the arrays it is then launched with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.kernels.arrays import contiguous
from harness.matrix import check_reference, schema
from harness.matrix.document import Document
from harness.matrix.locate import TomlPath
from harness.matrix.parameters import ArrayParameter, ListParameter, ScalarParameter, TupleParameter
from harness.matrix.problems import Problem, quote

_ALIGNMENT = 256
"""Bytes that the lab aligns every array to."""


def notes(
    document: Document, index: int, table: schema.CaseTable, devices: Sequence[schema.DeviceTable]
) -> Iterator[Problem]:
    """What stands in the way of nothing, but is hardly meant: a device that gets nothing to run, results
    that nobody looks at."""
    here: TomlPath = ("case", index)
    if table.grid is None:
        if devices and table.parameters is not None and _reaches(table, devices):
            text = "has no grid, so it is compiled, but runs on no device; add one, with a shape and a role"
            yield document.problem(here, f"{text} for each array, or leave it so")
        return
    roles = [(p.name, p.role) for p in table.parameters or () if isinstance(p, ArrayParameter)]
    if roles and not any(role for _, role in roles):
        text = 'no array has a role, so each counts as read and written; add role = "in" or role = "out"'
        yield document.problem((*here, "parameters"), text)
    elif not any(role != "in" for _, role in roles):
        text = 'no array is written, so no result is looked at; give one role = "out" or "inout"'
        yield document.problem((*here, "parameters"), text)


def _reaches(table: schema.CaseTable, devices: Sequence[schema.DeviceTable]) -> bool:
    """Whether the case is asked about on the architecture of a device."""
    archs = table.only.arch if table.only is not None else None
    return any(archs is None or device.arch in archs for device in devices)


def settings(document: Document, index: int, table: schema.CaseTable) -> Iterator[Problem]:
    """Everything that stands in the way of a launch."""
    here: TomlPath = ("case", index)
    if table.grid is not None and len(table.grid) > 3:
        yield document.problem((*here, "grid"), f"has {len(table.grid)} numbers; write one to three")
    if table.grid is not None and table.calling_convention not in (None, ("cutile_python_v1",)):
        yield document.problem(
            (*here, "grid"), "only cutile_python_v1 can be launched; remove it, or the calling convention"
        )
    yield from check_reference.reference(document, here, table)
    for number, parameter in enumerate(table.parameters or ()):
        at = (*here, "parameters", number)
        match parameter:
            case ArrayParameter():
                yield from _array(document, at, parameter, table.grid is not None)
            case ScalarParameter() if table.grid is not None and parameter.value is None:
                yield document.problem(
                    at, "is missing, and the kernel is to run; add it, for example value = 1", 'key "value"'
                )
            case ListParameter() | TupleParameter() if table.grid is not None:
                text = f"lists and tuples such as {quote(parameter.name)} cannot be launched; remove the key"
                yield document.problem((*here, "grid"), text)


def _array(document: Document, at: TomlPath, array: ArrayParameter, runs: bool) -> Iterator[Problem]:
    if array.shape is None:
        if runs:
            example = ", ".join(["256"] * array.rank)
            text = f"is missing, and the kernel is to run; add it, for example shape = [{example}]"
            yield document.problem(at, text, 'key "shape"')
        return
    if len(array.shape) != array.rank:
        text = f"has {len(array.shape)} extents for rank {array.rank}; write one a dimension"
        yield document.problem((*at, "shape"), text)
        return
    strides = contiguous(array.shape)
    for key, actual in (("shape_divisible_by", array.shape), ("stride_divisible_by", strides)):
        for divisor, value in zip(_spread(getattr(array, key), array.rank), actual, strict=True):
            if divisor is not None and value % divisor:
                yield document.problem((*at, key), f"{divisor} does not divide {value}; correct one of them")
    for key, actual in (("shape_constant", array.shape), ("stride_constant", strides)):
        for constant, value in zip(_spread(getattr(array, key), array.rank), actual, strict=True):
            if constant is not None and value != constant:
                yield document.problem((*at, key), f"{constant} is not the {value} of its shape; correct it")
    if runs and _ALIGNMENT % array.base_divisible_by:
        text = f"arrays are launched on multiples of {_ALIGNMENT} bytes; write a divisor of that"
        yield document.problem((*at, "base_divisible_by"), text)


def _spread(given: tuple[int | None, ...] | None, rank: int) -> tuple[int | None, ...]:
    """One for all, or one a dimension; a wrong number of them is told elsewhere."""
    if given is None or len(given) not in (1, rank):
        return (None,) * rank
    return given * rank if len(given) == 1 else given
