"""How a repro's kernel is launched on a GPU: arrays, their makers in torch, grid and arguments."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from harness.kernels.arrays import Placement, contiguous
from harness.kernels.description import ArrayArgument, Kernel
from harness.model import Array, Case, Constant, Parameter, Record, ScalarParameter
from harness.reduce.reduced import Reduced

SM_COUNT = 132
"""Multiprocessors of an H200; the grids of persistent kernels depend on it."""

_DEFAULT_EXTENT = 128
"""Side of an array whose shape nobody named; a multiple of every usual assumption."""


@dataclass(frozen=True)
class Launch(Record):
    """`arrays` are the array arguments; `scalars` the values of scalar ones. Both by parameter name."""

    arrays: tuple[Placement, ...]
    scalars: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    guessed: bool = False


def of_case(kernel: Kernel, case: Case) -> Launch:
    """As the kernel's own launch code does it, or a guess for one that says nothing of shapes."""
    if not any(isinstance(a, ArrayArgument) for a in kernel.arguments) or kernel.grid is None:
        return guess(case.parameters)
    return Launch(kernel.placements(case), (), kernel.grid(kernel.values(case), SM_COUNT))


def of_reduced(reduced: Reduced, kernel: Kernel) -> Launch:
    """As the reduction found it, with guesses for arrays that it knows nothing of."""
    known = {a.name: Placement(a.name, a.dtype, a.shape, a.strides, a.offset) for a in reduced.arrays}
    guessed = guess(reduced.parameters)
    arrays = tuple(known.get(placement.name, placement) for placement in guessed.arrays)
    grid = (1, 1, 1)
    if kernel.grid is not None:
        grid = kernel.grid(kernel.values(reduced.case), SM_COUNT)
    return Launch(arrays, guessed.scalars, grid, guessed=len(known) < len(arrays))


def guess(parameters: tuple[Parameter, ...]) -> Launch:
    """Arrays that keep every promise of their descriptions, of a small size."""
    arrays = tuple(_lay(p) for p in parameters if isinstance(p, Array))
    scalars = tuple((p.name, 1) for p in parameters if isinstance(p, ScalarParameter))
    return Launch(arrays, scalars, (1, 1, 1), guessed=True)


def _lay(array: Array) -> Placement:
    shape = tuple(
        size if size is not None else _DEFAULT_EXTENT + (divisor == 1)
        for size, divisor in zip(array.shape_constant, array.shape_divisible_by, strict=True)
    )
    strides = tuple(
        plain if fixed is None else fixed
        for plain, fixed in zip(contiguous(shape), array.stride_constant, strict=True)
    )
    return Placement(array.name, array.dtype, shape, strides, offset=int(array.base_divisible_by < 16))


def torch_lines(launch: Launch) -> list[str]:
    """A line that makes each array."""
    return [f"{placement.name} = {_tensor(placement)}" for placement in launch.arrays]


def _tensor(placement: Placement) -> str:
    dtype = f"torch.{placement.dtype.removesuffix('_')}"
    integral = placement.dtype.startswith(("int", "uint", "bool"))
    shape = ", ".join(map(str, placement.shape)) or "()"
    if placement.strides == contiguous(placement.shape) and not placement.offset:
        made = f"torch.zeros({shape}, " if integral else f"torch.rand({shape}, "
        return made + (f'dtype={dtype}, device="cuda")' if integral else f'device="cuda").to({dtype})')
    reach = sum((n - 1) * s for n, s in zip(placement.shape, placement.strides, strict=True))
    size = placement.offset + reach + 1 if prod(placement.shape) else placement.offset
    base = f'torch.rand({size}, device="cuda").to({dtype})'
    return f"{base}.as_strided({placement.shape}, {placement.strides}, {placement.offset})"


def argument_words(parameters: tuple[Parameter, ...], launch: Launch) -> list[str]:
    """What stands in the argument tuple for every parameter, in order."""
    scalars = dict(launch.scalars)
    words = []
    for parameter in parameters:
        match parameter:
            case Constant():
                words.append(repr(parameter.value))
            case ScalarParameter():
                words.append(repr(scalars[parameter.name]))
            case _:
                words.append(parameter.name)
    return words
