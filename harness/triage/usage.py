"""How a kernel's text uses its parameters: which are arrays, of what rank, read or written. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from harness.triage.look import FoundParameter
from harness.triage.source import span

_READS = frozenset(("load", "gather", "load_advanced_indexing"))
_WRITES = frozenset(("store", "scatter", "store_advanced_indexing"))
_OF_ARRAYS = frozenset(("num_tiles", "tiled_view", *_READS, *_WRITES))
_USUAL_RANK = 2
_USUAL_CONSTANTS = {"float": "const(1.0)", "bool": "const(true)"}


@dataclass
class Usage:
    """Of one parameter: whether it is an array, its rank as far as an index or a shape shows it, whether the
    kernel reads or writes it, whether it goes to a function that may do either, whether it counts
    something."""

    array: bool = False
    rank: int = 0
    read: bool = False
    written: bool = False
    passed: bool = False
    counts: bool = False

    @property
    def role(self) -> str:
        """in | out | inout, as a matrix says it; inout where it cannot be told."""
        if self.passed or self.read == self.written:
            return "inout"
        return "out" if self.written else "in"


def usages(text: str, function: str, line: int) -> dict[str, Usage]:
    """By parameter, for the function of that name whose first decorator or `def` is at `line`."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == function
            and span(node)[0] <= line <= node.lineno
        ):
            found = {a.arg: Usage() for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            for statement in node.body:
                for inner in ast.walk(statement):
                    _look(inner, found)
            return found
    return {}


def _look(node: ast.AST, found: dict[str, Usage]) -> None:
    match node:
        case ast.Call():
            _call(node, found)
        case ast.Attribute(value=ast.Name(id=name), attr="shape" | "dtype") if name in found:
            found[name].array = True
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=int(axis))
        ) if name in found:
            found[name].rank = max(found[name].rank, axis + 1)
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod()) | ast.Compare():
            for name in _names(node) & set(found):
                found[name].counts = True


def _call(node: ast.Call, found: dict[str, Usage]) -> None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    words = {word.arg: word.value for word in node.keywords}
    given = list(node.args)
    if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", None) in found:
        given.insert(0, node.func.value)  # x.tiled_view(…)
    array = given[0] if given else words.get("array")
    known = found.get(getattr(array, "id", ""))
    atomic = name.startswith("atomic")
    if known is not None and (name in _OF_ARRAYS or atomic):
        known.array = True
        known.read |= name in _READS or atomic or name == "tiled_view"
        known.written |= name in _WRITES or atomic or name == "tiled_view"
        for shown in (*given[1:3], words.get("index"), words.get("indices"), words.get("shape")):
            known.rank = max(known.rank, _length(shown))
    elif name in ("range", "cdiv"):
        for counted in set().union(*map(_names, given)) & set(found):
            found[counted].counts = True
    else:
        for passed in (*given, *words.values()):
            if isinstance(passed, ast.Name) and passed.id in found:
                found[passed.id].passed = True


def _length(index: ast.expr | None) -> int:
    """Of a tuple; an index that is a lone expression shows rank 1 at least."""
    if isinstance(index, ast.Tuple | ast.List):
        return len(index.elts)
    return int(isinstance(index, ast.Constant | ast.BinOp))


def _names(node: ast.AST) -> set[str]:
    return set(_walk(node))


def _walk(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id


def example(parameter: FoundParameter, usage: Usage | None) -> str:
    """What to write of a parameter that nothing is known of, in the notation."""
    if parameter.said == "constant":
        return _USUAL_CONSTANTS.get(parameter.of, "const(128)")
    if usage is None or usage.array or usage.passed:
        return f"array(float32, {usage.rank if usage is not None and usage.rank else _USUAL_RANK})"
    return "scalar(int32)" if usage.counts else "scalar(float32)"
