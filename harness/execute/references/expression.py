"""Expressions evaluated on a case's inputs, with a bound on what float32 arithmetic may be off by.

Every value carries one: after each operation it is what the operands' errors grow to, plus the roundings of
the operation itself (running error analysis; Higham, Accuracy and Stability of Numerical Algorithms, 2nd
edition, section 3.3). Sums may be in any order. Integers and booleans are exact; a comparison whose
operands lie closer together than their errors is undecided, and `where` may then take either side.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.execute.bounds import (
    APPROXIMATE,
    FLOAT64_SLACK,
    LARGEST,
    TINIEST,
    Expectation,
    U,
    anything,
    expect,
    gamma,
    whole_numbers,
)
from harness.execute.formats import Array, format_of, numpy_dtype
from harness.execute.references.matmul import ROUNDINGS_PER_TERM
from harness.execute.references.smooth import SMOOTH
from harness.expression import Expression, ExpressionError, parse
from harness.model import Tolerance

_POWER = 8 * U
"""Relative error of a power: 4 ULP (CUDA C++ Programming Guide, "Standard Functions")."""


@dataclass(frozen=True)
class Value:
    """Numbers (float64, int64 or bool) and how far a kernel's may lie from them; 0 for exact ones,
    infinity where nothing can be said."""

    number: Array
    error: Array

    @property
    def inexact(self) -> bool:
        return self.number.dtype.kind == "f"


def expectations(
    expressions: Sequence[tuple[str, str]],
    inputs: Mapping[str, Array],
    parameters: Mapping[str, float],
    outputs: Mapping[str, tuple[str, tuple[int, ...]]],
    tolerances: Mapping[str, Tolerance],
) -> dict[str, Expectation]:
    """What the outputs may be. `expressions` are (name, text) in order, and each may use those before it;
    `outputs` maps names to dtype and shape. Raises ExpressionError."""
    known = {name: _exact(values) for name, values in inputs.items()}
    known |= {name: _exact(np.asarray(_whole(value))) for name, value in parameters.items()}
    found: dict[str, Expectation] = {}
    with np.errstate(all="ignore"):
        for name, text in expressions:
            known[name] = _evaluate(name, parse(text), known)
            if name in outputs:
                dtype, shape = outputs[name]
                found[name] = _expectation(name, known[name], dtype, shape, tolerances.get(name))
    return found


def _evaluate(name: str, expression: Expression, known: Mapping[str, Value]) -> Value:
    try:
        return _visit(expression.tree, known)
    except ExpressionError as error:
        raise ExpressionError(f"reference of {name}: {error}") from None
    except (ValueError, TypeError, IndexError, MemoryError, OverflowError) as error:
        raise ExpressionError(f"reference of {name}: {error}") from None


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def _exact(values: Array) -> Value:
    kind = "f" if values.dtype.name.startswith(("float", "bfloat")) else values.dtype.kind
    number: Array = values.astype({"f": np.float64, "b": np.bool_}.get(kind, np.int64))
    return Value(number, np.zeros((), np.float64))


def _expectation(
    name: str, value: Value, dtype: str, shape: tuple[int, ...], tolerance: Tolerance | None
) -> Expectation:
    try:
        number: Array = np.broadcast_to(value.number, shape)
        error: Array = np.broadcast_to(value.error, shape)
    except ValueError:
        raise ExpressionError(
            f"reference of {name} has shape {list(value.number.shape)}, the array has {list(shape)}"
        ) from None
    if tolerance is not None:
        error = np.abs(number.astype(np.float64)) * tolerance.relative + tolerance.absolute
    if format_of(dtype) is None:
        within = np.floor(error) if tolerance is not None else np.zeros(shape)
        undecided = np.zeros(shape, np.bool_) if tolerance is not None else error > 0
        return anything(whole_numbers(number, within, dtype), undecided)
    exact = number.astype(np.float64)
    width = error + np.abs(exact) * FLOAT64_SLACK
    expectation = expect(exact, exact - width, exact + width, dtype)
    if tolerance is not None and tolerance.ulp:
        expectation = expectation.wider(tolerance.ulp)
    return anything(expectation, np.isinf(error) & np.isfinite(exact))


# --- the tree -----------------------------------------------------------------------------------


def _visit(node: ast.expr, known: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=value):
            return _exact(np.asarray(value))
        case ast.Name(id=name):
            if name not in known:
                raise ExpressionError(f"nothing is called {name}; there are {', '.join(known)}")
            return known[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(op, _visit(operand, known))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _visit(left, known), _visit(right, known))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(op, _visit(left, known), _visit(right, known))
        case ast.Call(func=ast.Name(id=function)):
            return _call(node, function, known)
        case ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=ast.Constant(value=axis)):
            return _exact(np.asarray(_visit(array, known).number.shape[axis]))
        case ast.Subscript(value=array, slice=index):
            place = _index(index)
            return _shaped(_visit(array, known), lambda values: values[place])
        case ast.Attribute(value=array, attr="T"):
            return _shaped(_visit(array, known), np.transpose)
    raise ExpressionError(f"cannot evaluate {ast.unparse(node)}")


def _index(node: ast.expr | None) -> Any:
    """What NumPy takes for an index that `expression` let pass."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(operand=ast.Constant(value=int() as value)):
            return -value
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(_index(lower), _index(upper), _index(step))
        case ast.Tuple(elts=items):
            return tuple(_index(item) for item in items)
    return None


