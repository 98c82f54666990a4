"""`harness clean`: give disk space back."""

from __future__ import annotations

import shutil
from pathlib import Path

from rich.console import Console

from harness.toolchain.marker import SHELVES
from harness.toolchain.store import existing_store

REMEMBERED = ("cache",)
"""Shelves of the store that hold what can be computed again."""


def clean_store(path: Path | None, everything: bool) -> int:
    """Delete remembered compiles, or all that a store holds, and nothing that the harness did not make.

    Raises StoreError for what is no store, and where a run is using it.
    """
    store = existing_store(path)
    shelves = [store.root / name for name in (SHELVES if everything else REMEMBERED)]
    with store.alone():
        for shelf in shelves:
            # A link leads to where somebody else decides.
            if shelf.is_dir() and not shelf.is_symlink():
                shutil.rmtree(shelf)
    what = "compilers and remembered compiles" if everything else "remembered compiles"
    links = [str(shelf) for shelf in shelves if shelf.is_symlink()]
    left = f"; left alone, being links: {', '.join(links)}" if links else ""
    Console(highlight=False, soft_wrap=True).print(f"deleted {what} under {store.root}{left}", markup=False)
    return 0
