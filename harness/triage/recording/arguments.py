"""Kernels and arguments of a launch as plain data, and when two launches ask the same."""

from __future__ import annotations

import inspect
import math
from typing import Any

from .anything import Anything, Base

_OFFSETS = 16
"""An address is assumed to be aligned to 16 bytes, or to nothing: elements beyond that tell nothing."""


def describe(value: Any) -> dict[str, Any]:
    """An argument of a launch, in plain data."""
    if isinstance(value, bool):
        return {"kind": "scalar", "dtype": "bool", "value": value}
    if isinstance(value, int):
        return {"kind": "scalar", "dtype": "int32" if -(2**31) <= value < 2**31 else "int64", "value": value}
    if isinstance(value, float):
        return {"kind": "scalar", "dtype": "float32", "value": value}
    if isinstance(value, list):
        return {"kind": "list", "items": [describe(item) for item in value]}
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [describe(item) for item in value]}
    if isinstance(value, Anything | Base):
        return {"kind": "unknown", "text": "the result of something that is not there"}
    shape, dtype = getattr(value, "shape", None), str(getattr(value, "dtype", "")).rpartition(".")[2]
    if shape is None or not dtype:
        return {"kind": "unknown", "text": f"{type(value).__name__}"}
    strides = value.stride() if callable(getattr(value, "stride", None)) else None
    if strides is None:
        strides = tuple(step // value.dtype.itemsize for step in value.strides)
        offset = value.__array_interface__["data"][0] % 256 // value.dtype.itemsize
    else:
        offset = int(value.storage_offset())
    return {
        "kind": "array",
        "dtype": dtype,
        "shape": [int(n) for n in shape],
        "strides": [int(n) for n in strides],
        "offset": offset,
    }


def function_of(kernel: Any) -> Any:
    """The Python function of a kernel: the same for all its variants of hints."""
    return getattr(getattr(kernel, "_annotated_function", None), "pyfunc", kernel)


def parameters_of(kernel: Any) -> list[dict[str, Any]]:
    """Names of a kernel's parameters, and what annotations say: constant (of a type), scalar, nothing."""
    found = []
    for name, parameter in inspect.signature(function_of(kernel)).parameters.items():
        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else repr(annotation)
        said = of = ""
        if annotation is not parameter.empty:
            if "Constant" in text:
                said = "constant"
                of = next(
                    (word for word in ("float", "bool", "int") if word in text.rpartition("Constant")[2]), ""
                )
            elif annotation in (int, float, bool) or text in ("int", "float", "bool"):
                said = getattr(annotation, "__name__", text)
        found.append({"name": name, "said": said, "of": of})
    return found


def plain(value: Any) -> bool:
    """Whether `spelled` can write the value down."""
    if isinstance(value, tuple):
        return all(map(plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def spelled(value: Any) -> str:
    """A plain value as an expression."""
    if isinstance(value, tuple):
        return f"({', '.join(map(spelled, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def identity(kernel: Any) -> Any:
    """Equal for kernels of the same text and the same closure."""
    function = function_of(kernel)
    cells = tuple(spelled(c) if plain(c) else id(c) for c in closure(function).values())
    return function.__code__.co_filename, function.__code__.co_firstlineno, function.__qualname__, cells


def question(kernel: Any, arguments: list[dict[str, Any]]) -> Any:
    """What a launch asks of a compiler: equal for launches of one kernel, with one set of hints, and with
    arguments of one kind. Where it is made and on how many blocks does not count."""
    said = [parameter["said"] for parameter in parameters_of(kernel)]
    said += [""] * (len(arguments) - len(said))
    kinds = tuple(_kind(a, constant=s == "constant") for a, s in zip(arguments, said, strict=False))
    return identity(kernel), repr(getattr(kernel, "_compiler_options", None)), kinds


def _kind(said: dict[str, Any], constant: bool) -> Any:
    """An argument without what no compiler is told: the value of a scalar, how far into its storage an
    array begins."""
    match said["kind"]:
        case "scalar":
            return said["dtype"], spelled(said["value"]) if constant else ""
        case "array":
            shape, strides = tuple(said["shape"]), tuple(said["strides"])
            return said["dtype"], shape, strides, said["offset"] % _OFFSETS
        case "list" | "tuple":
            return said["kind"], tuple(_kind(item, constant) for item in said["items"])
    return said["kind"], said["text"]


def closure(function: Any) -> dict[str, Any]:
    """Values of the names that a function has from the functions around it."""
    code, cells = function.__code__, function.__closure__ or ()
    found = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # bound to nothing yet
            continue
    return found
