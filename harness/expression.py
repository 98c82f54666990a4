"""What a kernel should compute, written as expressions over its parameters: data, not code to run.

A matrix says `reference = { y = "x / sqrt(mean(x * x, axis=1, keepdims=True) + EPS) * w" }`. The text is
Python's grammar and NumPy's meaning, cut down to what arithmetic needs. It travels in bundles and is
evaluated by `execute.references.expression`; here it is only read and checked. Pure.
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass

MAX_LENGTH = 2000
MAX_DEPTH = 60

ELEMENTWISE = (
    *("abs", "sqrt", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "sigmoid"),
    *("floor", "ceil", "maximum", "minimum", "where", "astype"),
)
REDUCTIONS = ("sum", "mean", "prod", "max", "min", "argmax", "argmin")
"""These take `axis=` (a number, or a tuple of them; left out: all) and `keepdims=`."""

SHAPING = ("transpose", "reshape", "arange", "cumsum")
FUNCTIONS = (*ELEMENTWISE, *REDUCTIONS, *SHAPING)

KEYWORDS = {
    **dict.fromkeys(REDUCTIONS, ("axis", "keepdims")),
    "cumsum": ("axis",),
    "transpose": ("axes",),
}
_ARITY = {
    **dict.fromkeys((*ELEMENTWISE, *REDUCTIONS, "transpose", "arange", "cumsum"), 1),
    **dict.fromkeys(("maximum", "minimum", "astype", "reshape"), 2),
    "where": 3,
}

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_UNARY = (ast.USub, ast.UAdd, ast.Invert)


class ExpressionError(ValueError):
    """The expression cannot be understood; the text says what is wrong and what to write."""


@dataclass(frozen=True)
class Expression:
    """A checked expression: its tree, and the names it reads in order of appearance."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]


def parse(text: str) -> Expression:
    """Read and check one expression. Raises ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"is longer than {MAX_LENGTH} characters; split it into named steps")
    try:
        tree = ast.parse(f"({text.strip()}\n)", mode="eval").body  # in brackets: it may take several lines
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else "it is no expression"
        raise ExpressionError(f"is no expression ({said}); write one such as x * 2 + b") from None
    names: dict[str, None] = {}
    _check(tree, names, 0)
    return Expression(text, tree, tuple(names))


def _check(node: ast.expr, names: dict[str, None], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ExpressionError("is nested too deeply; split it into named steps")

    def inside(*nodes: ast.expr | None) -> None:
        for one in nodes:
            if one is not None:
                _check(one, names, depth + 1)

    match node:
        case ast.Constant(value=bool() | int() | float()):
            return
        case ast.Name(id=name):
            names[name] = None
        case ast.BinOp(op=op) if isinstance(op, (*_OPERATORS, *_BITWISE)):
            inside(node.left, node.right)
        case ast.UnaryOp(op=op) if isinstance(op, _UNARY):
            inside(node.operand)
        case ast.Compare(ops=[op], comparators=[right]) if isinstance(op, _COMPARISONS):
            inside(node.left, right)
        case ast.Call(func=ast.Name(id=function)):
            _check_call(node, function)
            inside(*_operands(node, function))
        case ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=ast.Constant(value=int())):
            inside(array)
        case ast.Subscript(value=array, slice=index):
            inside(array)
            for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                _check_index(part)
        case ast.Attribute(value=array, attr="T"):
            inside(array)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy" | "math" | "torch"), attr=name)):
            raise ExpressionError(f"{_quoted(node.func)} is written without its module: {name}(...)")
        case _:
            raise ExpressionError(
                f"{_quoted(node)} is not something an expression may hold; there are arithmetic, "
                f"comparisons, indexing, .T, .shape[0] and {', '.join(FUNCTIONS)}"
            )


def _check_call(node: ast.Call, function: str) -> None:
    if function not in FUNCTIONS:
        near = difflib.get_close_matches(function, FUNCTIONS, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(FUNCTIONS)}"
        raise ExpressionError(f"knows no function {function}; {remedy}")
    takes = _ARITY[function]
    if len(node.args) != takes or any(isinstance(argument, ast.Starred) for argument in node.args):
        raise ExpressionError(f"{function} takes {takes} argument{'s' * (takes > 1)}, not {len(node.args)}")
    for keyword in node.keywords:
        known = KEYWORDS.get(function, ())
        if keyword.arg not in known:
            rest = f"it takes {', '.join(f'{name}=' for name in known)}" if known else "it takes none"
            raise ExpressionError(f"{function} has no keyword {keyword.arg}=; {rest}")
        if not _is_number_or_tuple(keyword.value):
            raise ExpressionError(f"{keyword.arg}= takes numbers, such as 1, (0, 1), True or None")
    if function == "astype":
        wanted = node.args[1]
        if not isinstance(wanted, ast.Constant) or not isinstance(wanted.value, str):
            raise ExpressionError('astype takes a dtype in quotes, such as astype(x, "bfloat16")')


def _operands(node: ast.Call, function: str) -> list[ast.expr]:
    """The arguments that are expressions themselves."""
    if function == "astype":
        return node.args[:1]
    if function == "reshape" and isinstance(node.args[1], ast.Tuple):
        return [node.args[0], *node.args[1].elts]
    return node.args


def _is_number_or_tuple(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=None | bool() | int()) | ast.UnaryOp(ast.USub(), ast.Constant(value=int())):
            return True
        case ast.Tuple(elts=items):
            return all(_is_number_or_tuple(item) for item in items)
    return False


def _check_index(part: ast.expr) -> None:
    match part:
        case ast.Constant(value=None) | ast.Constant(value=int()):
            return
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
            return
        case ast.Slice(lower=lower, upper=upper, step=step):
            for bound in (lower, upper, step):
                if bound is not None:
                    _check_index(bound)
        case _:
            raise ExpressionError(
                f"{_quoted(part)} is no index; write numbers, slices of numbers, or None for a new axis"
            )


def _quoted(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f'"{text if len(text) <= 60 else text[:59] + "…"}"'
