"""What can be told of a kernel from its text, without importing its file. Pure.

Only what is certain counts: a function of the file's own level that is bound once, under no decorator or
under cuda.tile's own. Whatever is made otherwise is for the frontend to look at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_KERNEL, _FUNCTION, _CONSTANT = (f"cuda.tile.{name}" for name in ("kernel", "function", "Constant"))


@dataclass(frozen=True)
class Function:
    """A function that a file binds to a name: the line of its `def`, the names of its parameters, and of
    those annotated as `ct.Constant` the type in brackets, "" without one."""

    line: int
    is_kernel: bool
    parameters: tuple[str, ...]
    constants: Mapping[str, str]


class KernelText:
    """The text of one file. Of what is not Python nothing is known: that is for the frontend to report."""

    def __init__(self, text: str) -> None:
        try:
            self._body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._body = []
        self._bound = tuple(_bound(self._body))
        self._imported = _imported(self._body)

    def names(self) -> set[str]:
        """Names that the file binds at its own level; none where that cannot be told."""
        return set() if "*" in self._bound else set(self._bound)

    def function(self, name: str) -> Function | None:
        """The function of this name, where it is certain what it is."""
        found = [node for node in self._body if isinstance(node, ast.FunctionDef) and node.name == name]
        if len(found) != 1 or self._bound.count(name) != 1 or "*" in self._bound:
            return None
        (node,) = found
        made_by = [self._leads_to(decorator) for decorator in node.decorator_list]
        given = node.args
        if made_by not in ([], [_KERNEL], [_FUNCTION]) or given.vararg or given.kwarg:
            return None
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        constants = {
            a.arg: ast.unparse(a.annotation.slice) if isinstance(a.annotation, ast.Subscript) else ""
            for a in arguments
            if a.annotation and self._leads_to(a.annotation) == _CONSTANT
        }
        names = tuple(argument.arg for argument in arguments)
        return Function(node.lineno, made_by == [_KERNEL], names, constants)

    def _leads_to(self, expression: ast.expr) -> str | None:
        """The full name of something of cuda.tile that an expression names, calls or indexes."""
        while isinstance(expression, ast.Call | ast.Subscript):
            expression = expression.func if isinstance(expression, ast.Call) else expression.value
        first, dot, rest = ast.unparse(expression).partition(".")
        full = self._imported.get(first, first) + dot + rest
        return full if full.startswith("cuda.tile.") else None


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    for node in _own_level(body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)


def _imported(body: list[ast.stmt]) -> dict[str, str]:
    """What the names of imports stand for."""
    stands: dict[str, str] = {}
    for node in _own_level(body):
        match node:
            case ast.Import(names=aliases):
                stands |= {alias.asname: alias.name for alias in aliases if alias.asname}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                stands |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in aliases}
    return stands


def _own_level(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes but those inside functions and classes."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
