"""Make a kernel of a script stand alone: one file with nothing but cuda.tile and what the kernel needs.

A tracer cannot import torch, let alone run a script's launches. Statements that the kernel does not need are
blanked out, so that every line that is left keeps its number: errors still name the reader's lines. What it
needs of the reader's other modules goes ahead of it, and only then lines move.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any

from harness.triage.lift import ExtractError, lifted
from harness.triage.names import binds, notes, part_that_binds, reads
from harness.triage.source import Module, Source, in_place, packed, span
from harness.triage.strangers import SURROUNDINGS, imports, stranger


def stands_alone(text: str) -> bool:
    """Whether the file imports cuda.tile and the standard library only, and launches nothing."""
    tree = ast.parse(text)
    launches = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "launch"
        for node in ast.walk(tree)
    )
    return not launches and not any(stranger(node) for node in ast.walk(tree))


def extract(
    home: str, name: str, modules: Mapping[str, Module], nested: Mapping[str, Any] | None = None
) -> str:
    """The text of a file with the kernel that is `name` in the module `home`, and what it needs of `modules`.

    `nested` describes a kernel inside another function or a class (see `lifted`). Raises ExtractError, which
    says what cannot be followed and what to do.
    """
    if nested is not None:
        text = lifted(modules[home].text, nested)
        modules = {**modules, home: Module(home, text, modules[home].values, modules[home].file)}
    extraction = _Extraction(home, modules)
    extraction.need(home, name)
    return extraction.text()


class _Extraction:
    def __init__(self, home: str, modules: Mapping[str, Module]) -> None:
        self.home = home
        self.modules = modules
        self.sources: dict[str, Source] = {}
        """In the order in which they must stand: what is needed goes ahead."""
        self.seen: set[tuple[str, str]] = set()
        self.owner: dict[str, tuple[str, str]] = {}
        """Of every name in the file, the module that it is of, and the text that binds it there."""

    def source(self, name: str) -> Source:
        if name not in self.sources:
            self.sources = {name: Source(self.modules[name])} | self.sources
        return self.sources[name]

    def need(self, home: str, name: str) -> None:
        """Keep what binds a name, and all that it reads."""
        if (home, name) in self.seen:
            return
        self.seen.add((home, name))
        source = self.source(home)
        positions = source.bound.get(name, [])
        if not positions and not hasattr(builtins, name):
            self._from_star(home, name)
        for position in positions:
            several = isinstance(source.tree.body[position], ast.Import | ast.ImportFrom)
            if several or position not in source.kept:
                self._keep(home, position, name)

    def _from_star(self, home: str, name: str) -> None:
        """A name that `from module import *` may bind."""
        source = self.source(home)
        for position, statement in enumerate(source.tree.body):
            if not isinstance(statement, ast.ImportFrom) or statement.names[0].name != "*":
                continue
            target = self._absolute(home, statement)
            if target in self.modules:
                if name in self.source(target).bound:
                    self.need(target, name)
            elif not stranger(statement):
                source.kept[position] = self._segment(source, statement)

    def _keep(self, home: str, position: int, name: str) -> None:
        source = self.source(home)
        statement = source.tree.body[position]
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._keep_import(home, position, name)
            return
        value = source.module.values.get(name)
        if value is not None and self._hangs_on_stranger(home, statement, name):
            last = max(source.bound[name])
            for other in source.bound[name]:
                if not isinstance(source.tree.body[other], ast.FunctionDef | ast.ClassDef):
                    source.kept[other] = f"{name} = {value}" if other == last else ""
            self._own(home, name, f"{name} = {value}")
            return
        source.kept[position] = ""
        segment, needed = self._rewritten(home, statement)
        source.kept[position] = segment
        for bound in binds(statement):
            self._own(home, bound, segment)
        for module, wanted in needed:
            self.need(module, wanted)

    def _own(self, home: str, name: str, text: str) -> None:
        """Two modules may bind a name if they bind it alike."""
        other = self.owner.setdefault(name, (home, text))
        if other[0] != home and other[1] != text:
            raise ExtractError(
                f"{self._file(home)} and {self._file(other[0])} both define {name}, each in its own "
                "way; put the kernel and what it calls into one file"
            )

    # --- imports ------------------------------------------------------------------------------

    def _keep_import(self, home: str, position: int, name: str) -> None:
        source = self.source(home)
        statement = source.tree.body[position]
        assert isinstance(statement, ast.Import | ast.ImportFrom)
        alias = next(a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name)
        if isinstance(statement, ast.Import):
            if alias.name.partition(".")[0] in {m.partition(".")[0] for m in self.modules}:
                raise self._unfollowed(home, statement, name)
            text = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        else:
            target = self._absolute(home, statement)
            if target in self.modules:
                self.need(target, alias.name)
                if alias.asname is not None and alias.asname != alias.name:
                    source.kept[position] = self._joined(source, position, f"{alias.asname} = {alias.name}")
                    self._own(home, alias.asname, f"{alias.asname} = {alias.name}")
                return
            text = f"from {statement.module} import {alias.name}" + (
                f" as {alias.asname}" if alias.asname else ""
            )
        if stranger(part_that_binds(statement, name)):
            value = source.module.values.get(name)
            if value is None:
                raise self._unfollowed(home, statement, name)
            text = f"{name} = {value}"
        source.kept[position] = self._joined(source, position, text)
        self._own(home, name, text)

    def _joined(self, source: Source, position: int, text: str) -> str:
        before = source.kept.get(position)
        return f"{before}; {text}" if before else text

    def _unfollowed(self, home: str, statement: ast.stmt, name: str) -> ExtractError:
        code = ast.unparse(statement)
        place = f"{self._file(home)}, line {statement.lineno}: {code}"
        return ExtractError(
            f"the kernel needs {name} ({place}), which a compiler's process does not have; write its value "
            "or its text into the file of the kernel"
        )

    def _absolute(self, home: str, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        package = home.split(".")[: -statement.level]
        return ".".join([*package, *([statement.module] if statement.module else [])])

    def _file(self, home: str) -> str:
        return self.modules[home].file.rpartition("/")[2] or home

    # --- statements ---------------------------------------------------------------------------

    def _rewritten(self, home: str, statement: ast.stmt) -> tuple[str, list[tuple[str, str]]]:
        """A statement's text, with names of the reader's other modules in the place of `module.name`, and
        what it needs."""
        source = self.source(home)
        edits: list[tuple[ast.expr, str]] = []
        needed: list[tuple[str, str]] = []
        done: set[ast.AST] = set()
        for note in notes(statement):
            if any(self._is_strange(home, name) for name in reads(note)):
                edits.append((note, "object"))
                done.update(ast.walk(note))
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and node not in done:
                found = self._member(home, node)
                if found is not None:
                    edits.append((node, found[1]))
                    needed.append(found)
                    done.update(ast.walk(node))
        gone = {n.id for n in done if isinstance(n, ast.Name)}
        left = {
            n.id
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n not in done
        }
        needed += [(home, name) for name in sorted(reads(statement)) if name in left or name not in gone]
        return self._segment(source, statement, edits), needed

    def _is_strange(self, home: str, name: str) -> bool:
        body, bound = self.source(home).tree.body, self.source(home).bound
        return any(stranger(part_that_binds(body[position], name)) for position in bound.get(name, ()))

    def _member(self, home: str, node: ast.Attribute) -> tuple[str, str] | None:
        """The module and the name that `module.name` means, where it is one of the reader's."""
        chain = [node.attr]
        base = node.value
        while isinstance(base, ast.Attribute):
            chain.insert(0, base.attr)
            base = base.value
        if not isinstance(base, ast.Name):
            return None
        source = self.source(home)
        for position in source.bound.get(base.id, ()):
            statement = source.tree.body[position]
            for alias in getattr(statement, "names", ()):
                if (alias.asname or alias.name.partition(".")[0]) != base.id:
                    continue
                if isinstance(statement, ast.ImportFrom):
                    start = f"{self._absolute(home, statement)}.{alias.name}"
                else:
                    start = alias.name if alias.asname else base.id
                module = ".".join([start.lstrip("."), *chain[:-1]])
                if module in self.modules:
                    return module, chain[-1]
        return None

    def _segment(
        self, source: Source, statement: ast.stmt, edits: list[tuple[ast.expr, str]] | None = None
    ) -> str:
        """The lines of a statement, its decorators included; `edits` replace expressions."""
        first, last = span(statement)
        lines = source.lines[first - 1 : last]
        for node, text in sorted(edits or (), key=lambda e: (e[0].lineno, e[0].col_offset), reverse=True):
            end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
            start, end = node.lineno - first, end_line - first
            head = lines[start].encode()[: node.col_offset].decode()
            tail = lines[end].encode()[end_column:].decode()
            lines[start : end + 1] = [head + text + tail, *[""] * (end - start)]
        return "\n".join(lines)

    def _hangs_on_stranger(self, home: str, statement: ast.stmt, name: str, depth: int = 8) -> bool:
        """Whether what the statement binds the name to needs what a tracer has not."""
        part = part_that_binds(statement, name)
        if stranger(part) or imports(part, SURROUNDINGS):
            return True
        if depth == 0 or isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return False
        if not isinstance(
            statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Import | ast.ImportFrom
        ):
            return True
        source = self.source(home)
        return any(
            self._hangs_on_stranger(home, source.tree.body[position], needed, depth - 1)
            for needed in reads(statement)
            for position in source.bound.get(needed, ())
            if source.tree.body[position] is not statement
        )

    # --- the file -----------------------------------------------------------------------------

    def text(self) -> str:
        """Everything that is kept."""
        used = {name: source for name, source in self.sources.items() if source.kept}
        order = [name for name in used if name != self.home] + [self.home]
        ahead = [packed(used[name], self._file(name)) for name in order[:-1]]
        own = in_place(used[self.home])
        if not ahead:
            return own
        future = "from __future__ import annotations\n"
        told = future if any(future in text for text in (*ahead, own)) else ""
        return told + "\n\n".join(text.replace(future, "").strip("\n") for text in (*ahead, own)) + "\n"
