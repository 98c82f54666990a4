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
class GateRules(Record):
    """What a gate makes of a difference between baseline and candidate.

    `fail` and `warn` hold words of `words.GATE_WORDS`; what is in neither is only listed. `registers`
    (a thread), `spills` (instructions) and `shared_memory` (bytes a CTA) are growths that are still
    accepted; `compile_seconds` and `device_time` are factors that are. A longer time counts only where
    it also stands out of the noise.
    """

    fail: tuple[str, ...] = ("regressed", "newly_bad", "newly_unsupported", "lost")
    warn: tuple[str, ...] = (
        *("registers", "spills", "shared_memory"),
        *("compile_seconds", "device_time", "output_bits"),
    )
    registers: int = 0
    spills: int = 0
    shared_memory: int = 0
    compile_seconds: float = 1.5
    device_time: float = 1.1


@dataclass(frozen=True)
class Only(Record):
    """Where a case is asked about: every key that is set must list the cell's. Versions are as written."""

    cuda_tile: tuple[str, ...] | None = None
    cuda_toolkit: tuple[str, ...] | None = None
    toolchain: tuple[str, ...] | None = None
    arch: tuple[str, ...] | None = None

    def allows(self, toolchain: Toolchain, arch: str) -> bool:
        asked = (
            (self.cuda_tile, toolchain.cuda_tile),
            (self.cuda_toolkit, toolchain.cuda_toolkit),
            (self.toolchain, toolchain.name),
            (self.arch, arch),
        )
        return all(listed is None or value in listed for listed, value in asked)


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
    gate: GateRules = field(default_factory=GateRules)
    only: dict[str, Only] = field(default_factory=dict)
    """By the digest of a case: where alone it is asked about."""
    notes: tuple[str, ...] = ()
    """What is allowed, but hardly meant, in a sentence each with file and line."""

    def asks(self, case: Case, toolchain: Toolchain, arch: str) -> bool:
        """Whether this square of the product is wanted."""
        limit = self.only.get(case.digest)
        return limit is None or limit.allows(toolchain, arch)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is asked for. The file's place, comments, `jobs` and `gate` do not
        matter."""
        records = (self.toolchains, self.devices, self.cases, self.generators)
        plain = [[record.to_json() for record in group] for group in records]
        limits = {digest: limit.to_json() for digest, limit in self.only.items()}
        further = [limits] if limits else []
        return digest_of([plain, list(self.archs), self.timeouts.to_json(), *further])
