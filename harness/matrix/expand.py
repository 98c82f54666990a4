"""Tables of a matrix file multiplied out into the values that later stages take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeVar

from harness.kernels.arrays import ITEMSIZE
from harness.matrix import parameters as tables
from harness.matrix import schema
from harness.matrix.value import Generator
from harness.matrix.words import KNOBS
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Device,
    Hints,
    Parameter,
    Scalar,
    ScalarParameter,
    Toolchain,
    TupleParameter,
)

T = TypeVar("T")

_JIT_RANK = 5
"""A JIT launch assumes nothing per dimension of an array of more."""

_AXES = ("dtype", "occupancy", "num_ctas", "opt_level", *KNOBS, "layout", "values", "seed")


def is_own(kernel: str) -> bool:
    """Whether a kernel's name leads to a file of the reader's rather than to a shipped kernel."""
    return ":" in kernel or kernel.endswith(".py")


# --- toolchains and devices -------------------------------------------------------------------


def toolchain_pairs(table: schema.ToolchainTable) -> list[tuple[str, str]]:
    """(cuda-tile, cuda-toolkit) versions, without the excluded ones."""
    pairs = product(table.cuda_tile, table.cuda_toolkit)
    return [pair for pair in pairs if not any(_excludes(entry, *pair) for entry in table.exclude)]


def _excludes(entry: schema.ExcludeTable, tile: str, toolkit: str) -> bool:
    return (entry.cuda_tile is None or tile in entry.cuda_tile) and (
        entry.cuda_toolkit is None or toolkit in entry.cuda_toolkit
    )


def toolchains(table: schema.ToolchainTable) -> tuple[Toolchain, ...]:
    overrides = {key: getattr(table, key) for key in ("tileiras", "nvvm", "ptxas")}
    suffix = "".join(f"+{key}{version}" for key, version in overrides.items() if version)
    pairs = toolchain_pairs(table)

    def name(tile: str, toolkit: str) -> str:
        default = f"tile{tile}-ctk{toolkit}{suffix}"
        if table.name is None:
            return default
        return table.name if len(pairs) == 1 else f"{table.name}-{default}"

    return tuple(Toolchain(name(*pair), *pair, **overrides) for pair in pairs)


def device(table: schema.DeviceTable) -> Device:
    return Device(name=table.name, gpu=table.gpu, arch=table.arch, driver=table.driver)


# --- cases ------------------------------------------------------------------------------------


def constants(table: schema.CaseTable) -> list[tables.ConstantParameter]:
    """The constants among a kernel's own parameters: each is an axis."""
    return [p for p in table.parameters or () if isinstance(p, tables.ConstantParameter)]


def count(table: schema.CaseTable) -> int:
    """How many cases the table lists, without making them."""
    if table.generate is not None:
        return 0
    axes = [table.kernel, table.shape, *(getattr(table, key) for key in _AXES)]
    return math.prod(len(axis) for axis in (*axes, *(c.value for c in constants(table))) if axis is not None)


def cases(table: schema.CaseTable) -> Iterator[Case]:
    """The table's cases. What sets specialisations apart varies slowest and shape and data fastest, so
    that cases a compiler cannot tell apart follow each other."""
    if table.generate is not None:
        return
    own = constants(table)
    knob_axes = [_or_default(getattr(table, knob)) for knob in KNOBS]
    axes = product(
        table.kernel,
        table.dtype or (_dtype_of(table),),
        product(_or_default(table.occupancy), _or_default(table.num_ctas), _or_default(table.opt_level)),
        product(*knob_axes),
        product(*(constant.value for constant in own)),
        table.layout or ("contiguous",),
        table.shape or ((),),
        table.values or ("normal",),
        table.seed or (0,),
    )
    for kernel, dtype, hints, knobs, baked, layout, shape, values, seed in axes:
        occupancy, num_ctas, opt_level = hints
        settings = {key: value for key, value in zip(KNOBS, knobs, strict=True) if value is not None}
        fixed = {c.name: value for c, value in zip(own, baked, strict=True)}
        yield Case(
            kernel=kernel,
            shape=shape,
            dtype=dtype,
            hints=Hints(occupancy, num_ctas, 3 if opt_level is None else opt_level),
            knobs=tuple(sorted((settings | fixed).items())),
            layout=layout,
            values=values,
            seed=seed,
            parameters=parameters(table.parameters or (), dtype, fixed),
        )


