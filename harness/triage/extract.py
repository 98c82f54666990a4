"""Make the kernels of a script stand alone: nothing but cuda.tile and what the kernels need.

A tracer cannot import torch, let alone run a script's launches. Statements that no kernel needs are blanked
out, so that every line that is left keeps its number: errors still name the reader's lines.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from typing import Any

_OURS = ("cuda", "__future__", *sys.stdlib_module_names)


def stands_alone(text: str) -> bool:
    """Whether the file imports cuda.tile and the standard library only, and launches nothing."""
    tree = ast.parse(text)
    launches = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "launch"
        for node in ast.walk(tree)
    )
    return not launches and not any(_foreign(node) for node in ast.walk(tree))


def extract(text: str, kernels: Iterable[str], values: Mapping[str, Any]) -> str:
    """The file without all that `kernels` (module-level names) do not need.

    Where a needed name hangs on a foreign module, its plain value in `values` takes its place.
    """
    tree = ast.parse(text)
    bound: dict[str, list[int]] = {}
    for position, statement in enumerate(tree.body):
        for name in _binds(statement):
            bound.setdefault(name, []).append(position)
    kept: set[int] = set()
    literal: dict[int, str] = {}
    waiting = list(kernels)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for position in bound.get(name, ()):
            statement = tree.body[position]
            if position in kept or position in literal:
                continue
            if _hangs_on_foreign(statement, tree, bound) and name in values:
                literal[position] = f"{name} = {values[name]!r}"
                continue
            kept.add(position)
            waiting += _names(statement)
    kept |= {i for i, statement in enumerate(tree.body) if _always(statement)}
    lines = text.splitlines()
    out = [""] * len(lines)
    for position in kept:
        for number in _span(tree.body[position]):
            out[number - 1] = lines[number - 1]
    for position, replacement in literal.items():
        out[tree.body[position].lineno - 1] = replacement
    return "\n".join(out).rstrip("\n") + "\n"


def _span(statement: ast.stmt) -> range:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return range(first, (statement.end_lineno or statement.lineno) + 1)


def _always(statement: ast.stmt) -> bool:
    """The module's docstring and imports of cuda.tile."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__" or (statement.module or "").startswith("cuda")
    return isinstance(statement, ast.Import) and all(a.name.startswith("cuda") for a in statement.names)


def _binds(statement: ast.stmt) -> set[str]:
    """Names that a module-level statement binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(alias.asname or alias.name).partition(".")[0] for alias in names}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _names(statement: ast.stmt) -> set[str]:
    """Names that a statement reads, however deep."""
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def _foreign(node: ast.AST) -> bool:
    """An import of something that a tracer does not have."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] not in _OURS for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").partition(".")[0] not in _OURS
    return False


def _hangs_on_foreign(
    statement: ast.stmt, tree: ast.Module, bound: Mapping[str, list[int]], depth: int = 8
) -> bool:
    if _foreign(statement):
        return True
    if depth == 0 or isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return False
    return any(
        _hangs_on_foreign(tree.body[position], tree, bound, depth - 1)
        for name in _names(statement)
        for position in bound.get(name, ())
        if tree.body[position] is not statement
    )
