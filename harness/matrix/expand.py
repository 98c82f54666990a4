"""Tables of a matrix file multiplied out into the values that later stages take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from harness.kernels.arrays import aligned, assume, place
from harness.matrix import parameters as tables
from harness.matrix import schema
from harness.matrix.value import Generator, Only
from harness.matrix.words import KNOBS, TUPLE_CONVENTION
from harness.model import (
    HINT_NAMES,
    Array,
    ArrayList,
    Case,
    Constant,
    Device,
    Hints,
    Parameter,
    RunArgument,
    RunSettings,
    Scalar,
    ScalarParameter,
    Tolerance,
    Toolchain,
    TupleParameter,
)

T = TypeVar("T")

_COMPILER = (*HINT_NAMES, "bytecode_version", "calling_convention")
_AXES = ("dtype", *_COMPILER, *KNOBS, "layout", "values", "seed", "engine")


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
        product(*(_or_default(getattr(table, key)) for key in _COMPILER)),
        product(*knob_axes),
        product(*(constant.value for constant in own)),
        table.layout or ("contiguous",),
        table.shape or ((),),
        table.values or ("normal",),
        table.seed or (0,),
        table.engine or ("cubin",),
    )
    for kernel, dtype, compiler, knobs, baked, layout, shape, values, seed, engine in axes:
        *given, bytecode_version, calling_convention = compiler
        hints = Hints(**dict(zip(HINT_NAMES, given, strict=True)))
        if hints.opt_level is None and not is_own(kernel):
            hints = replace(hints, opt_level=3)  # an own kernel's decorator may say another
        settings = {key: value for key, value in zip(KNOBS, knobs, strict=True) if value is not None}
        fixed = {c.name: value for c, value in zip(own, baked, strict=True)}
        yield Case(
            kernel=kernel,
            shape=shape,
            dtype=dtype,
            hints=hints,
            knobs=tuple(sorted((settings | fixed).items())),
            layout=layout,
            values=values,
            seed=seed,
            parameters=parameters(table.parameters or (), dtype, fixed),
            run=_run(table),
            bytecode_version=None if bytecode_version == "default" else bytecode_version,
            calling_convention=calling_convention or _convention(table),
            engine=engine,
        )


def only(table: schema.CaseTable) -> Only | None:
    """Where the table's cases are asked about; None for everywhere."""
    return None if table.only is None else Only(**table.only.model_dump())


def _run(table: schema.CaseTable) -> RunSettings | None:
    """How to launch an own kernel, where the table says its grid."""
    if table.grid is None:
        return None
    x, y, z = (*table.grid, 1, 1)[:3]
    return RunSettings(
        (x, y, z),
        tuple(_argument(p) for p in table.parameters or () if _is_launched(p)),
        tuple((table.reference or {}).items()),
        tuple((name, Tolerance(**given.model_dump())) for name, given in (table.tolerance or {}).items()),
    )


def _is_launched(parameter: tables.Parameter) -> bool:
    return isinstance(parameter, tables.ArrayParameter | tables.ScalarParameter)


def _argument(parameter: tables.Parameter) -> RunArgument:
    if isinstance(parameter, tables.ArrayParameter):
        role, values = parameter.role or "inout", parameter.values or "normal"
        return RunArgument(parameter.name, parameter.shape or (), role, values)
    assert isinstance(parameter, tables.ScalarParameter)
    return RunArgument(parameter.name, value=parameter.value)


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


def _convention(table: schema.CaseTable) -> str:
    """How launch arguments are passed unless the table says it: tuples have but one way."""
    tuples = any(isinstance(parameter, tables.TupleParameter) for parameter in table.parameters or ())
    return TUPLE_CONVENTION if tuples else Case.calling_convention


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
    """Fill in what a JIT launch assumes of the array: of its shape where that is said, else of one
    that is contiguous, base and rows aligned to 16 bytes, of which no extent is known."""
    dtype, rank = _actual(given.dtype, case_dtype), given.rank
    shape = given.shape if isinstance(given, tables.ArrayParameter) else None
    assumed = aligned(name, dtype, rank) if shape is None else assume(place(name, dtype, shape))
    return Array(
        name=name,
        dtype=dtype,
        shape_constant=_spread(given.shape_constant, rank, assumed.shape_constant),
        shape_divisible_by=_spread(given.shape_divisible_by, rank, assumed.shape_divisible_by),
        stride_constant=_spread(given.stride_constant, rank, assumed.stride_constant),
        stride_divisible_by=_spread(given.stride_divisible_by, rank, assumed.stride_divisible_by),
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
