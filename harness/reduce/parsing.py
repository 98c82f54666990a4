"""Python's parser, one text at a time.

CPython 3.11 counts the depth of the tree it builds in one place for all threads, and raises SystemError
("AST constructor recursion depth mismatch") where two build one at once.
"""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()


def parse_python(text: str) -> ast.Module:
    """The tree of a module. Raises what `ast.parse` raises."""
    with _ONE_AT_A_TIME:
        return ast.parse(text)