def _shaped(value: Value, change: Callable[[Array], Array]) -> Value:
    """A value whose elements are moved, none changed."""
    error = np.broadcast_to(value.error, value.number.shape)
    return Value(change(value.number), change(error))


def _rounded(number: Array, error: Array, relative: float = U) -> Value:
    """The result of an operation that is itself off by `relative`; nothing is known beyond float32."""
    number = np.asarray(number, np.float64)
    magnitude = np.abs(number)
    error = error + relative * (magnitude + error) + TINIEST
    lost = np.isnan(error) | (np.isfinite(number) & (magnitude + error > LARGEST))
    return Value(number, np.where(lost, np.inf, error))


def _floats(value: Value) -> tuple[Array, Array]:
    return value.number.astype(np.float64), value.error


def _unary(op: ast.unaryop, value: Value) -> Value:
    match op:
        case ast.USub():
            number = value.number.astype(np.int64) if value.number.dtype == np.bool_ else value.number
            return Value(-number, value.error)
        case ast.Invert():
            return Value(np.invert(value.number), value.error)
    return value


def _binary(op: ast.operator, a: Value, b: Value) -> Value:
    if not (a.inexact or b.inexact) and not isinstance(op, ast.Div):
        return _whole_numbers_only(op, a, b)
    (x, ex), (y, ey) = _floats(a), _floats(b)
    match op:
        case ast.Add():
            return _rounded(x + y, ex + ey)
        case ast.Sub():
            return _rounded(x - y, ex + ey)
        case ast.Mult():
            return _rounded(x * y, _product(x, ex, y, ey))
        case ast.Div():
            quotient = x / y
            room = np.abs(y) - ey
            error = np.where(room > 0, (ex + np.abs(quotient) * ey) / room, np.inf)
            return _rounded(quotient, error, APPROXIMATE)
        case ast.Pow():
            power = np.power(x, y)
            growth = np.expm1(np.abs(y) * np.log1p(ex / np.abs(x))) + np.expm1(ey * np.abs(np.log(np.abs(x))))
            growth = np.where((ex == 0) & (ey == 0), 0.0, growth)
            return _rounded(power, np.abs(power) * growth, _POWER)
        case ast.MatMult():
            exact = x @ y
            total = np.abs(x) @ np.abs(y)
            ones_x, ones_y = np.broadcast_to(ex, x.shape), np.broadcast_to(ey, y.shape)
            carried = np.abs(x) @ ones_y + ones_x @ np.abs(y) + ones_x @ ones_y
            depth = max(1, x.shape[-1])
            roundings = gamma(ROUNDINGS_PER_TERM * depth) + depth * 2.0**-52
            return _rounded(exact, carried + roundings * (total + carried) + depth * TINIEST, 0.0)
        case ast.FloorDiv():
            return _floored(_binary(ast.Div(), a, b), np.floor)
    raise ExpressionError("% and bit operations take integers only")


def _product(x: Array, ex: Array, y: Array, ey: Array) -> Array:
    found: Array = np.abs(x) * ey + np.abs(y) * ex + ex * ey
    return found


_WHOLE: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.MatMult: np.matmul,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.BitXor: np.bitwise_xor,
    ast.LShift: np.left_shift,
    ast.RShift: np.right_shift,
}


def _whole_numbers_only(op: ast.operator, a: Value, b: Value) -> Value:
    """Exact, modulo 2^64; the output's dtype cuts it down further, as two's complement does."""
    logical = isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and a.number.dtype == b.number.dtype
    x, y = (a.number, b.number) if logical else (a.number.astype(np.int64), b.number.astype(np.int64))
    return Value(np.asarray(_WHOLE[type(op)](x, y)), np.maximum(a.error, b.error))


_COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


def _compare(op: ast.cmpop, a: Value, b: Value) -> Value:
    slack = a.error + b.error
    close = np.abs(a.number.astype(np.float64) - b.number.astype(np.float64)) <= slack
    undecided = (slack > 0) & close
    return Value(np.asarray(_COMPARE[type(op)](a.number, b.number)), undecided.astype(np.float64))


# --- functions ----------------------------------------------------------------------------------


