"""Parameters as a reader writes them, in a comment or in an option.

    # harness: a = array(float32, 3); out = array(float16, 2, strides=dynamic); n = scalar(int32)

An array is contiguous, base and rows aligned to 16 bytes, unless said; `shape=(4096, 512)` makes it what
a JIT launch would assume of that array. `strides=dynamic` assumes nothing of its strides, `divisible=16`
that 16 divides its extents, `base=1` nothing of its address. `T = const(32)` is baked in.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from harness.kernels.arrays import ITEMSIZE, Placement, aligned, assume, contiguous
from harness.matrix.words import DTYPE_ALIASES
from harness.model import Array, Constant, Parameter, ScalarParameter
from harness.triage.look import TriageError

_CALLS = ("array", "scalar", "const")


def parse(text: str, where: str) -> dict[str, Parameter]:
    """`a = array(float32, 3); T = const(32)` as parameters. Raises TriageError with the place."""
    found: dict[str, Parameter] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        try:
            statement = ast.parse(part).body[0]
        except (SyntaxError, ValueError, IndexError):
            raise _misread(part, where) from None
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=call)) as value):
                pass
            case _:
                raise _misread(part, where)
        if call not in _CALLS:
            raise TriageError(f"{where}: {call!r} is no kind of parameter; write array, scalar or const")
        try:
            positional = [_value(argument) for argument in value.args]
            named = {word.arg: _value(word.value) for word in value.keywords if word.arg}
            found[name] = _made(name, call, positional, named)
        except (ValueError, TypeError, IndexError) as error:
            raise TriageError(f"{where}: {part!r}: {error}") from None
    return found


def _misread(part: str, where: str) -> TriageError:
    return TriageError(f"{where}: cannot read {part!r}; write it like a = array(float32, 3); T = const(32)")


def _value(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def _made(name: str, call: str, positional: list[Any], named: dict[str, Any]) -> Parameter:
    if call == "const":
        (value,) = positional
        words: dict[Any, Any] = {"true": True, "false": False}
        return Constant(name, words.get(value, value))
    dtype = DTYPE_ALIASES.get(positional[0], positional[0])
    if dtype not in ITEMSIZE:
        raise ValueError(f"unknown dtype {positional[0]}; known are {', '.join(ITEMSIZE)}")
    if call == "scalar":
        return ScalarParameter(name, dtype)
    shape = named.pop("shape", None)
    rank = len(shape) if shape is not None else int(positional[1])
    array = aligned(name, dtype, rank) if shape is None else _with_shape(name, dtype, tuple(shape))
    return _varied(array, named)


def _with_shape(name: str, dtype: str, shape: tuple[int, ...]) -> Array:
    return assume(Placement(name, dtype, shape, contiguous(shape)))


def _varied(array: Array, named: dict[str, Any]) -> Array:
    strides, divisible, base = (named.pop(key, None) for key in ("strides", "divisible", "base"))
    if named:
        raise ValueError(f"unknown word {next(iter(named))!r}; known are shape, strides, divisible, base")
    if strides is not None:
        if strides != "dynamic":
            raise ValueError("write strides=dynamic, or leave it out")
        array = replace(array, stride_constant=(None,) * array.rank, stride_divisible_by=(1,) * array.rank)
    if divisible is not None:
        array = replace(array, shape_divisible_by=(int(divisible),) * array.rank)
    return array if base is None else replace(array, base_divisible_by=int(base))
