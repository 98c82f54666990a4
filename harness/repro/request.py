"""What a repro is made of, as the command line asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.model import CellResult, Toolchain
from harness.oracle import Oracle
from harness.reduce.reduced import Reduced

Note = Callable[[str], None]
"""Hears what is being done, a line at a time."""


@dataclass(frozen=True)
class Request:
    """What to make: the result that shows the fault, where else to look, and what to call it.

    `base` is the folder that kernels of the reader's own are relative to; `bisect` the text of a
    bisection's result. `toolchains` and `archs` are tried besides the cell's own. `deadline` in seconds.
    `on_device` are results of the same case on the same device, where only a device can tell.
    """

    result: CellResult
    oracle: Oracle
    name: str
    repros: Path
    toolchains: tuple[Toolchain, ...]
    archs: tuple[str, ...]
    title: str | None = None
    link: str = ""
    base: Path | None = None
    reduced: Reduced | None = None
    bisect: str | None = None
    deadline: float = 60.0
    force: bool = False
    on_device: tuple[CellResult, ...] = ()
