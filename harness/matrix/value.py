"""What a matrix file asks for, checked and multiplied out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.model import Case, Device, Record, Scalar, Toolchain, digest_of


@dataclass(frozen=True)
class Timeouts(Record):
    """Seconds each stage may take. `launch` starts only when the kernel is loaded and the worker warm."""

    start_up: float = 60.0
    trace: float = 60.0
    compile: float = 60.0
    load: float = 10.0
    launch: float = 5.0
    read_back: float = 10.0
    compare: float = 30.0


@dataclass(frozen=True)
class Generator(Record):
    """Cases to be drawn rather than listed: `count` of them from `seed`, each array of at most
    `max_elements` elements.

    `axes` holds only what the [[case]] table spells out, as (key, allowed values); everything else
    is the drawer's choice. None among the values means the kernel's or compiler's own default.
    `table` is the number of the [[case]] table, from 1.
    """

    table: int
    count: int
    seed: int
    max_elements: int
    axes: tuple[tuple[str, tuple[Scalar, ...]], ...]


@dataclass(frozen=True)
class Matrix:
    """A checked matrix. `path` is the file; a kernel "file.py:name" is relative to its folder.

    `jobs` is how many compiles may run at once, None for as many as there are cores.
    """

    path: Path
    toolchains: tuple[Toolchain, ...]
    archs: tuple[str, ...]
    devices: tuple[Device, ...]
    cases: tuple[Case, ...]
    generators: tuple[Generator, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    jobs: int | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is asked for. The file's place, comments and `jobs` do not matter."""
        records = (self.toolchains, self.devices, self.cases, self.generators)
        plain = [[record.to_json() for record in group] for group in records]
        return digest_of([plain, list(self.archs), self.timeouts.to_json()])
