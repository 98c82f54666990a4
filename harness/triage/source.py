"""A module of a reader's as statements, what is kept of it, and how that is written down again."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.triage.names import binds


@dataclass(frozen=True)
class Module:
    """A module of the reader's: its text and, as expressions, the values of its plain names."""

    name: str
    text: str
    values: Mapping[str, str] = field(default_factory=dict)
    file: str = ""


class Source:
    """A module as statements, and what is kept of it."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.tree = ast.parse(module.text)
        self.lines = module.text.splitlines()
        self.bound: dict[str, list[int]] = {}
        for position, statement in enumerate(self.tree.body):
            for name in binds(statement):
                self.bound.setdefault(name, []).append(position)
        self.kept: dict[int, str] = {}
        """What stands in the place of a kept statement, by position."""


def in_place(source: Source) -> str:
    """The kept statements at their own lines, the docstring and `__future__` imports with them."""
    out = [""] * len(source.lines)
    for position, statement in enumerate(source.tree.body):
        text = source.kept.get(position)
        if text is None and always(statement):
            text = "\n".join(source.lines[span(statement)[0] - 1 : span(statement)[1]])
        if text:
            first = span(statement)[0]
            lines = text.splitlines()
            shared = out[first - 1]
            out[first - 1] = f"{shared}; {lines[0]}" if shared and lines[0] not in shared else lines[0]
            out[first : first + len(lines) - 1] = lines[1:]
    return "\n".join(out).rstrip("\n") + "\n"


def packed(source: Source, file: str) -> str:
    """The kept statements one after another."""
    parts = [source.kept[position] for position in sorted(source.kept) if source.kept[position]]
    future = [ast.unparse(s) for s in source.tree.body if always(s) and isinstance(s, ast.ImportFrom)]
    return "\n\n".join([*future, f"# from {file}", *parts]) + "\n"


def span(statement: ast.stmt) -> tuple[int, int]:
    """First line, that of a decorator where there is one, and last line."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return first, statement.end_lineno or statement.lineno


def always(statement: ast.stmt) -> bool:
    """The module's docstring, and what every statement below it means otherwise without."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
