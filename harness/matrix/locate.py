"""Line numbers for a TOML document's tables, keys and array items.

tomllib keeps no positions, so this scans the text once more, only for where things start. It expects
a document tomllib has accepted, and therefore checks nothing. A path is what leads to a value in
tomllib's result: ("case", 1, "shape", 0) is the first shape of the second [[case]].
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

TomlPath = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?""""{0,2}'
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def find_lines(text: str) -> Mapping[TomlPath, int]:
    """Map every path of the document to the line, from 1, on which its key, header or item starts."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return scanner.lines


def line_of(lines: Mapping[TomlPath, int], path: TomlPath) -> int | None:
    """The line of a path, or of the closest thing that contains it; None if nothing does."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[TomlPath, int] = {}
        self.counts: dict[TomlPath, int] = {}
        """How many elements each array of tables has so far."""

    def document(self) -> None:
        table: TomlPath = ()
        while self.skip_blank():
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)

    def header(self) -> TomlPath:
        many = self.text.startswith("[[", self.at)
        line = self.line
        self.move(self.at + (2 if many else 1))
        keys = self.key()
        self.move(self.at + (2 if many else 1))
        path = self.inside(keys[:-1])
        self.mark(path, line)
        path = (*path, keys[-1])
        if many:
            index = self.counts.get(path, 0)
            self.counts[path] = index + 1
            self.lines.setdefault(path, line)
            path = (*path, index)
        # A header may follow its sub-tables' headers, and is then the better place to point at.
        self.lines[path] = line
        return path

    def inside(self, keys: tuple[str, ...]) -> TomlPath:
        """Keys of a header as a path: an array of tables means its latest element."""
        path: TomlPath = ()
        for key in keys:
            path = (*path, key)
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def pair(self, table: TomlPath) -> None:
        line = self.line
        keys = self.key()
        self.move(self.at + 1)  # past "="
        path = (*table, *keys)
        self.mark(path, line)
        self.value(path)

    def mark(self, path: TomlPath, line: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def value(self, path: TomlPath) -> None:
        self.skip_blank()
        self.lines.setdefault(path, self.line)
        start = self.text[self.at]
        if start == "[":
            self.move(self.at + 1)
            index = 0
            while self.skip_blank() and self.text[self.at] != "]":
                self.value((*path, index))
                index += 1
                self.skip_comma()
            self.move(self.at + 1)
        elif start == "{":
            self.move(self.at + 1)
            while self.skip_blank() and self.text[self.at] != "}":
                self.pair(path)
                self.skip_comma()
            self.move(self.at + 1)
        else:
            found = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
            self.move(found.end() if found else len(self.text))

    def key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self.skip_blank()
            if bare := _BARE_KEY.match(self.text, self.at):
                parts.append(bare[0])
                self.move(bare.end())
            elif quoted := _STRING.match(self.text, self.at):
                parts.append(tomllib.loads(f"key = {quoted[0]}")["key"])
                self.move(quoted.end())
            self.skip_blank()
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.move(self.at + 1)

    def skip_comma(self) -> None:
        if self.skip_blank() and self.text[self.at] == ",":
            self.move(self.at + 1)

    def skip_blank(self) -> bool:
        """Go to the next thing that means something; False at the end."""
        blank = _BLANK.match(self.text, self.at)
        self.move(blank.end() if blank else self.at)
        return self.at < len(self.text)

    def move(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to
