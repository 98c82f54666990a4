"""Take a function out of the function or class around it, to the level of the module. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from harness.triage.source import span


class ExtractError(ValueError):
    """A kernel cannot be made to stand alone; the text says why, and what to do."""


def lifted(text: str, nested: Mapping[str, Any]) -> str:
    """The text with a nested function in the place of the statement around it, its lines unmoved; what its
    names stand for is bound before it where it is plain, and else at the end.

    `nested` is `line` and `name` of the function, its `hints` if it is a kernel and, by name, `values` that
    it has from outside: each an expression (`text`), another nested `function`, or `unknown` with its type.
    Raises ExtractError.
    """
    lines = text.splitlines()
    tree = ast.parse(text)
    functions = list(_functions(nested))
    blank: set[int] = set()
    moved: dict[int, str] = {}
    heads: dict[int, list[str]] = {}
    tail: list[str] = []
    for function in functions:
        node = _at(tree, function)
        if isinstance(node, ast.Lambda):
            tail += _bindings(tree, function)
            continue
        outer = next(s for s in tree.body if node in ast.walk(s))
        first, last = span(outer)
        blank |= set(range(first, last + 1))
        start, end = span(node)
        for number in range(start, end + 1):
            moved[number] = lines[number - 1].removeprefix(" " * node.col_offset)
        for decorator in node.decorator_list:
            moved |= _redecorated(decorator, function)
        for binding in _bindings(tree, function):
            literal = _is_literal(binding.partition(" = ")[2])
            (heads.setdefault(first, []) if literal else tail).append(binding)
        if "hints" in function and not any(not _is_wrapping(d) for d in node.decorator_list):
            given = "".join(f", {name}={value}" for name, value in function["hints"].items())
            made = f"{node.name} = {_cuda_tile(tree)}.kernel({node.name}{given})"
            tail.append(made)
    for number in blank:
        lines[number - 1] = moved.get(number, "")
    for number, statements in heads.items():
        lines[number - 1] = "; ".join(dict.fromkeys(statements))
    return "\n".join([*lines, *dict.fromkeys(tail)]) + "\n"


def _redecorated(decorator: ast.expr, function: Mapping[str, Any]) -> dict[int, str]:
    """Lines of a decorator that cannot stay as it is: one that a class needs goes, and one that reads what
    only the function around it knows gets the hints that it came to."""
    first, last = decorator.lineno, decorator.end_lineno or decorator.lineno
    if _is_wrapping(decorator):
        return dict.fromkeys(range(first, last + 1), "")
    if not isinstance(decorator, ast.Call) or not function.get("hints"):
        return {}
    if all(_is_literal(ast.unparse(word.value)) for word in decorator.keywords):
        return {}
    words = ((word.arg or "", ast.unparse(word.value)) for word in decorator.keywords)
    given = ", ".join(f"{name}={function['hints'].get(name, value)}" for name, value in words)
    text = f"@{ast.unparse(decorator.func)}({given})"
    return {number: text if number == first else "" for number in range(first, last + 1)}


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text.startswith('float("')
    return True


def _cuda_tile(tree: ast.Module) -> str:
    """What the file calls cuda.tile."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "cuda.tile":
                    return alias.asname or alias.name
    return "cuda.tile"


def _functions(nested: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield nested
    for value in nested["values"].values():
        if "function" in value:
            yield from _functions(value["function"])


def _bindings(tree: ast.Module, function: Mapping[str, Any]) -> list[str]:
    """Statements that bind what the function has from outside; none for what has its name already."""
    told = {name: _text(tree, name, value) for name, value in function["values"].items()}
    return [f"{name} = {text}" for name, text in told.items() if text != name]


def _text(tree: ast.Module, name: str, value: Mapping[str, Any]) -> str:
    if "unknown" in value:
        raise ExtractError(
            f"the kernel has {name} from the function around it, of type {value['unknown']}, which cannot be "
            "written down; make it a number, a word, a type of cuda.tile or a function, or bind it in the "
            "module"
        )
    if "text" in value:
        return str(value["text"])
    node = _at(tree, value["function"])
    return ast.unparse(node) if isinstance(node, ast.Lambda) else node.name


def _at(tree: ast.Module, function: Mapping[str, Any]) -> ast.FunctionDef | ast.Lambda:
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and "column" in function and node.lineno == function["line"]:
            end = node.end_col_offset if node.end_lineno == node.lineno else None
            if node.col_offset <= function["column"] and (end is None or function["column"] < end):
                return node
        if not isinstance(node, ast.FunctionDef) or node.name != function["name"]:
            continue
        if span(node)[0] <= function["line"] <= node.lineno:
            return node
    raise ExtractError(f"the text of {function['name']}, line {function['line']}, cannot be found")


def _is_wrapping(decorator: ast.expr) -> bool:
    """Of a class: what only makes a function an attribute of another kind."""
    return isinstance(decorator, ast.Name) and decorator.id in ("staticmethod", "classmethod")
