"""What a cubin tells: resources, instructions, and the books of the register pool."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.record import Record


class PoolAnswer(StrEnum):
    BALANCED = "balanced"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PoolSite(Record):
    """One USETMAXREG instruction: "alloc" or "dealloc" to `registers` a thread, at byte `pc`."""

    kind: str
    pc: int
    registers: int
    text: str
    source: str | None = None
    """File and line of the kernel, "file.py:12", where line information names one."""


@dataclass(frozen=True)
class WarpGroup(Record):
    """Warps whose way through the code is the same.

    `must` are PCs of sites every path of these warps passes before it can exit, `may` the PCs
    some path passes.
    """

    warps: tuple[int, ...]
    must: tuple[int, ...]
    may: tuple[int, ...]
    note: str = ""


@dataclass(frozen=True)
class PoolBooks(Record):
    """The register pool's accounts for one CTA, in registers (not bytes).

    `needed` must be paid before every warp can finish; `freed_at_most` is all that warps could
    ever give back without first being paid; `freed_at_least` is what they surely give back.
    """

    answer: PoolAnswer
    launch_registers: int
    threads: int
    sites: tuple[PoolSite, ...]
    groups: tuple[WarpGroup, ...]
    needed: int
    freed_at_most: int
    freed_at_least: int
    proof: tuple[str, ...]


@dataclass(frozen=True)
class Inspection(Record):
    """Resources and instructions of a cubin's one kernel.

    Registers are per thread, bytes per thread (stack) or per CTA (shared). `ctas_per_sm` is the
    theoretical occupancy; `limited_by` says which resource bounds it. `tma` counts TMA load and
    store instructions by opcode. `ptx` holds the directives and register-pool instructions of the
    embedded PTX, where --lineinfo left one: they tell whether ptxas was handed a request or made it.
    """

    symbol: str
    arch: str
    registers: int
    threads: int
    stack_bytes: int
    shared_bytes: int
    dynamic_shared_bytes: int = 0
    code_bytes: int = 0
    code_sha256: str = ""
    ctas_per_sm: int | None = None
    limited_by: str = ""
    tma: dict[str, int] = field(default_factory=dict)
    spill_instructions: int | None = None
    books: PoolBooks | None = None
    ptx: tuple[str, ...] = ()
