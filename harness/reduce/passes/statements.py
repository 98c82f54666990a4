"""Passes that remove statements: runs of them, those that depend on one, block headers, single-use names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from harness.reduce.candidate import Candidate
from harness.reduce.engine import Pass
from harness.reduce.syntax import (
    Statement,
    edit,
    functions,
    guarded,
    names_bound,
    names_read,
    parse,
    renamed,
    statements,
    walk,
)

_LONGEST_LINE = 100
_PAIRS_UP_TO = 12
"""Statements up to which all pairs are tried: 66 of them at most."""


def drop_unused_definitions() -> Pass[Candidate]:
    """Everything at the top of the file that the kernel does not need; then its parts, last first."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        needed = _needed(module, candidate.function)
        if unused := [node for node in module.body if node not in needed]:
            yield replace(candidate, text=edit(module, removed=unused))
            for node in reversed(unused):
                yield replace(candidate, text=edit(module, removed=[node]))

    return Pass("drop unused definitions", variants)


def _needed(module: cst.Module, function: str) -> set[cst.CSTNode]:
    """Top-level nodes that the kernel names, directly or through others it names."""
    wanted, needed = {function}, set[cst.CSTNode]()
    while True:
        more = [node for node in module.body if node not in needed and _defines(node) & wanted]
        if not more:
            return needed
        needed |= set(more)
        for node in more:
            wanted |= set(names_read(node)) | {n for a in _annotations(node) for n in names_read(a)}


def _defines(node: cst.CSTNode) -> set[str]:
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        return {node.name.value}
    if isinstance(node, cst.SimpleStatementLine):
        imports = [n for n in node.body if isinstance(n, cst.Import | cst.ImportFrom)]
        if imports:
            aliases = [a for n in imports if not isinstance(n.names, cst.ImportStar) for a in n.names]
            return {a.evaluated_alias or a.evaluated_name.partition(".")[0] for a in aliases}
    return names_bound(node)


def _annotations(node: cst.CSTNode) -> list[cst.CSTNode]:
    if not isinstance(node, cst.FunctionDef):
        return []
    return [p.annotation.annotation for p in node.params.params if p.annotation is not None]


def drop_runs(length: int) -> Pass[Candidate]:
    """Runs of `length` statements of the file's functions, from the end, where uses come first."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        body = [statement for function in functions(module) for statement in statements(function)]
        for end in range(len(body), length - 1, -max(1, length // 2)):
            yield replace(candidate, text=edit(module, removed=body[end - length : end]))

    return Pass(f"drop {length} statement{'s' * (length > 1)}", variants)


def drop_unread() -> Pass[Candidate]:
    """Assignments to names that nothing reads, all at once; then of each only the value is left.

    Other passes leave them behind.
    """

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        for function in functions(module):
            read = set(names_read(function.body))
            plain = [(s, *_plain_assignment(s)) for s in statements(function)]
            unread = {s: value for s, name, value in plain if value is not None and name not in read}
            if unread:
                yield replace(candidate, text=edit(module, removed=unread))
            for statement, value in unread.items():
                alone = cst.SimpleStatementLine([cst.Expr(value)])
                yield replace(candidate, text=edit(module, {statement: alone}))

    return Pass("drop what is not read", variants)


def assign_plainly() -> Pass[Candidate]:
    """`name += value` becomes `name = value`, last first."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        added = [n for f in functions(module) for n in walk(f.body) if isinstance(n, cst.AugAssign)]
        for statement in reversed(added):
            plain = cst.Assign([cst.AssignTarget(statement.target)], statement.value)
            yield replace(candidate, text=edit(module, {statement: plain}))

    return Pass("assign plainly", variants)


def drop_with_dependents() -> Pass[Candidate]:
    """A statement together with all that cannot stand without the names it binds."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        for function in functions(module):
            body = statements(function)
            for first in reversed(body):
                doomed = _dependents(first, body)
                if len(doomed) > 1:
                    yield replace(candidate, text=edit(module, removed=doomed))

    return Pass("drop with dependents", variants)


def _dependents(first: Statement, body: list[Statement]) -> list[Statement]:
    doomed, lost = [first], names_bound(first)
    grown = True
    while grown:
        grown = False
        for statement in body:
            if statement not in doomed and lost & set(names_read(_header(statement))):
                doomed.append(statement)
                lost |= names_bound(statement)
                grown = True
    return doomed


def _header(statement: Statement) -> cst.CSTNode:
    """Of a compound statement what stands before the colon."""
    match statement:
        case cst.For():
            return statement.iter
        case cst.If() | cst.While():
            return statement.test
        case cst.BaseCompoundStatement():
            return cst.Pass()
    return statement


def drop_pairs() -> Pass[Candidate]:
    """Any two statements: for what is interesting only if both stay or both go."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        body = [statement for function in functions(module) for statement in statements(function)]
        if len(body) > _PAIRS_UP_TO:
            return
        for late in range(len(body) - 1, 0, -1):
            for early in range(late - 1, -1, -1):
                yield replace(candidate, text=edit(module, removed=[body[late], body[early]]))

    return Pass("drop two statements", variants)


def unwrap_blocks() -> Pass[Candidate]:
    """Loops and branches replaced by what is inside them, a loop's variable by 0."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        for function in functions(module):
            for block in statements(function):
                for inside in _insides(block):
                    if isinstance(inside, cst.IndentedBlock):
                        changed = edit(module, {block: _unwrapped(block, inside)})
                        yield replace(candidate, text=changed)

    return Pass("unwrap blocks", variants)


def _insides(block: Statement) -> Iterator[cst.BaseSuite]:
    if isinstance(block, cst.For | cst.While | cst.With | cst.If):
        yield block.body
    if isinstance(block, cst.If) and isinstance(block.orelse, cst.Else):
        yield block.orelse.body


def _unwrapped(block: Statement, inside: cst.IndentedBlock) -> list[Statement]:
    if not isinstance(block, cst.For) or not isinstance(block.target, cst.Name):
        return list(inside.body)
    shell = cst.FunctionDef(cst.Name("_"), cst.Parameters(), inside)
    changed = renamed(shell, {block.target.value: cst.Integer("0")}).body
    assert isinstance(changed, cst.IndentedBlock)
    return list(changed.body)


def inline_single_uses() -> Pass[Candidate]:
    """`name = expression` whose name is read once more: the expression in its place."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        for function in functions(module):
            body = statements(function)
            for statement in reversed(body):
                name, value = _plain_assignment(statement)
                if name is None or value is None:
                    continue
                once = names_read(function.body).count(name) == 1
                only = sum(
                    name in names_bound(s) for s in body if not isinstance(s, cst.BaseCompoundStatement)
                )
                if not once or only != 1:
                    continue
                without = parse(edit(module, removed=[statement]))
                target = next(f for f in functions(without) if f.name.value == function.name.value)
                changed = edit(without, {target: renamed(target, {name: guarded(value)})})
                if max(map(len, changed.splitlines()), default=0) <= _LONGEST_LINE:
                    yield replace(candidate, text=changed)

    return Pass("inline names used once", variants)


def _plain_assignment(statement: Statement) -> tuple[str | None, cst.BaseExpression | None]:
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if isinstance(only, cst.Assign) and len(only.targets) == 1:
            target = only.targets[0].target
            if isinstance(target, cst.Name):
                return target.value, only.value
    return None, None
