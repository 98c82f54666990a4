"""The cheap check that comes before any compiler: does a candidate make sense as Python at all?

Most variants of a kernel fail here, because a name has lost its definition; a trace would cost a
hundred times as much to say so.
"""

from __future__ import annotations

import ast
import builtins

from harness.reduce.candidate import Candidate
from harness.reduce.parsing import parse_python

_BUILTINS = frozenset(dir(builtins))


def plausible(candidate: Candidate) -> bool:
    """Whether it parses, has its kernel with the parameters described, and every name has a value."""
    return complaint(candidate) is None


def complaint(candidate: Candidate) -> str | None:
    """What is wrong with a candidate, in words; None if nothing is."""
    try:
        module = parse_python(candidate.text)
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"it does not parse: {error}"
    kernel = next((f for f in _functions(module) if f.name == candidate.function), None)
    if kernel is None or not kernel.decorator_list:
        return f"it has no decorated function {candidate.function!r}"
    names = [argument.arg for argument in kernel.args.posonlyargs + kernel.args.args]
    if names != [parameter.name for parameter in candidate.parameters]:
        return "its parameters are not the ones described"
    scope = _Flow(set(_BUILTINS))
    scope.block(module.body)
    known = scope.known
    for function in _functions(module):
        inner = _Flow(known | {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)})
        inner.block(function.body)
        if inner.missing or scope.missing:
            break
    else:
        return None
    return f"{(inner.missing or scope.missing)[0]} has no value"


def _functions(module: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in module.body if isinstance(node, ast.FunctionDef)]


class _Flow:
    """Walks statements in order: which names may have a value, which are read before any could."""

    def __init__(self, known: set[str]) -> None:
        self.known = set(known)
        self.missing: list[str] = []

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef():
                for decorator in node.decorator_list:
                    self.reads(decorator)
                self.reads(node.args)
                self.known.add(node.name)
            case ast.Import() | ast.ImportFrom():
                self.known |= {(name.asname or name.name).partition(".")[0] for name in node.names}
            case ast.For():
                self.reads(node.iter)
                self.binds(node.target)
                self.block(node.body)
                self.block(node.orelse)
            case ast.If() | ast.While():
                self.reads(node.test)
                self.block(node.body)
                self.block(node.orelse)
            case ast.AugAssign():
                self.reads(node.value)
                if isinstance(node.target, ast.Name) and node.target.id not in self.known:
                    self.missing.append(node.target.id)
            case _:
                self.reads(node)
                self.binds(node)

    def reads(self, node: ast.AST) -> None:
        inner = _bound_inside(node) if _has_scope(node) else set()
        for name in ast.walk(node):
            match name:
                case ast.Name(id=read, ctx=ast.Load()) if read not in self.known | inner:
                    self.missing.append(read)

    def binds(self, node: ast.AST) -> None:
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                self.known.add(name.id)
            elif isinstance(name, ast.ClassDef):
                self.known.add(name.name)


def _has_scope(node: ast.AST) -> bool:
    """Whether names are bound inside by comprehensions, lambdas, with, try and the like."""
    scopes = (ast.comprehension, ast.Lambda, ast.With, ast.Try, ast.NamedExpr, ast.Match, ast.ClassDef)
    return any(isinstance(inner, scopes) for inner in ast.walk(node))


def _bound_inside(node: ast.AST) -> set[str]:
    stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
