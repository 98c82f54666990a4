"""What is wrong with a matrix file: one sentence each, with file, line, table and key.

The sentences are interface. Text that comes from the file is shown through `show`, so that control
characters never reach a terminal and a huge value never fills it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_SHOWN = 60
"""Characters of a value that a sentence quotes."""

_BEGUN = 8
"""Known words that a remedy lists where what was written is the beginning of several."""


@dataclass(frozen=True)
class Problem:
    """One fault. `line` counts from 1; None where the file as a whole is meant. `place` names table
    and key, or is empty."""

    file: str
    line: int | None
    place: str
    text: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (where, self.place, self.text) if part)


class MatrixError(Exception):
    """The matrix cannot be used; `problems` says why, in the order of the file. str() gives a line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def printable(text: str) -> str:
    """The text with everything a terminal would act on spelled as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quote(text: str) -> str:
    """A string of the file, in double quotes, cut to a readable length."""
    return f'"{printable(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")}"'


def show(value: Any) -> str:
    """A value of the file with its kind: `the string "x"`, `the number 3`, `a list`."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            # int-to-text of a hostile number may be refused; its size is all that matters then.
            huge = isinstance(value, int) and value.bit_length() > 256
            return "a number of more than 256 bits" if huge else f"the number {value}"
        case str():
            return f"the string {quote(value)}"
        case list() | tuple():
            return "a list"
        case dict():
            return "a table"
    return "a date or time"


def listing(words: Iterable[str], last: str = "and", limit: int = 40) -> str:
    """`a, b and c`, cut after `limit` words."""
    shown = list(words)
    if len(shown) > limit:
        return f"{', '.join(shown[:limit])} {last} {len(shown) - limit} more"
    return f" {last} ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The known word most like this one, if any is like it at all."""
    found = difflib.get_close_matches(word[:100].lower(), list(words), n=1, cutoff=0.55)
    return found[0] if found else None


def suggestion(word: str, words: Sequence[str], otherwise: str | None = None) -> str:
    """The remedy for an unknown word: the known ones that begin with it, the nearest, or all there are."""
    begun = [known for known in words if known.startswith(word.lower())] if word else []
    if 1 < len(begun) <= _BEGUN:
        return f"did you mean {listing(map(quote, begun), 'or')}?"
    near = nearest(word, words)
    if near is not None:
        return f"did you mean {quote(near)}?"
    return otherwise or f"known are {listing(map(quote, words))}"
