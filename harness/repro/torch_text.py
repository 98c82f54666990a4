"""A reference written as expressions, as torch code in float64 for a script that stands alone. Pure."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from harness.expression import parse
from harness.repro.spec import ReproError

_SAME = (
    *("abs", "sqrt", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "sigmoid", "floor"),
    *("ceil", "where", "reshape"),
)
_REDUCTIONS = {
    "sum": "sum",
    "mean": "mean",
    "prod": "prod",
    "max": "amax",
    "min": "amin",
    "argmax": "argmax",
    "argmin": "argmin",
    "cumsum": "cumsum",
}
_DIMENSIONS = {"axis": "dim", "keepdims": "keepdim"}


def reference_text(expressions: Sequence[tuple[str, str]], names: Sequence[str], outputs: set[str]) -> str:
    """A function `reference` of `names`, arrays in float64, that returns a dict of the outputs.

    Raises ReproError for what torch cannot be told.
    """
    lines = [f"    {name} = {torch_text(text)}" for name, text in expressions]
    told = ", ".join(f'"{name}": {name}' for name, _ in expressions if name in outputs)
    return (
        f"def reference(torch, {', '.join(names)}):\n"
        '    """What the outputs should be, in float64."""\n'
        + "\n".join(lines)
        + f"\n    return {{{told}}}\n"
    )


def torch_text(text: str) -> str:
    """One expression. Raises ReproError."""
    return ast.unparse(_Translated().visit(parse(text).tree))


class _Translated(ast.NodeTransformer):
    """NumPy's names to torch's."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        function = node.func.id
        arguments = [self.visit(argument) for argument in node.args]
        given = {k.arg or "": k.value for k in node.keywords}
        match function:
            case "transpose":
                if "axes" in given:
                    return _method(arguments[0], "permute", given["axes"])
                return ast.Attribute(arguments[0], "T", ast.Load())
            case "maximum" | "minimum":
                # torch takes tensors only; of two equal numbers it does not matter which is taken.
                sign = ast.Gt() if function == "maximum" else ast.Lt()
                return _torch("where", ast.Compare(arguments[0], [sign], [arguments[1]]), *arguments)
            case "astype":
                dtype = ast.Attribute(ast.Name("torch"), str(ast.literal_eval(arguments[1])), ast.Load())
                return _method(_method(arguments[0], "to", dtype), "double")
            case "arange":
                made = _torch("arange", arguments[0])
                made.keywords = [ast.keyword("device", ast.Constant("cuda"))]
                return made
        if function in _REDUCTIONS:
            made = _torch(_REDUCTIONS[function], *arguments)
            made.keywords = [ast.keyword(_DIMENSIONS[name], value) for name, value in given.items()]
            return made
        if function in _SAME:
            return _torch(function, *arguments)
        raise ReproError(f"torch has no {function} that would do; write this repro by hand")

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        array = self.visit(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        turned = []
        for axis, part in enumerate(parts):
            if isinstance(part, ast.Slice) and isinstance(part.step, ast.UnaryOp):
                if part.lower or part.upper or ast.unparse(part.step) != "-1":
                    raise ReproError("torch takes no steps backwards; write this repro by hand")
                turned.append(axis)
        if not turned:
            return ast.Subscript(array, node.slice, ast.Load())
        if len(parts) > len([part for part in parts if isinstance(part, ast.Slice)]):
            raise ReproError("torch takes no steps backwards beside indices; write this repro by hand")
        axes = ast.Tuple([ast.Constant(axis) for axis in turned], ast.Load())
        rest = [ast.Slice() if axis in turned else part for axis, part in enumerate(parts)]
        flipped = _torch("flip", array, axes)
        if all(ast.unparse(part) == ":" for part in rest):
            return flipped
        return ast.Subscript(flipped, ast.Tuple(rest, ast.Load()), ast.Load())


def _torch(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("torch"), name, ast.Load()), list(arguments), [])


def _method(value: ast.expr, name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(value, name, ast.Load()), list(arguments), [])
