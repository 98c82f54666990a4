"""How the commands that reports name are spelled, so that they do what they say when pasted into a shell."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

DEFAULT_OUT = Path("harness-results")
DEFAULT_REPROS = Path("repros")
"""The directories for results and repros of commands that name none."""


def command(*words: object, out: Path = DEFAULT_OUT, store: Path | None = None) -> str:
    """`python -m harness` with these words, quoted for a shell; what is so by default is left out."""
    options = [*(["--out", out] if out != DEFAULT_OUT else []), *(["--store", store] if store else [])]
    return shlex.join(["python", "-m", "harness", *map(str, [*words, *options])])


@dataclass(frozen=True)
class Place:
    """Where a run left its results, and the compilers it used; the next command must be told both."""

    out: Path = DEFAULT_OUT
    store: Path | None = None

    def explain(self, cell: str) -> str:
        """The command that tells the whole story of a cell, by its id."""
        return command("explain", cell, out=self.out, store=self.store)


HERE = Place()
