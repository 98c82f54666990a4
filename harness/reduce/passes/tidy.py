"""Passes that leave the kernel's meaning alone: layout, comments, annotations, names."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from harness.model import Parameter
from harness.reduce.candidate import Candidate
from harness.reduce.engine import Pass
from harness.reduce.parsing import parse_python
from harness.reduce.syntax import (
    edit,
    function_named,
    functions,
    imported_names,
    names_bound,
    parse,
    renamed,
    walk,
)

KERNEL_NAME = "kernel"
_ARRAY_NAMES = "xywzuvabc"
_LOCAL_NAMES = string.ascii_lowercase


def tidy() -> Pass[Candidate]:
    """One statement a line, without comments, docstrings and needless parentheses."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        yield replace(candidate, text=tidied(candidate.text))

    return Pass("tidy", variants)


def tidied(text: str) -> str:
    """The text as the syntax tree alone would have it, two lines apart at the top as PEP 8 wants it."""
    module = parse_python(text)
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and _is_docstring(node.body[:1]):
            node.body = node.body[1:]
            if not node.body and not isinstance(node, ast.Module):
                node.body = [ast.Pass()]
    parts: list[str] = []
    for statement in module.body:
        big = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        if parts:
            parts.append("\n\n\n" if big or parts[-1].count("\n") else "\n")
        parts.append(ast.unparse(statement))
    return "".join(parts) + "\n"


def _is_docstring(start: list[ast.stmt]) -> bool:
    match start:
        case [ast.Expr(value=ast.Constant(value=str()))]:
            return True
    return False


def drop_annotations() -> Pass[Candidate]:
    """Annotations of parameters and results: all, then those of one parameter each."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        module = parse(candidate.text)
        annotated = [p for f in functions(module) for p in f.params.params if p.annotation is not None]
        results = {f.returns: None for f in functions(module) if f.returns is not None}
        if annotated or results:
            bare = [p.annotation for p in annotated if p.annotation is not None]
            yield replace(candidate, text=edit(module, removed=[*bare, *results]))
            for annotation in reversed(bare):
                yield replace(candidate, text=edit(module, removed=[annotation]))

    return Pass("drop annotations", variants)


def short_names() -> Pass[Candidate]:
    """The kernel called "kernel"; parameters and names of its body of one letter each."""

    def variants(candidate: Candidate) -> Iterator[Candidate]:
        yield shortened(candidate)
        yield _kernel_renamed(candidate)

    return Pass("short names", variants)


def shortened(candidate: Candidate) -> Candidate:
    """The candidate with short names; a name that is short already stays."""
    module = parse(candidate.text)
    function = function_named(module, candidate.function)
    taken = imported_names(module) | {f.name.value for f in functions(module)}
    parameters = [p.name for p in candidate.parameters]
    own = [name for name in _in_order(function) if name not in parameters]
    taken |= {name for name in (*parameters, *own) if len(name) == 1}
    names: dict[str, str] = {}
    for old, letters in [(p, _ARRAY_NAMES) for p in parameters] + [(n, _LOCAL_NAMES) for n in own]:
        free = next((letter for letter in letters if letter not in taken), old)
        if len(old) > 1:
            names[old] = free
            taken.add(free)
    values = {old: cst.Name(new) for old, new in names.items()}
    text = edit(module, {function: renamed(function, values, bind=True)})
    described = tuple(_renamed_parameter(p, names.get(p.name, p.name)) for p in candidate.parameters)
    return _kernel_renamed(replace(candidate, text=text, parameters=described))


def _renamed_parameter(parameter: Parameter, name: str) -> Parameter:
    return replace(parameter, name=name)


def _in_order(function: cst.FunctionDef) -> list[str]:
    """Names bound in the body, in the order in which they first stand there."""
    bound = names_bound(function.body)
    seen = dict.fromkeys(n.value for n in walk(function.body) if isinstance(n, cst.Name))
    return [name for name in seen if name in bound]


def _kernel_renamed(candidate: Candidate) -> Candidate:
    module = parse(candidate.text)
    function = function_named(module, candidate.function)
    if any(f.name.value == KERNEL_NAME for f in functions(module)) or KERNEL_NAME in imported_names(module):
        return candidate
    changed = function.with_changes(name=cst.Name(KERNEL_NAME))
    return replace(candidate, text=edit(module, {function: changed}), function=KERNEL_NAME)
