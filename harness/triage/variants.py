"""Parameters near the reported ones, each different in one respect: the controls of a triage. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from harness.kernels.arrays import ITEMSIZE
from harness.model import Array, Constant, Hints, Parameter

AXES = ("occupancy", "num_ctas", "flag", "constant", "signature", "dtype")
"""Along which axes there are changes, those first that leave most as it is: hints, then switches of the
kernel, its tiles, how its arrays lie, and at last what they hold."""

HINT_AXES = ("occupancy", "num_ctas")

_ALTERNATIVES = {
    "float8_e4m3fn": ("float8_e5m2", "bfloat16", "float16"),
    "float8_e5m2": ("float8_e4m3fn", "bfloat16", "float16"),
    "float16": ("bfloat16", "float32"),
    "bfloat16": ("float16", "float32"),
    "float32": ("float16", "bfloat16"),
    "float64": ("float32",),
}


@dataclass(frozen=True)
class Variant:
    """A change to what is reported: along which axis, in words, what the parameters then are, and hints that
    are not as reported."""

    axis: str
    label: str
    parameters: tuple[Parameter, ...]
    hints: tuple[tuple[str, int], ...] = ()


def variants(parameters: tuple[Parameter, ...], hints: Hints | None = None) -> list[Variant]:
    """Lower hints than these, switches turned, tiles of half the size, other assumptions, other element
    types."""
    lower = [
        Variant(name, f"{name}={value}", parameters, ((name, value),))
        for name in HINT_AXES
        for value in _below(getattr(hints, name, None))
    ]
    return lower + _of_parameters(parameters)


def _below(value: int | None) -> list[int]:
    """Half of a hint, and the least there is."""
    return list(dict.fromkeys((value // 2, 1))) if value is not None and value > 1 else []


def _of_parameters(parameters: tuple[Parameter, ...]) -> list[Variant]:
    arrays = [p for p in parameters if isinstance(p, Array)]
    dtypes = [dtype for dtype in dict.fromkeys(array.dtype for array in arrays) if dtype in _ALTERNATIVES]
    changes: list[tuple[str, str, Callable[[Parameter], Parameter]]] = [
        (
            "dtype",
            other if len(dtypes) == 1 else f"{other} for {dtype}",
            partial(_with_dtype, dtype=dtype, other=other),
        )
        for dtype in dtypes
        for other in _ALTERNATIVES[dtype]
    ]
    changes += [
        ("signature", f"strides of {array.name} unknown", partial(_any_strides, name=array.name))
        for array in arrays
    ]
    changes += [
        ("signature", "extents divisible by 16", partial(_extents, divisor=16)),
        ("signature", "extents unknown", partial(_extents, divisor=1)),
        ("signature", "bases unaligned", _any_base),
    ]
    changes += [
        ("flag", f"{p.name}={not p.value}", partial(_turned, name=p.name))
        for p in parameters
        if isinstance(p, Constant) and isinstance(p.value, bool)
    ]
    changes += [
        ("constant", f"{p.name}={p.value // 2}", partial(_halved, name=p.name))
        for p in parameters
        if isinstance(p, Constant) and isinstance(p.value, int) and _is_tile(p.value)
    ]
    made = (Variant(axis, label, tuple(map(change, parameters))) for axis, label, change in changes)
    return [variant for variant in made if variant.parameters != parameters]


def _is_tile(value: int) -> bool:
    return value > 1 and value.bit_count() == 1


def _with_dtype(parameter: Parameter, dtype: str, other: str) -> Parameter:
    """Rows stay aligned to as many bytes: divisors, which count elements, follow the new size."""
    if not isinstance(parameter, Array) or parameter.dtype != dtype:
        return parameter
    before, after = ITEMSIZE[dtype], ITEMSIZE[other]
    divisors = tuple(max(1, n * before // after) for n in parameter.stride_divisible_by)
    kept = tuple(1 if n == 1 else d for n, d in zip(parameter.stride_divisible_by, divisors, strict=True))
    return replace(parameter, dtype=other, stride_divisible_by=kept)


def _any_strides(parameter: Parameter, name: str) -> Parameter:
    if not isinstance(parameter, Array) or parameter.name != name:
        return parameter
    rank = parameter.rank
    return replace(parameter, stride_constant=(None,) * rank, stride_divisible_by=(1,) * rank)


def _extents(parameter: Parameter, divisor: int) -> Parameter:
    if not isinstance(parameter, Array):
        return parameter
    return replace(parameter, shape_divisible_by=(divisor,) * parameter.rank)


def _any_base(parameter: Parameter) -> Parameter:
    return replace(parameter, base_divisible_by=1) if isinstance(parameter, Array) else parameter


def _turned(parameter: Parameter, name: str) -> Parameter:
    if not isinstance(parameter, Constant) or parameter.name != name:
        return parameter
    return replace(parameter, value=not parameter.value)


def _halved(parameter: Parameter, name: str) -> Parameter:
    if not isinstance(parameter, Constant) or parameter.name != name or not isinstance(parameter.value, int):
        return parameter
    return replace(parameter, value=parameter.value // 2)