def generator(table: schema.CaseTable, number: int) -> Generator | None:
    if table.generate is None:
        return None
    given = [(key, getattr(table, key)) for key in ("kernel", *_AXES)]
    return Generator(
        table=number,
        count=table.generate.count,
        seed=table.generate.seed,
        max_elements=table.generate.max_elements,
        axes=tuple((key, values) for key, values in given if values is not None),
    )


def _or_default(axis: tuple[T, ...] | None) -> tuple[T | None, ...]:
    return (None,) if axis is None else axis


# --- parameters of the reader's own kernels ---------------------------------------------------


def _dtype_of(table: schema.CaseTable) -> str:
    """What a case of a kernel without "$dtype" is labelled with: the dtype of its first array or scalar."""
    typed = (p for p in table.parameters or () if isinstance(p, tables.ArrayItem | tables.ScalarItem))
    return next((p.dtype for p in typed), "")


def parameters(
    given: Sequence[tables.Parameter], dtype: str, fixed: dict[str, Scalar]
) -> tuple[Parameter, ...]:
    return tuple(_parameter(parameter, dtype, fixed) for parameter in given)


def _parameter(given: tables.Parameter, dtype: str, fixed: dict[str, Scalar]) -> Parameter:
    match given:
        case tables.ArrayParameter():
            return _array(given, given.name, dtype)
        case tables.ScalarParameter():
            return ScalarParameter(given.name, _actual(given.dtype, dtype))
        case tables.ConstantParameter():
            return Constant(given.name, fixed[given.name])
        case tables.ListParameter():
            element = _array(given.element, given.name, dtype)
            return ArrayList(given.name, element, given.alias_groups, given.elements_may_alias)
        case tables.TupleParameter():
            named = [(f"{given.name}.{index}", item) for index, item in enumerate(given.items)]
            return TupleParameter(given.name, tuple(_item(name, item, dtype) for name, item in named))


def _item(
    name: str, item: tables.ArrayItem | tables.ScalarItem | tables.ConstantItem, dtype: str
) -> Array | ScalarParameter | Constant:
    match item:
        case tables.ArrayItem():
            return _array(item, name, dtype)
        case tables.ScalarItem():
            return ScalarParameter(name, _actual(item.dtype, dtype))
        case tables.ConstantItem():
            return Constant(name, item.value)


def _array(given: tables.ArrayItem, name: str, case_dtype: str) -> Array:
    """Fill in what a JIT launch assumes of a contiguous array, aligned to 16 bytes, whose rows and
    extents are multiples of 16."""
    dtype, rank = _actual(given.dtype, case_dtype), given.rank
    jit = 0 < rank <= _JIT_RANK
    contiguous: tuple[int | None, ...] = (*(None,) * (rank - 1), 1) if jit else (None,) * rank
    row = 16 // ITEMSIZE[dtype] if jit else 1
    aligned = (*(row,) * (rank - 1), 1) if jit else (1,) * rank
    return Array(
        name=name,
        dtype=dtype,
        shape_constant=_spread(given.shape_constant, rank, (None,) * rank),
        shape_divisible_by=_spread(given.shape_divisible_by, rank, (16 if jit else 1,) * rank),
        stride_constant=_spread(given.stride_constant, rank, contiguous),
        stride_divisible_by=_spread(given.stride_divisible_by, rank, aligned),
        base_divisible_by=given.base_divisible_by,
        alias_groups=given.alias_groups,
        may_alias_internally=given.may_alias_internally,
        index_dtype=given.index_dtype,
    )


def _spread(given: tuple[T, ...] | None, rank: int, default: tuple[T, ...]) -> tuple[T, ...]:
    """One value for all dimensions, or one for each."""
    if given is None:
        return default
    return given * rank if len(given) == 1 else given


def _actual(dtype: str, case_dtype: str) -> str:
    return case_dtype if dtype == "$dtype" else dtype
