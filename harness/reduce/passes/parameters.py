"""Passes over the kernel's parameters and hints: constants written out, arrays merged, the unused dropped."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace

import libcst as cst

from harness.model import Array, Constant
from harness.reduce.candidate import Candidate
from harness.reduce.config import simpler_hints
from harness.reduce.engine import Pass
from harness.reduce.syntax import edit, function_named, guarded, names_bound, names_read, parse, renamed


def inline_constants() -> Pass[Candidate]:
    """`ct.Constant` parameters replaced by their values: all, then each, last first."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        function = function_named(parse(candidate.text), candidate.function)
        bound = names_bound(function.body)
        values = {
            p.name: guarded(cst.parse_expression(repr(p.value)))
            for p in candidate.parameters
            if isinstance(p, Constant) and p.name not in bound and _writable(p)
        }
        if len(values) > 1:
            yield _without(candidate, values, values)
        for name in reversed(values):
            yield _without(candidate, [name], {name: values[name]})

    return Pass("write constants out", variants)


def _writable(constant: Constant) -> bool:
    return not isinstance(constant.value, float) or math.isfinite(constant.value)


def drop_unused_parameters() -> Pass[Candidate]:
    """Parameters the body does not read: all, then each, last first."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        function = function_named(parse(candidate.text), candidate.function)
        read = set(names_read(function.body))
        unused = [p.name for p in candidate.parameters if p.name not in read]
        if len(unused) > 1:
            yield _without(candidate, unused, {})
        for name in reversed(unused):
            yield _without(candidate, [name], {})

    return Pass("drop unused parameters", variants)


def merge_arrays() -> Pass[Candidate]:
    """One array in place of another, of the same rank."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        function = function_named(parse(candidate.text), candidate.function)
        bound = names_bound(function.body)
        arrays = [p for p in candidate.parameters if isinstance(p, Array) and p.name not in bound]
        for gone in reversed(arrays):
            for kept in arrays:
                if kept is not gone and kept.rank == gone.rank:
                    yield _without(candidate, [gone.name], {gone.name: cst.Name(kept.name)})

    return Pass("merge arrays", variants)


def fewer_hints() -> Pass[Candidate]:
    """Hints left out or smaller."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        return (replace(candidate, hints=hints) for hints in simpler_hints(candidate.hints))

    return Pass("fewer hints", variants)


def _without(
    candidate: Candidate, names: Collection[str], values: dict[str, cst.BaseExpression]
) -> Candidate:
    """The kernel without some parameters, their names replaced by values in the body."""
    module = parse(candidate.text)
    function = function_named(module, candidate.function)
    changed = renamed(function, values)
    kept = [p for p in changed.params.params if p.name.value not in names]
    if kept:
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    changed = changed.with_changes(params=changed.params.with_changes(params=kept))
    described = tuple(p for p in candidate.parameters if p.name not in names)
    return replace(candidate, text=edit(module, {function: changed}), parameters=described)
