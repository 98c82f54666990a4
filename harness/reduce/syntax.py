"""What the passes need of libcst: finding things in a kernel's file, and editing them.

Nodes are found in document order, so that equal texts are always edited in the same order. Edits
name nodes by identity, within one parsed tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

import libcst as cst

Statement = cst.BaseStatement

_WRITING = ("store", "scatter")

Replacement = cst.CSTNode | Sequence[Statement]


@lru_cache(maxsize=64)
def parse(text: str) -> cst.Module:
    """The tree of a file; equal texts share one tree, which is never changed."""
    return cst.parse_module(text)


def functions(module: cst.Module) -> list[cst.FunctionDef]:
    """Functions at the top of the file: kernels and what they call."""
    return [node for node in module.body if isinstance(node, cst.FunctionDef)]


def function_named(module: cst.Module, name: str) -> cst.FunctionDef:
    """The function of this name; the last if there are several, as in Python."""
    return next(f for f in reversed(functions(module)) if f.name.value == name)


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and all below it, in document order."""
    yield node
    for child in node.children:
        yield from walk(child)


def statements(function: cst.FunctionDef) -> list[Statement]:
    """Every statement of a body, a compound one before those inside it."""
    return [
        n for n in walk(function.body) if isinstance(n, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    ]


def expressions(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """Every expression that is read, outermost first: not targets, attribute names or keywords."""
    found: list[cst.BaseExpression] = []

    def visit(node: cst.CSTNode) -> None:
        if isinstance(node, cst.BaseExpression):
            found.append(node)
        for child in _read(node):
            visit(child)

    visit(node)
    return found


def operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The expressions that this one is directly made of."""
    found: list[cst.BaseExpression] = []

    def visit(node: cst.CSTNode) -> None:
        for child in _read(node):
            if isinstance(child, cst.BaseExpression):
                found.append(child)
            else:
                visit(child)

    visit(node)
    return found


def names_read(node: cst.CSTNode) -> list[str]:
    """Names whose value is used, as often as they are."""
    return [e.value for e in expressions(node) if isinstance(e, cst.Name)]


def names_bound(node: cst.CSTNode) -> set[str]:
    """Names that get a value: by assignment, as a loop variable or by import."""
    bound: set[str] = set()
    for inner in walk(node):
        if isinstance(inner, cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.For | cst.CompFor):
            targets = walk(inner.target)
            bound |= {n.value for n in targets if isinstance(n, cst.Name)}
        elif isinstance(inner, cst.NamedExpr):
            bound |= {n.value for n in walk(inner.target) if isinstance(n, cst.Name)}
    return bound


def imported_names(module: cst.Module) -> set[str]:
    """Names that stand for imported modules and their contents."""
    found: set[str] = set()
    for node in walk(module):
        if isinstance(node, cst.ImportAlias):
            found.add(node.evaluated_alias or node.evaluated_name.partition(".")[0])
    return found


def role(name: str, text: str) -> str:
    """How an array is used: "out" if it is only written, "inout" if it is also read, else "in".

    Merging arrays changes what the kernel's description says of them.
    """
    uses = [e for f in functions(parse(text)) for e in expressions(f.body) if isinstance(e, cst.Call)]
    ways = set()
    for call in uses:
        target = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        for position, argument in enumerate(call.args):
            if isinstance(argument.value, cst.Name) and argument.value.value == name:
                first = position == 0 or (argument.keyword is not None and argument.keyword.value == "array")
                ways |= {"in", "out"} if target.startswith("atomic") else set()
                ways.add("out" if first and target in _WRITING else "in")
    return "inout" if len(ways) == 2 else next(iter(ways), "in")


def edit(
    module: cst.Module,
    replacements: Mapping[cst.CSTNode, Replacement] | Mapping[cst.CSTNode, cst.CSTNode] | None = None,
    removed: Collection[cst.CSTNode] = (),
) -> str:
    """The text with some nodes replaced (a statement also by several) and some removed."""
    changes: dict[int, Replacement | None] = dict.fromkeys(map(id, removed))
    changes |= {id(old): new for old, new in (replacements or {}).items()}
    changed = module.visit(_Editor(changes, _ways(module, [*(replacements or {}), *removed])))
    assert isinstance(changed, cst.Module)
    return changed.code


def renamed(
    function: cst.FunctionDef, values: Mapping[str, cst.BaseExpression], *, bind: bool = False
) -> cst.FunctionDef:
    """A function with names replaced by expressions; with `bind` its parameters are renamed too.

    Without `bind` the names must have no other binding in the function than the one being replaced.
    """
    changed = function.visit(_Substitution(values, bind))
    assert isinstance(changed, cst.FunctionDef)
    return changed


def guarded(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression in parentheses if it might fall apart in another place."""
    safe = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.Integer, cst.Float)
    return node if isinstance(node, safe) else parenthesised(node)


def parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression in parentheses, if it has none."""
    return node if node.lpar else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _read(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Children in which expressions are read."""
    match node:
        case cst.Attribute():
            yield node.value
        case cst.Arg():
            yield node.value
        case cst.Param():
            if node.default is not None:
                yield node.default
        case cst.Assign():
            for target in node.targets:
                yield from _read_in_target(target.target)
            yield node.value
        case cst.AugAssign():
            yield from _read_in_target(node.target)
            yield node.value
        case cst.AnnAssign():
            if node.value is not None:
                yield node.value
        case cst.For():
            yield node.iter
            yield node.body
            if node.orelse is not None:
                yield node.orelse
        case cst.CompFor() | cst.NamedExpr():
            yield from (child for child in node.children if child is not node.target)
        case cst.FunctionDef():
            yield from node.decorators
            yield node.params
            yield node.body
        case cst.ImportAlias() | cst.Import() | cst.ImportFrom():
            return
        case _:
            yield from node.children


def _read_in_target(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A target is read only as far as it is an element or attribute of something."""
    if isinstance(target, cst.Subscript | cst.Attribute):
        yield from target.children


@lru_cache(maxsize=64)
def _parents(module: cst.Module) -> dict[cst.CSTNode, cst.CSTNode]:
    return {child: node for node in walk(module) for child in node.children}


def _ways(module: cst.Module, nodes: Collection[cst.CSTNode]) -> set[int]:
    """Ids of the nodes above the given ones: an edit that visits these alone costs little."""
    parents, above = _parents(module), set[int]()
    for node in nodes:
        parent = parents.get(node)
        while parent is not None and id(parent) not in above:
            above.add(id(parent))
            parent = parents.get(parent)
    return above


def _object_guarded(node: cst.Attribute) -> cst.Attribute:
    """`0.real` is no Python, `(0).real` is."""
    if isinstance(node.value, cst.Integer | cst.Float):
        return node.with_changes(value=parenthesised(node.value))
    return node


class _Editor(cst.CSTTransformer):
    def __init__(self, changes: dict[int, Replacement | None], ways: set[int]) -> None:
        super().__init__()
        self._changes = changes
        self._ways = ways

    def on_visit(self, node: cst.CSTNode) -> bool:
        return id(node) in self._ways and id(node) not in self._changes

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNode]:
        if id(original_node) not in self._changes:
            return _object_guarded(updated_node) if isinstance(updated_node, cst.Attribute) else updated_node
        change = self._changes[id(original_node)]
        if change is None:
            return cst.RemoveFromParent()
        return change if isinstance(change, cst.CSTNode) else cst.FlattenSentinel(change)


class _Substitution(cst.CSTTransformer):
    def __init__(self, values: Mapping[str, cst.BaseExpression], bind: bool) -> None:
        super().__init__()
        self._values = values
        self._bind = bind

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self._values.get(original_node.value, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return _object_guarded(updated_node.with_changes(attr=original_node.attr))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node if self._bind else updated_node.with_changes(name=original_node.name)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        return updated_node.with_changes(name=original_node.name)
