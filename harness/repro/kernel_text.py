"""A kernel's text with all that it needs of its file, for a script that stands alone. Pure."""

from __future__ import annotations

import ast
from collections import defaultdict

from harness.model import Hints
from harness.repro.spec import ReproError


def kernel_text(text: str, function: str, hints: Hints) -> tuple[str, list[str]]:
    """The kernel with hints in its decorator and all that it needs of its file, and the imports it needs.

    Raises ReproError where the kernel is not a plain function under `@ct.kernel`.
    """
    module = ast.parse(text)
    binding: dict[str, list[ast.stmt]] = defaultdict(list)
    for node in module.body:
        for name in _bound(node, module):
            binding[name].append(node)
    kernel = binding[function][-1] if binding[function] else None
    if not isinstance(kernel, ast.FunctionDef) or len(kernel.decorator_list) != 1:
        raise ReproError(f"{function} is not a plain function under @ct.kernel; write this repro by hand")
    wanted: set[str] = set()
    needed: set[ast.stmt] = set()
    todo = [function]
    while todo:
        name = todo.pop()
        wanted.add(name)
        for node in binding[name]:
            needed.add(node)
            todo += [read for read in _read(node) if read in binding and read not in wanted]
    imports, pieces = [], []
    lines = text.splitlines()
    for node in module.body:
        if node not in needed:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += _imports(node, wanted)
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min((decorator.lineno for decorator in decorators), default=node.lineno) - 1
        if node is kernel:
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            source = f"@{_decorator(kernel.decorator_list[0], hints)}\n{source}"
        else:
            source = "\n".join(lines[first : node.end_lineno])
        pieces.append(source)
    return "\n\n\n".join(pieces), imports


def _imports(node: ast.Import | ast.ImportFrom, wanted: set[str]) -> list[str]:
    """The import, of the names that are wanted only."""
    names = [one for one in node.names if one.name == "*" or _name_of(one) in wanted]
    if isinstance(node, ast.Import):
        return [ast.unparse(ast.Import([one])) for one in names]
    return [ast.unparse(ast.ImportFrom(node.module, names, node.level))] if names else []


def _name_of(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _decorator(given: ast.expr, hints: Hints) -> str:
    keywords: dict[str, str] = {}
    name = given
    if isinstance(given, ast.Call):
        keywords = {str(k.arg): ast.unparse(k.value) for k in given.keywords}
        name = given.func
    plain = Hints()
    given_hints = {k: v for k, v in hints.to_json().items() if v not in (None, getattr(plain, k))}
    keywords |= {k: str(v) for k, v in given_hints.items()}
    listed = ", ".join(f"{key}={value}" for key, value in keywords.items())
    return f"{ast.unparse(name)}({listed})" if listed else ast.unparse(name)


def _bound(node: ast.stmt, module: ast.Module) -> set[str]:
    """Names of the module that a statement gives a value, also where it only may, or calls what does."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {_name_of(alias) for alias in aliases}
    stored: set[str] = set()
    if isinstance(node, ast.Expr):
        calls = (
            n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        )
        called = set(calls)
        defined = (f for f in module.body if isinstance(f, ast.FunctionDef) and f.name in called)
        stored |= {name for f in defined for inner in ast.walk(f) for name in _declared(inner)}
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                stored.add(name)
            case ast.alias():
                stored.add(_name_of(inner))
    return stored


def _declared(node: ast.AST) -> list[str]:
    return node.names if isinstance(node, ast.Global) else []


def _read(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def names_of(text: str) -> set[str]:
    """What a module's text binds at its top level."""
    module = ast.parse(text)
    return {name for node in module.body for name in _bound(node, module)}
