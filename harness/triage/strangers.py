"""Imports that a tracer cannot make: it has cuda.tile and the standard library, and its own start."""

from __future__ import annotations

import ast
import sys

_OURS = frozenset(("cuda", "__future__", *sys.stdlib_module_names))
SURROUNDINGS = frozenset(("argparse", "os", "sys", "subprocess", "socket", "platform"))
"""Of the standard library, what tells how and where a script was started: a tracer is started otherwise."""


def imports(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether it imports one of these modules, or of it."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in names for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in names


def stranger(node: ast.AST) -> bool:
    """An import of something that a tracer does not have."""
    if isinstance(node, ast.Import):
        return any(not _has(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or not _has(node.module or "")
    return False


def _has(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in _OURS and (parts[0] != "cuda" or len(parts) < 2 or parts[1] == "tile")
