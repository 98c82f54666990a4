"""How arrays lie in memory, and what a JIT launch would assume of them.

The rules of `assume` are those of cuda.tile's own dispatcher (`cext/tile_kernel.cpp`, function
`compute_array_specialization_bits`, cuda-tile 1.3 to 1.6), which runs only where a driver is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from harness.model import Array

ITEMSIZE = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e8m0fnu": 1,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "float32": 4,
    "tfloat32": 4,
    "int32": 4,
    "uint32": 4,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
}
"""Bytes per element of the dtypes cuda.tile names."""

_MAX_RANK = 5
"""Beyond TMA's rank the dispatcher assumes nothing per dimension."""

_ALIGNMENT = 16
"""Bytes (address, stride) or elements (shape) that the dispatcher tests divisibility by."""


@dataclass(frozen=True)
class Placement:
    """One array in memory: shape and strides in elements, and how many elements its first one lies
    behind a 256-byte aligned address."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


LAYOUTS = {
    "contiguous": "rows back to back, base aligned",
    "offset": "contiguous, but the base lies one element behind an aligned address",
    "wide_rows": "a column slice of a wider tensor: row stride larger, still divisible by 16 elements",
    "odd_rows": "a column slice whose row stride is one element more than a row",
    "sliced": "a column slice that starts three elements in: base and row stride both unaligned",
}
"""The ways an input can lie in memory, by name."""


def place(name: str, dtype: str, shape: tuple[int, ...], layout: str = "contiguous") -> Placement:
    """Lay out an array. Layouts other than "contiguous" and "offset" need two dimensions."""
    strides = contiguous(shape)
    if layout == "contiguous":
        return Placement(name, dtype, shape, strides)
    if layout == "offset":
        return Placement(name, dtype, shape, strides, offset=1)
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; there are {', '.join(LAYOUTS)}")
    if len(shape) != 2:
        raise ValueError(f"layout {layout!r} is for arrays of two dimensions, {name} has {len(shape)}")
    columns = shape[1]
    if layout == "wide_rows":
        return Placement(name, dtype, shape, (-(-columns // 16) * 16 + 16, 1))
    if layout == "odd_rows":
        return Placement(name, dtype, shape, (columns + 1, 1))
    return Placement(name, dtype, shape, (columns + 7, 1), offset=3)


def assume(placement: Placement) -> Array:
    """What a JIT launch bakes into the kernel about an array that lies like this."""
    itemsize = ITEMSIZE[placement.dtype]
    rank = len(placement.shape)
    special = rank <= _MAX_RANK
    stride_divisor = _ALIGNMENT // itemsize
    stride_constant = tuple(1 if special and stride == 1 else None for stride in placement.strides)
    return Array(
        name=placement.name,
        dtype=placement.dtype,
        shape_constant=(None,) * rank,
        shape_divisible_by=tuple(
            _ALIGNMENT if special and size % _ALIGNMENT == 0 else 1 for size in placement.shape
        ),
        stride_constant=stride_constant,
        stride_divisible_by=tuple(
            stride_divisor if special and constant is None and stride * itemsize % _ALIGNMENT == 0 else 1
            for stride, constant in zip(placement.strides, stride_constant, strict=True)
        ),
        base_divisible_by=_ALIGNMENT if placement.offset * itemsize % _ALIGNMENT == 0 else 1,
        may_alias_internally=not _disjoint(placement),
    )


def aligned(name: str, dtype: str, rank: int) -> Array:
    """What is assumed of a contiguous array of which no extent is known, base and rows aligned to 16
    bytes."""
    special = 0 < rank <= _MAX_RANK
    row = _ALIGNMENT // ITEMSIZE[dtype] if special else 1
    return Array(
        name=name,
        dtype=dtype,
        shape_constant=(None,) * rank,
        shape_divisible_by=(1,) * rank,
        stride_constant=(*(None,) * (rank - 1), 1) if special else (None,) * rank,
        stride_divisible_by=(*(row,) * (rank - 1), 1) if special else (1,) * rank,
    )


def _disjoint(placement: Placement) -> bool:
    """The dispatcher's test: every stride positive and no smaller than the extent below it."""
    if not placement.shape:
        return True
    by_stride = sorted(zip(placement.strides, placement.shape, strict=True))
    return by_stride[0][0] > 0 and all(
        above[0] >= below[0] * below[1] for below, above in pairwise(by_stride)
    )
