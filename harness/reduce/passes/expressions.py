"""Passes within statements: parts or plain numbers for expressions, fewer arguments, smaller numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from harness.reduce.candidate import Candidate
from harness.reduce.config import powers_below
from harness.reduce.engine import Pass
from harness.reduce.syntax import edit, expressions, functions, guarded, imported_names, operands, parse, walk

_PLAIN = ("0", "1", "1.0")


def drop_arguments() -> Pass[Candidate]:
    """Arguments of calls and decorators: all keywords of a call at once, then each, last first."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        calls = [e for f in functions(module) for e in expressions(f) if isinstance(e, cst.Call)]
        decorators = {d.decorator for f in functions(module) for d in f.decorators}
        for call in calls:
            keywords = [argument for argument in call.args if argument.keyword is not None]
            if call in decorators:
                yield replace(candidate, text=edit(module, {call: call.func}))
            gone = [keywords] if len(keywords) > 1 else []
            for arguments in [*gone, *([argument] for argument in reversed(call.args))]:
                kept = [argument for argument in call.args if argument not in arguments]
                if kept:
                    kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                yield replace(candidate, text=edit(module, {call: call.with_changes(args=kept)}))

    return Pass("drop arguments", variants)


def hoist_operands() -> Pass[Candidate]:
    """An expression replaced by a part of it: a method chain by its object, a sum by a summand."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        imported = imported_names(module)
        for function in functions(module):
            found = expressions(function.body)
            called = {e.func for e in found if isinstance(e, cst.Call)}
            for whole in found:
                if whole in called:
                    continue
                for part in _parts(whole):
                    if not (isinstance(part, cst.Name) and part.value in imported):
                        yield replace(candidate, text=edit(module, {whole: guarded(part)}))

    return Pass("replace by a part", variants)


def _parts(whole: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Operands; of a called method its object rather than the method, of `module.name` nothing."""
    if isinstance(whole, cst.Call) and isinstance(whole.func, cst.Attribute):
        return [whole.func.value, *(argument.value for argument in whole.args)]
    if isinstance(whole, cst.Call):
        return [argument.value for argument in whole.args]
    return operands(whole)


def plain_numbers() -> Pass[Candidate]:
    """An expression replaced by 0, 1 or 1.0. What is called or imported stays, and so do numbers."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        imported = imported_names(module)
        for function in functions(module):
            found = expressions(function.body)
            called = {e.func for e in found if isinstance(e, cst.Call)}
            alone = {s.value for s in walk(function.body) if isinstance(s, cst.Expr)}
            for whole in found:
                if whole in called or whole in alone or isinstance(whole, cst.BaseNumber | cst.Tuple):
                    continue
                if isinstance(whole, cst.Name) and whole.value in imported:
                    continue
                for number in _PLAIN:
                    changed = cst.parse_expression(number)
                    yield replace(candidate, text=edit(module, {whole: guarded(changed)}))

    return Pass("replace by a number", variants)


def smaller_numbers() -> Pass[Candidate]:
    """Smaller literals: everywhere the same number stands (a tile's width, say), then one at a time."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        found = [e for f in functions(module) for e in expressions(f.body) if isinstance(e, cst.BaseNumber)]
        by_text: dict[str, list[cst.BaseExpression]] = {}
        for literal in found:
            by_text.setdefault(_text(literal), []).append(literal)
        groups = [group for group in by_text.values() if len(group) > 1] + [[literal] for literal in found]
        for group in groups:
            for smaller in _smaller(_text(group[0])):
                changed: dict[cst.CSTNode, cst.CSTNode] = {
                    literal: cst.parse_expression(smaller) for literal in group
                }
                yield replace(candidate, text=edit(module, changed))

    return Pass("smaller numbers", variants)


def _text(literal: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(literal)


def _smaller(literal: str) -> Iterator[str]:
    value = cst.parse_expression(literal)
    if isinstance(value, cst.Integer):
        number = int(value.evaluated_value)
        if number > 0:
            yield "0"
        yield from map(str, powers_below(number))
    elif isinstance(value, cst.Float):
        yield from (plain for plain in ("0.0", "1.0") if plain != literal)