def _call(node: ast.Call, function: str, known: Mapping[str, Value]) -> Value:
    keywords = {k.arg or "": ast.literal_eval(k.value) for k in node.keywords}
    if function == "astype":
        assert isinstance(node.args[1], ast.Constant)
        return _astype(_visit(node.args[0], known), str(node.args[1].value))
    if function == "reshape":
        shape = _whole_tuple(node.args[1], known)
        return _shaped(_visit(node.args[0], known), lambda values: values.reshape(shape))
    arguments = [_visit(argument, known) for argument in node.args]
    first = arguments[0]
    match function:
        case "where":
            return _where(*arguments)
        case "maximum" | "minimum":
            chosen = np.maximum if function == "maximum" else np.minimum
            numbers = chosen(arguments[0].number, arguments[1].number)
            return Value(np.asarray(numbers), np.maximum(arguments[0].error, arguments[1].error))
        case "transpose":
            axes = keywords.get("axes")
            return _shaped(first, lambda values: np.transpose(values, axes))
        case "arange":
            return _exact(np.arange(int(first.number)))
        case "sum" | "mean" | "prod" | "max" | "min" | "argmax" | "argmin":
            return _reduced(function, first, keywords.get("axis"), bool(keywords.get("keepdims", False)))
        case "cumsum":
            return _accumulated(first, keywords.get("axis"))
        case "abs":
            return Value(np.abs(first.number), first.error)
        case "floor" | "ceil":
            return _floored(first, np.floor if function == "floor" else np.ceil)
    x, ex = _floats(first)
    number, error, relative = SMOOTH[function](x, ex)
    return _rounded(number, error, relative)


def _whole_tuple(node: ast.expr, known: Mapping[str, Value]) -> tuple[int, ...]:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    return tuple(int(_visit(item, known).number) for item in items)


def _where(condition: Value, a: Value, b: Value) -> Value:
    number = np.where(condition.number, a.number, b.number)
    error = np.where(condition.number, a.error, b.error)
    either = np.abs(a.number.astype(np.float64) - b.number.astype(np.float64)) + np.maximum(a.error, b.error)
    return Value(number, np.where(condition.error > 0, either, error))


def _astype(value: Value, dtype: str) -> Value:
    form = format_of(dtype)
    if form is not None:
        number = value.number.astype(np.float64)
        error = value.error + (np.abs(number) + value.error) * 2.0**-form.precision + form.smallest / 2
        beyond = np.isfinite(number) & (np.abs(number) + error > form.largest)
        return Value(number, np.where(beyond, np.inf, error))
    whole = _floored(value, np.trunc) if value.inexact else value
    cut = whole.number.astype(np.int64).astype(numpy_dtype(dtype))
    return Value(cut if cut.dtype == np.bool_ else cut.astype(np.int64), whole.error)


def _floored(value: Value, step: Callable[[Array], Array]) -> Value:
    x, ex = _floats(value)
    low, high = step(x - ex), step(x + ex)
    return Value(step(x), np.maximum(high - step(x), step(x) - low))


def _reduced(function: str, value: Value, axis: Any, keepdims: bool) -> Value:
    kept: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    spread = np.broadcast_to(value.error, value.number.shape)
    if function in ("max", "min"):
        chosen = np.max if function == "max" else np.min
        return Value(np.asarray(chosen(value.number, **kept)), np.asarray(np.max(spread, **kept)))
    if function in ("argmax", "argmin"):
        first = np.argmax if function == "argmax" else np.argmin
        blurred = np.max(spread, **kept) > 0
        return Value(np.asarray(first(value.number, **kept)), np.where(blurred, np.inf, 0.0))
    if function == "prod":
        return _multiplied(value, spread, kept)
    if not value.inexact and function == "sum":
        whole = np.asarray(np.sum(value.number.astype(np.int64), **kept))
        return Value(whole, np.asarray(np.sum(spread, **kept)))
    x = value.number.astype(np.float64)
    total, carried = np.asarray(np.sum(x, **kept)), np.sum(spread, **kept)
    magnitude = np.sum(np.abs(x), **kept)
    terms = max(1, x.size // max(1, total.size))
    error = carried + (gamma(terms - 1) + terms * 2.0**-52) * (magnitude + carried)
    found = _rounded(total, error, 0.0)
    return found if function == "sum" else _binary(ast.Div(), found, _exact(np.asarray(terms)))


def _multiplied(value: Value, spread: Array, kept: dict[str, Any]) -> Value:
    if not value.inexact:
        return Value(np.asarray(np.prod(value.number.astype(np.int64), **kept)), np.sum(spread, **kept))
    total = np.asarray(np.prod(value.number, **kept))
    terms = max(1, value.number.size // max(1, total.size))
    growth = np.expm1(np.sum(np.log1p(spread / np.abs(value.number)), **kept)) + gamma(terms)
    return _rounded(total, np.abs(total) * growth, terms * 2.0**-52)


def _accumulated(value: Value, axis: Any) -> Value:
    spread = np.broadcast_to(value.error, value.number.shape)
    if not value.inexact:
        whole = np.cumsum(value.number.astype(np.int64), axis=axis)
        return Value(whole, np.cumsum(spread, axis=axis))
    x = value.number
    carried, magnitude = np.cumsum(spread, axis=axis), np.cumsum(np.abs(x), axis=axis)
    terms = x.size if axis is None else x.shape[axis]
    error = carried + (gamma(max(0, terms - 1)) + terms * 2.0**-52) * (magnitude + carried)
    return _rounded(np.cumsum(x, axis=axis), error, 0.0)
