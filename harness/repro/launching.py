"""How a repro's kernel is launched on a GPU: arrays, their makers in torch, grid and arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import prod

from harness.kernels.arrays import Placement, contiguous
from harness.kernels.description import ArrayArgument, Kernel
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Parameter,
    Record,
    RunArgument,
    RunSettings,
    Scalar,
    ScalarParameter,
    TupleParameter,
)
from harness.reduce.reduced import LaunchArray, Reduced

SM_COUNT = 132
"""Multiprocessors of an H200; the grids of persistent kernels depend on it."""

_DEFAULT_EXTENT = 128
"""Side of an array whose shape nobody named; a multiple of every usual assumption."""


@dataclass(frozen=True)
class Launch(Record):
    """`arrays` are the array arguments with their roles (in | out | inout), `scalars` the values of
    scalar ones by parameter name. `guessed`: nobody said how large the arrays are."""

    arrays: tuple[Placement, ...]
    roles: tuple[str, ...]
    scalars: tuple[tuple[str, Scalar], ...]
    grid: tuple[int, int, int]
    guessed: bool = False

    def settings(self, parameters: tuple[Parameter, ...]) -> RunSettings | None:
        """As a matrix tells it, or None for arrays that lie as no matrix can tell, lists and tuples."""
        if any(isinstance(p, ArrayList | TupleParameter) for p in parameters):
            return None
        if any(p.strides != contiguous(p.shape) or p.offset for p in self.arrays):
            return None
        told = {
            p.name: RunArgument(p.name, p.shape, role)
            for p, role in zip(self.arrays, self.roles, strict=True)
        }
        told |= {name: RunArgument(name, value=value) for name, value in self.scalars}
        arguments = tuple(told[p.name] for p in parameters if p.name in told)
        return RunSettings(self.grid, arguments)


def of_case(kernel: Kernel, case: Case) -> Launch:
    """As the kernel's own launch code does it, or the case says, or a guess."""
    if case.run is not None:
        guessed = guess(case.parameters)
        said = {argument.name: argument for argument in case.run.arguments}
        arrays = tuple(
            Placement(p.name, p.dtype, said[p.name].shape, contiguous(said[p.name].shape))
            for p in guessed.arrays
        )
        scalars = tuple((name, said[name].value) for name, _ in guessed.scalars)
        return Launch(arrays, tuple(said[p.name].role for p in arrays), scalars, case.run.grid)
    if kernel.grid is None:
        return guess(case.parameters)
    roles = tuple(a.role for a in kernel.arguments if isinstance(a, ArrayArgument))
    return Launch(kernel.placements(case), roles, (), kernel.grid(kernel.values(case), SM_COUNT))


def of_reduced(reduced: Reduced, kernel: Kernel) -> Launch:
    """As the reduction found it, with guesses for arrays that it knows nothing of."""
    known = {a.name: a for a in reduced.arrays}
    guessed = guess(reduced.parameters)
    arrays = [_place(known[p.name]) if p.name in known else p for p in guessed.arrays]
    roles = tuple(known[p.name].role if p.name in known else "inout" for p in arrays)
    grid = (1, 1, 1)
    described = kernel.described_by(reduced.case)
    if described.grid is not None:
        grid = described.grid(described.values(reduced.case), SM_COUNT)
    return Launch(tuple(arrays), roles, guessed.scalars, grid, guessed=len(known) < len(arrays))


def _place(found: LaunchArray) -> Placement:
    return Placement(found.name, found.dtype, found.shape, found.strides, found.offset)


def guess(parameters: tuple[Parameter, ...]) -> Launch:
    """Arrays that keep every promise of their descriptions, of a small size."""
    arrays = tuple(_lay(array) for parameter in parameters for array in _arrays(parameter))
    scalars: tuple[tuple[str, Scalar], ...] = tuple(
        (p.name, 1) for p in parameters if isinstance(p, ScalarParameter)
    )
    return Launch(arrays, ("inout",) * len(arrays), scalars, (1, 1, 1), guessed=True)


_LISTED = 2
"""Arrays in a list whose length nobody named."""


def _arrays(parameter: Parameter) -> list[Array]:
    """The arrays of a parameter, by the names of the variables that hold them."""
    match parameter:
        case Array():
            return [parameter]
        case ArrayList(name=name, element=element):
            return [replace(element, name=f"{name}_{index}") for index in range(_LISTED)]
        case TupleParameter(name=name, items=items):
            named = enumerate(items)
            return [replace(item, name=f"{name}_{i}") for i, item in named if isinstance(item, Array)]
    return []


def _lay(array: Array) -> Placement:
    shape = tuple(
        size if size is not None else _DEFAULT_EXTENT + (divisor == 1)
        for size, divisor in zip(array.shape_constant, array.shape_divisible_by, strict=True)
    )
    strides: list[int] = []
    extent = 1
    for axis in range(array.rank - 1, -1, -1):
        fixed, divisor = array.stride_constant[axis], array.stride_divisible_by[axis]
        strides.insert(0, -(-extent // divisor) * divisor if fixed is None else fixed)
        extent = strides[0] * shape[axis]
    return Placement(array.name, array.dtype, shape, tuple(strides), offset=int(array.base_divisible_by < 16))


def torch_lines(launch: Launch, *, normal: bool = False) -> list[str]:
    """A line that makes each array: of numbers between 0 and 1, or normally distributed ones."""
    return [f"{placement.name} = {_tensor(placement, normal)}" for placement in launch.arrays]


def _tensor(placement: Placement, normal: bool) -> str:
    drawn = "torch.randn" if normal else "torch.rand"
    dtype = f"torch.{placement.dtype.removesuffix('_')}"
    integral = placement.dtype.startswith(("int", "uint", "bool"))
    shape = ", ".join(map(str, placement.shape)) or "()"
    if placement.strides == contiguous(placement.shape) and not placement.offset:
        made = f"torch.zeros({shape}, " if integral else f"{drawn}({shape}, "
        return made + (f'dtype={dtype}, device="cuda")' if integral else f'device="cuda").to({dtype})')
    reach = sum((n - 1) * s for n, s in zip(placement.shape, placement.strides, strict=True))
    size = placement.offset + reach + 1 if prod(placement.shape) else placement.offset
    base = f'{drawn}({size}, device="cuda").to({dtype})'
    return f"{base}.as_strided({placement.shape}, {placement.strides}, {placement.offset})"


def number_text(value: Scalar) -> str:
    """A number as Python code; infinities and NaN have no literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def argument_words(parameters: tuple[Parameter, ...], launch: Launch) -> list[str]:
    """What stands in the argument tuple for every parameter, in order."""
    scalars = dict(launch.scalars)
    words = []
    for parameter in parameters:
        match parameter:
            case Constant():
                words.append(number_text(parameter.value))
            case ScalarParameter():
                words.append(number_text(scalars[parameter.name]))
            case ArrayList(name=name):
                words.append(f"[{', '.join(f'{name}_{index}' for index in range(_LISTED))}]")
            case TupleParameter(name=name, items=items):
                inside = [_item_word(f"{name}_{index}", item) for index, item in enumerate(items)]
                words.append(f"({', '.join(inside)}{',' if len(inside) == 1 else ''})")
            case _:
                words.append(parameter.name)
    return words


def _item_word(variable: str, item: Array | ScalarParameter | Constant) -> str:
    match item:
        case Constant():
            return number_text(item.value)
        case ScalarParameter():
            return "1.0" if "float" in item.dtype else "1"
    return variable
