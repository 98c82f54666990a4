"""A matrix file as text: read, parsed, and able to say where in it something stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.matrix.locate import TomlPath, find_lines, line_of
from harness.matrix.problems import MatrixError, Problem, printable, quote

MAX_BYTES = 1_000_000
"""Largest file read; a matrix is written by hand."""

MAX_DEPTH = 20
"""Tables and lists within each other; a matrix needs less than ten, and what looks at it may recurse."""


@dataclass(frozen=True)
class Document:
    """The parsed file with its line numbers."""

    path: Path
    data: dict[str, Any]
    lines: Mapping[TomlPath, int]

    def problem(self, path: TomlPath, text: str, ends_in: str = "") -> Problem:
        """A problem at a path; `ends_in` names a key that is not there (yet)."""
        place = ", ".join(part for part in (self.place(path), ends_in) if part)
        return Problem(shown(self.path), line_of(self.lines, path), place, text)

    def place(self, path: TomlPath) -> str:
        """A path in words: `[[case]] #2, key "shape", item 3`."""
        if not path:
            return ""
        top, rest = path[0], path[1:]
        value = self.data.get(str(top))
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            parts = [f"[[{printable(str(top))}]]"]
            if rest and isinstance(rest[0], int):
                parts[0] += f" #{rest[0] + 1}"
                rest = rest[1:]
        elif isinstance(value, dict):
            parts = [f"[{printable(str(top))}]"]
        else:
            parts = [f"key {quote(str(top))}"]
        parts += [f"item {step + 1}" if isinstance(step, int) else f"key {quote(step)}" for step in rest]
        return ", ".join(parts)

    def tables(self, name: str) -> list[tuple[int, dict[str, Any]]]:
        """The tables of [[name]] with their index, leaving out what is not a table."""
        value = self.data.get(name)
        if not isinstance(value, list):
            return []
        return [(index, table) for index, table in enumerate(value) if isinstance(table, dict)]


def shown(path: Path) -> str:
    """The file's name as problems print it."""
    return printable(str(path))


def read_document(path: Path) -> Document:
    """Read and parse a file. Raises MatrixError if there is none, or it is not TOML."""
    text = _read(path)
    try:
        data = tomllib.loads(text)
        if _deeper_than(MAX_DEPTH, data):
            raise RecursionError
        return Document(path, data, find_lines(text))
    except RecursionError:
        raise _refused(path, "nests tables or lists too deeply; write it flatter") from None
    except ValueError as error:  # TOMLDecodeError, or a number with too many digits
        raise MatrixError([_broken(path, text, str(error))]) from None


def _deeper_than(depth: int, data: Any) -> bool:
    level = [data]
    for _ in range(depth):
        nested = [item.values() if isinstance(item, dict) else item for item in level]
        level = [inner for items in nested for inner in items if isinstance(inner, dict | list)]
    return bool(level)


def _read(path: Path) -> str:
    try:
        if path.is_dir():
            raise _refused(path, "is a folder; name the matrix file in it")
        if path.exists() and not path.is_file():
            raise _refused(path, "is not a regular file; name a matrix file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refused(
            path,
            "does not exist; name a matrix file, as in `python -m harness run PATH`, "
            "or start from the matrix.toml that comes with the project",
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refused(
            path, f"cannot be read ({printable(reason)}); check its name and permissions"
        ) from None
    if len(content) > MAX_BYTES:
        raise _refused(path, f"is larger than {MAX_BYTES:,} bytes; split the matrix")
    try:
        return content.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MatrixError(
            [Problem(shown(path), line, "", "is not UTF-8 text; save the file as UTF-8")]
        ) from None


def _refused(path: Path, text: str) -> MatrixError:
    return MatrixError([Problem(shown(path), None, "", text)])


def _broken(path: Path, text: str, message: str) -> Problem:
    found = re.search(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", message, re.DOTALL)
    if found is None:
        return Problem(shown(path), None, "", f"not valid TOML: {printable(message)}; correct it")
    what, line, column = found.groups()
    if line is None:
        last = text.rstrip("\n").count("\n") + 1
        return Problem(
            shown(path), last, "", f"not valid TOML: {printable(what)} at the end of the file; complete it"
        )
    return Problem(
        shown(path), int(line), "", f"not valid TOML: {printable(what)} in column {column}; correct this line"
    )
