"""Names of a statement: those it binds, and those it reads of the module around it. Pure."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator


def binds(statement: ast.stmt) -> set[str]:
    """Names that a module-level statement binds in its module."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return set(map(_bound_by, names))
    table = symtable.symtable(ast.unparse(statement), "", "exec")
    return {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }


def part_that_binds(statement: ast.stmt, name: str) -> ast.stmt:
    """Of an import of several things the one that binds the name; any other statement as a whole."""
    match statement:
        case ast.Import(names=names):
            made: ast.stmt = ast.Import([a for a in names if _bound_by(a) == name])
        case ast.ImportFrom(module=module, names=names, level=level):
            made = ast.ImportFrom(module, [a for a in names if _bound_by(a) == name], level)
        case _:
            return statement
    return ast.copy_location(made, statement)


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def reads(node: ast.stmt | ast.expr) -> set[str]:
    """Names that running it, or calling what it defines, looks up in the module.

    What a function binds itself (parameters, locals, variables of comprehensions) is not among them.
    """
    table = symtable.symtable(ast.unparse(node), "", "exec")
    return set(_global_reads(table, outermost=True))


def _global_reads(table: symtable.SymbolTable, *, outermost: bool = False) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (outermost or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_reads(child)


def notes(statement: ast.stmt) -> list[ast.expr]:
    """Annotations of the parameters and results of all functions in it."""
    found: list[ast.expr] = []
    for node in ast.walk(statement):
        if isinstance(node, ast.arg) and node.annotation is not None:
            found.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            found.append(node.returns)
    return found
