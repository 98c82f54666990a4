"""`harness clean`: give disk space back."""

from __future__ import annotations

import shutil
from pathlib import Path

from rich.console import Console

from harness.toolchain import open_store

REMEMBERED = ("cache",)
"""Directories of the store that hold what can be computed again."""


def clean_store(path: Path | None, everything: bool) -> int:
    """Delete remembered compiles, or the whole store; results directories are never touched."""
    store = open_store(path)
    victims = [store.root] if everything else [store.root / name for name in REMEMBERED]
    for victim in victims:
        with store.lock("clean"):
            shutil.rmtree(victim, ignore_errors=True)
    what = "compilers and remembered compiles" if everything else "remembered compiles"
    Console(highlight=False, soft_wrap=True).print(f"deleted {what} under {store.root}", markup=False)
    return 0
