"""Parameters as a reader writes them, in a comment or in an option.

    # harness: a = array(float32, 3); out = array(float16, 2, strides=dynamic); n = scalar(int32)

An array is contiguous, base and rows aligned to 16 bytes, unless said; `shape=(4096, 512)` makes it what
a JIT launch would assume of that array. `strides=dynamic` assumes nothing of its strides, `divisible=16`
that 16 divides its extents, `base=1` nothing of its address. `T = const(32)` is baked in.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from harness.kernels.arrays import ITEMSIZE, Placement, aligned, assume, contiguous
from harness.matrix.words import DTYPE_ALIASES
from harness.model import Array, Constant, Parameter, ScalarParameter
from harness.triage.look import TriageError

_FORMS = {
    "array": "array takes a dtype and a rank, as in array(float16, 2), or a shape, as in "
    "array(float16, shape=(32, 48))",
    "scalar": "scalar takes a dtype, as in scalar(int32)",
    "const": "const takes a value, as in const(128)",
}
_MOST_AXES = 16
_LARGEST = 2**63 - 1
_BOOLEANS = {"true": True, "false": False}


class _Unfit(ValueError):
    """What is wrong with one parameter, as a sentence without a place."""


def parse(text: str, where: str) -> dict[str, Parameter]:
    """`a = array(float32, 3); T = const(32)` as parameters. Raises TriageError with the place."""
    found: dict[str, Parameter] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        for name, call in _assignments(part, where):
            try:
                if name in found:
                    raise _Unfit(f"{name} is described twice")
                found[name] = _made(name, call)
            except _Unfit as error:
                raise TriageError(f"{where}: {part!r}: {error}") from None
            except RecursionError:  # nested deeper than Python reads
                raise _misread(part, where) from None
    return found


def _assignments(part: str, where: str) -> Iterator[tuple[str, ast.Call]]:
    """Names, and the calls that are assigned to them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            statements = ast.parse(part).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        statements = []
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=kind)) as call):
                if kind not in _FORMS:
                    raise TriageError(
                        f"{where}: {kind!r} is no kind of parameter; write array, scalar or const"
                    )
                yield name, call
            case _:
                raise _misread(part, where)
    if not statements:
        raise _misread(part, where)


def _misread(part: str, where: str) -> TriageError:
    return TriageError(f"{where}: cannot read {part!r}; write it like a = array(float32, 3); T = const(32)")


def _value(node: ast.expr) -> Any:
    """A word, or a value that is written out."""
    if isinstance(node, ast.Name):
        return node.id
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise _Unfit(f"{ast.unparse(node)} is neither a word nor a value that is written out") from None


def _made(name: str, call: ast.Call) -> Parameter:
    assert isinstance(call.func, ast.Name)
    kind = call.func.id
    positional = [_value(argument) for argument in call.args]
    if any(word.arg is None for word in call.keywords):
        raise _Unfit(_FORMS[kind])
    named = {str(word.arg): _value(word.value) for word in call.keywords}
    if kind == "array":
        return _array(name, positional, named)
    if named or len(positional) != 1:
        raise _Unfit(_FORMS[kind])
    return (
        ScalarParameter(name, _dtype(positional[0])) if kind == "scalar" else _constant(name, positional[0])
    )


def _constant(name: str, value: Any) -> Constant:
    if not isinstance(value, bool | int | float | str):
        raise _Unfit(f"{value!r} is no value of a constant; write a number, true or false")
    return Constant(name, _BOOLEANS.get(value, value) if isinstance(value, str) else value)


def _dtype(said: Any) -> str:
    dtype = DTYPE_ALIASES.get(said, said) if isinstance(said, str) else said
    if not isinstance(dtype, str) or dtype not in ITEMSIZE:
        raise _Unfit(f"unknown dtype {said}; known are {', '.join(ITEMSIZE)}")
    return dtype


def _array(name: str, positional: list[Any], named: dict[str, Any]) -> Array:
    with_shape = "shape" in named
    if len(positional) != (1 if with_shape else 2):
        raise _Unfit(_FORMS["array"])
    dtype = _dtype(positional[0])
    if with_shape:
        shape = _shape(named.pop("shape"))
        array = assume(Placement(name, dtype, shape, contiguous(shape)))
    else:
        rank = _number("a rank", positional[1], 0, _MOST_AXES)
        array = aligned(name, dtype, rank)
    return _varied(array, named)


def _shape(said: Any) -> tuple[int, ...]:
    if not isinstance(said, tuple | list) or len(said) > _MOST_AXES:
        raise _Unfit(f"a shape is a tuple of at most {_MOST_AXES} extents, as in shape=(32, 48)")
    shape = tuple(_number("an extent", extent, 0, _LARGEST) for extent in said)
    if math.prod(shape) > _LARGEST:
        raise _Unfit("no array has so many elements")
    return shape


def _number(what: str, said: Any, least: int, most: int) -> int:
    if isinstance(said, bool) or not isinstance(said, int) or not least <= said <= most:
        raise _Unfit(f"{what} is a whole number from {least} to {most}, not {said!r}")
    return said


def _varied(array: Array, named: dict[str, Any]) -> Array:
    strides, divisible, base = (named.pop(key, None) for key in ("strides", "divisible", "base"))
    if named:
        raise _Unfit(f"unknown word {next(iter(named))!r}; known are shape, strides, divisible, base")
    if strides is not None:
        if strides != "dynamic":
            raise _Unfit("write strides=dynamic, or leave it out")
        array = replace(array, stride_constant=(None,) * array.rank, stride_divisible_by=(1,) * array.rank)
    if divisible is not None:
        divisor = _number("divisible", divisible, 1, _LARGEST)
        array = replace(array, shape_divisible_by=(divisor,) * array.rank)
    if base is None:
        return array
    return replace(array, base_divisible_by=_number("base", base, 1, _LARGEST))
