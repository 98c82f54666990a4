"""What the source search moves through: a kernel's text together with the parameters it is compiled for."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from harness.model import Hints, Parameter, Record
from harness.reduce.config import hint_count, hint_weight
from harness.reduce.engine import Cost
from harness.reduce.parsing import parse_python


@dataclass(frozen=True)
class Candidate(Record):
    """A file's text, the kernel in it that is meant, one description per parameter of it, and hints."""

    text: str
    function: str
    parameters: tuple[Parameter, ...]
    hints: Hints


def cost(candidate: Candidate) -> Cost:
    """How much there is to read: statements first, then parameters, expressions, hints and numbers."""
    size = measure(candidate.text)
    return (
        size.statements,
        len(candidate.parameters),
        size.nodes,
        hint_count(candidate.hints),
        size.literals,
        hint_weight(candidate.hints),
        len(candidate.text),
    )


@dataclass(frozen=True)
class Size:
    """Statements of all function bodies and of the module (imports, definitions), nodes of the syntax
    tree, and the weight of the literals."""

    statements: int
    nodes: int
    literals: float


@lru_cache(maxsize=4096)
def measure(text: str) -> Size:
    """Size of a file that parses."""
    statements = nodes = 0
    literals = 0.0
    for node in ast.walk(parse_python(text)):
        if isinstance(node, ast.expr_context):
            continue
        nodes += 1
        statements += isinstance(node, ast.stmt)
        if isinstance(node, ast.Constant):
            literals += _weight(node.value)
    return Size(statements, nodes, literals)


def body_statements(text: str, function: str) -> int:
    """Statements in the body of a function, those inside loops and branches included; 0 if there is none."""
    name = function.rpartition(".")[2]
    for node in ast.walk(parse_python(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) - 1
    return 0


def _weight(value: object) -> float:
    """A plain number weighs little: 0 nothing, 1 hardly more; the rest by length, then by magnitude."""
    match value:
        case bool() | None:
            return 0.0
        case int() | float():
            return (len(f"{value:g}") - (value == 0)) + min(abs(value), 1e9) / 2e9
        case str():
            return float(len(value))
    return 1.0
