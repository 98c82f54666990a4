"""A kernel's text with all that it needs of its file, for a script that stands alone. Pure."""

from __future__ import annotations

import ast

from harness.model import Hints
from harness.repro.spec import ReproError


def kernel_text(text: str, function: str, hints: Hints) -> tuple[str, list[str]]:
    """The kernel with hints in its decorator and all that it needs of its file, and that file's imports.

    Raises ReproError where the kernel is not a plain function under `@ct.kernel`.
    """
    module = ast.parse(text)
    by_name: dict[str, ast.stmt] = {}
    imports = []
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(node))
        for name in _bound(node):
            by_name[name] = node
    kernel = by_name.get(function)
    if not isinstance(kernel, ast.FunctionDef) or len(kernel.decorator_list) != 1:
        raise ReproError(f"{function} is not a plain function under @ct.kernel; write this repro by hand")
    wanted, todo = {function}, [function]
    while todo:
        for name in _read(by_name[todo.pop()]):
            if name in by_name and name not in wanted:
                wanted.add(name)
                todo.append(name)
    lines = text.splitlines()
    kept = [node for node in module.body if any(name in wanted for name in _bound(node))]
    pieces = []
    for node in kept:
        first = node.lineno - 1
        source = "\n".join(lines[first : node.end_lineno])
        if node is kernel:
            source = f"@{_decorator(kernel.decorator_list[0], hints)}\n{source}"
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            source = "\n".join(lines[node.decorator_list[0].lineno - 1 : node.end_lineno])
        pieces.append(source)
    return "\n\n\n".join(pieces), imports


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


def _bound(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _read(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
