"""The shape that an expression comes to, from the shapes of what it reads: known before anything runs. Pure.

What depends on a number that is not known beforehand has no known shape, and is left to the run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from harness.expression import REDUCTIONS, Expression, ExpressionError

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """What is known of a name: its shape, and its value where it is a whole number."""

    shape: Shape = ()
    value: int | None = None


class _Unknown(Exception):
    """The shape depends on what is not known."""


def shape_of(expression: Expression, known: Mapping[str, Known]) -> Shape | None:
    """The shape, or None where it cannot be known. Raises ExpressionError where there can be none."""
    try:
        return _shape(expression.tree, known)
    except _Unknown:
        return None


def _shape(node: ast.expr, known: Mapping[str, Known]) -> Shape:
    match node:
        case ast.Constant():
            return ()
        case ast.Name(id=name):
            if name not in known:
                raise _Unknown
            return known[name].shape
        case ast.UnaryOp(operand=operand):
            return _shape(operand, known)
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            return _product(_shape(left, known), _shape(right, known), node)
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return _together(_shape(left, known), _shape(right, known), node)
        case ast.Call(func=ast.Name(id=function)):
            return _call(node, function, known)
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return ()
        case ast.Subscript(value=array, slice=index):
            return _indexed(_shape(array, known), index, node)
        case ast.Attribute(value=array):
            return _shape(array, known)[::-1]
    raise _Unknown


def _together(one: Shape, other: Shape, node: ast.expr) -> Shape:
    """Two shapes broadcast, as NumPy does."""
    rank = max(len(one), len(other))
    padded = [(1,) * (rank - len(shape)) + shape for shape in (one, other)]
    for a, b in zip(*padded, strict=True):
        if a != b and 1 not in (a, b):
            fault = f"{_text(node)} puts {list(one)} and {list(other)} together"
            raise ExpressionError(f"{fault}, which do not fit")
    return tuple(b if a == 1 else a for a, b in zip(*padded, strict=True))


def _product(one: Shape, other: Shape, node: ast.expr) -> Shape:
    if not one or not other or one[-1] != other[-2 if len(other) > 1 else 0]:
        raise ExpressionError(f"{_text(node)} multiplies {list(one)} by {list(other)}, which do not fit")
    if len(one) == 1 or len(other) == 1:
        return (*one[:-1], *other[:-2], *other[-1:]) if len(other) > 1 else one[:-1]
    return (*_together(one[:-2], other[:-2], node), one[-2], other[-1])


def _call(node: ast.Call, function: str, known: Mapping[str, Known]) -> Shape:
    keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    if function == "arange":
        return (_whole(node.args[0], known),)
    first = _shape(node.args[0], known)
    if function == "reshape":
        target = node.args[1]
        items = target.elts if isinstance(target, ast.Tuple) else [target]
        shape = tuple(_whole(item, known) for item in items)
        fits = -1 in shape or prod(shape) == prod(first)
        if not fits:
            fault = f"{_text(node)} makes {list(shape)} of {list(first)}"
            raise ExpressionError(f"{fault}, which has another number of elements")
        rest = prod(size for size in shape if size != -1)
        return tuple(prod(first) // max(1, rest) if size == -1 else size for size in shape)
    if function == "transpose":
        axes = keywords.get("axes")
        return first[::-1] if axes is None else tuple(first[_axis(axis, first, node)] for axis in axes)
    if function in REDUCTIONS:
        axis = keywords.get("axis")
        listed = range(len(first)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        gone = {_axis(one, first, node) for one in listed}
        if keywords.get("keepdims"):
            return tuple(1 if at in gone else size for at, size in enumerate(first))
        return tuple(size for at, size in enumerate(first) if at not in gone)
    if function == "cumsum":
        if keywords.get("axis") is None:
            return (prod(first),)
        _axis(keywords["axis"], first, node)
        return first
    if function == "astype":
        return first
    for argument in node.args[1:]:
        first = _together(first, _shape(argument, known), node)
    return first


def _axis(axis: int, shape: Shape, node: ast.expr) -> int:
    if not -len(shape) <= axis < len(shape):
        raise ExpressionError(f"{_text(node)} names axis {axis} of {list(shape)}, which has {len(shape)}")
    return axis % len(shape)


def _indexed(shape: Shape, index: ast.expr, node: ast.expr) -> Shape:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    rest = list(shape)
    made: list[int] = []
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            made.append(1)
            continue
        if not rest:
            raise ExpressionError(f"{_text(node)} has more indices than {list(shape)} has dimensions")
        size = rest.pop(0)
        if isinstance(part, ast.Slice):
            bounds = (None if b is None else ast.literal_eval(b) for b in (part.lower, part.upper, part.step))
            made.append(len(range(*slice(*bounds).indices(size))))
        elif not -size <= ast.literal_eval(part) < size:
            raise ExpressionError(f"{_text(node)} is outside {list(shape)}")
    return (*made, *rest)


def _whole(node: ast.expr, known: Mapping[str, Known]) -> int:
    """A whole number that is known beforehand."""
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_whole(operand, known)
        case ast.Name(id=name) if name in known and known[name].value is not None:
            return known[name].value or 0
        case ast.Subscript(
            value=ast.Attribute(value=array, attr="shape"), slice=ast.Constant(value=int() as axis)
        ):
            shape = _shape(array, known)
            return shape[_axis(axis, shape, node)]
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _whole(left, known), _whole(right, known)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv() if b:
                    return a // b
    raise _Unknown


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f'"{text if len(text) <= 60 else text[:59] + "…"}"'
