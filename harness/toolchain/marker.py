"""What makes a directory a store: a marker file, without which nothing is ever deleted there.

The marker is never replaced or removed, so an flock on it stands for the store as a whole: whoever
uses the store shares it, and whoever cleans the store holds it alone.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from harness.toolchain.errors import StoreError

MARKER = "tile-harness-store.json"

SHELVES = (
    "backends",
    "cache",
    "components",
    "environments",
    "frontends",
    "index",
    "locked",
    "locks",
    "scratch",
)
"""Every directory that a store has below its root."""

_TELLTALE = ("locked", "scratch")
"""Shelves that every store got on its first use, with names that hardly anything else has."""

_CACHE = {"blobs", "lock", "memo"}
_ABOUT = {
    "about": "Compilers and remembered compiles of tile-harness; `python -m harness clean` deletes them."
}


def is_marked(root: Path) -> bool:
    """Whether `clean` may delete shelves of this directory."""
    return (root / MARKER).is_file()


def is_store(root: Path) -> bool:
    """Marked, or a store of before there were markers: its shelves and nothing else."""
    return is_marked(root) or (
        any((root / name).is_dir() for name in _TELLTALE)
        and not _strangers(root, set(SHELVES))
        and not _strangers(root / "cache", _CACHE)
    )


def mark(root: Path) -> None:
    """Make a store of an empty directory, or mark an older store. StoreError where other files lie."""
    if is_marked(root):
        return
    strangers = _strangers(root, set())
    if strangers and not is_store(root):
        raise StoreError(
            f"{root} is not empty (it holds {strangers[0]}) and is no store of this harness; "
            "name a new or an empty directory with --store or HARNESS_STORE"
        )
    with contextlib.suppress(FileExistsError):  # another run was first
        fd = os.open(root / MARKER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(_ABOUT, file)


def _strangers(directory: Path, expected: set[str]) -> list[str]:
    """What else lies there. Hidden names and lost+found are nobody's: file systems make them."""
    if not directory.is_dir():
        return []
    found = sorted(entry.name for entry in directory.iterdir())
    return [n for n in found if n not in expected and not n.startswith(".") and n != "lost+found"]
