"""The nouns of the lab: frozen values that every stage hands to the next.

Nothing here does any work or imports anything of ours. A value knows how to turn itself into plain
JSON (`to_json`), how to come back (`from_json`) and, where it names something, its identity
(`digest`): a SHA-256 over canonical JSON, so that equal values have equal names on every machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from typing import Any, Self

Scalar = bool | int | float | str | None


class Verdict(StrEnum):
    """One word per cell; the evidence each must carry is listed in ARCHITECTURE.md."""

    PASS = "pass"
    COMPILES = "compiles"
    UNSUPPORTED = "unsupported"
    FRONTEND_ERROR = "frontend_error"
    COMPILE_ERROR = "compile_error"
    TOOLCHAIN_BROKEN = "toolchain_broken"
    COMPILER_CRASH = "compiler_crash"
    COMPILE_TIMEOUT = "compile_timeout"
    PREDICTED_DEADLOCK = "predicted_deadlock"
    LAUNCH_ERROR = "launch_error"
    HANG = "hang"
    DEVICE_FAULT = "device_fault"
    WRONG_RESULT = "wrong_result"
    NONDETERMINISTIC = "nondeterministic"
    WORKER_CRASH = "worker_crash"
    OUT_OF_MEMORY = "out_of_memory"
    UNKILLABLE = "unkillable"
    FLAKY = "flaky"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"
    TAINTED = "tainted"
    INFRA_ERROR = "infra_error"

    @property
    def is_good(self) -> bool:
        """True where the cell did what it should."""
        return self in (Verdict.PASS, Verdict.COMPILES)

    @property
    def is_unknown(self) -> bool:
        """True where nothing was learnt about the compiler: neither good nor bad."""
        return self in _UNKNOWN

    @property
    def is_finding(self) -> bool:
        """True where a compiler, a driver or a kernel misbehaved."""
        return not self.is_good and not self.is_unknown


_UNKNOWN = frozenset(
    {
        Verdict.UNSUPPORTED,
        Verdict.SKIPPED,
        Verdict.NOT_RUN,
        Verdict.TAINTED,
        Verdict.INFRA_ERROR,
        Verdict.TOOLCHAIN_BROKEN,
    }
)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: the text that digests are taken over."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest_of(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON of a plain value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _revive(hint: Any, value: Any) -> Any:
    """Rebuild a value of the annotated type from plain JSON."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        records = [a for a in arguments if isinstance(a, type) and issubclass(a, Record)]
        if records and isinstance(value, dict):
            named = {r.__name__: r for r in records}
            return named[value["type"]].from_json(value) if "type" in value else records[0].from_json(value)
        others = [a for a in arguments if a is not type(None)]
        return _revive(others[0], value) if len(others) == 1 else value
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_revive(arguments[0], item) for item in value)
        return tuple(_revive(a, item) for a, item in zip(arguments, value, strict=True))
    if origin is dict:
        return {key: _revive(arguments[1], item) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_json(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    return value


@cache
def _field_types(record: type) -> dict[str, Any]:
    """The resolved annotations of a record's fields."""
    hints = typing.get_type_hints(record)
    return {field.name: hints[field.name] for field in dataclasses.fields(record)}


class Record:
    """Base of the nouns: to and from plain JSON, and a digest."""

    def to_json(self) -> dict[str, Any]:
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        hints = _field_types(cls)  # type: ignore[arg-type]
        return cls(**{key: _revive(hints[key], item) for key, item in data.items() if key in hints})

    @cached_property
    def digest(self) -> str:
        return digest_of(self.to_json())


# --- what a compiler can tell apart -----------------------------------------------------------


@dataclass(frozen=True)
class Array(Record):
    """An array parameter and what a JIT launch would assume about it.

    Strides and shapes are in elements, `base_divisible_by` is in bytes; one entry per dimension.
    None means dynamic, a divisor of 1 means nothing is assumed.
    """

    name: str
    dtype: str
    shape_constant: tuple[int | None, ...]
    shape_divisible_by: tuple[int, ...]
    stride_constant: tuple[int | None, ...]
    stride_divisible_by: tuple[int, ...]
    base_divisible_by: int = 16
    alias_groups: tuple[str, ...] = ()
    may_alias_internally: bool = False
    index_dtype: str = "int32"
    type: str = "Array"

    @property
    def rank(self) -> int:
        return len(self.stride_constant)


@dataclass(frozen=True)
class ScalarParameter(Record):
    """A scalar passed at launch, e.g. dtype "int32"."""

    name: str
    dtype: str
    type: str = "ScalarParameter"


@dataclass(frozen=True)
class Constant(Record):
    """A `ct.Constant`: baked into the bytecode, no launch argument."""

    name: str
    value: Scalar
    type: str = "Constant"


@dataclass(frozen=True)
class ArrayList(Record):
    """A list of arrays that share one description."""

    name: str
    element: Array
    alias_groups: tuple[str, ...] = ()
    elements_may_alias: bool = False
    type: str = "ArrayList"


@dataclass(frozen=True)
class TupleParameter(Record):
    """A tuple of parameters (cuda-tile 1.5 and newer, calling convention 2)."""

    name: str
    items: tuple[Array | ScalarParameter | Constant, ...]
    type: str = "TupleParameter"


Parameter = Array | ScalarParameter | Constant | ArrayList | TupleParameter


@dataclass(frozen=True)
class Hints(Record):
    """What `ct.kernel(...)` takes: CTAs an SM should hold (1-32), CTAs in a cluster, -O level 0-3.

    None leaves what the kernel's own decorator says.
    """

    occupancy: int | None = None
    num_ctas: int | None = None
    opt_level: int | None = 3


@dataclass(frozen=True)
class KernelSource(Record):
    """Where a kernel's text is.

    `path` is the real file; `canonical` is the name the frontend is shown instead, so that
    bytecode, which embeds it, is the same from every checkout; `sha256` is of the file's bytes.
    """

    path: str
    canonical: str
    function: str
    sha256: str


@dataclass(frozen=True)
class Specialization(Record):
    """Everything the frontend can tell apart about a launch; many cases share one."""

    source: KernelSource
    parameters: tuple[Parameter, ...]
    hints: Hints = Hints()
    calling_convention: str = "cutile_python_v1"
    bytecode_version: str | None = None
    """None: the newest that frontend and backend both know, as a JIT launch picks it."""

    @cached_property
    def digest(self) -> str:
        """Without the real path, which the compiler never sees."""
        plain = self.to_json()
        del plain["source"]["path"]
        return digest_of(plain)


# --- what was asked for -----------------------------------------------------------------------


@dataclass(frozen=True)
class RunArgument(Record):
    """What a parameter of a kernel that is not shipped is launched with.

    Of an array `shape` in elements, whether it is read or written (in | out | inout) and a kind of
    `values`; of a scalar its `value`.
    """

    name: str
    shape: tuple[int, ...] = ()
    role: str = "inout"
    values: str = "normal"
    value: Scalar = None


@dataclass(frozen=True)
class Tolerance(Record):
    """How far an output may lie from its reference: a share of the exact value, plus a number, and then
    ULP of the output's type."""

    relative: float = 0.0
    absolute: float = 0.0
    ulp: int = 0


@dataclass(frozen=True)
class RunSettings(Record):
    """How to launch a kernel that is not shipped: the grid, in tile blocks, and an argument per
    array and scalar, in the kernel's order.

    `reference` are (name, expression) in order: outputs, and steps that later expressions use. An output
    without an entry of `tolerance` is held to what float32 arithmetic may be off by.
    """

    grid: tuple[int, int, int]
    arguments: tuple[RunArgument, ...]
    reference: tuple[tuple[str, str], ...] = ()
    tolerance: tuple[tuple[str, Tolerance], ...] = ()


@dataclass(frozen=True)
class Case(Record):
    """One launch of one kernel: problem shape, dtype, hints, knobs of the kernel, and data.

    `kernel` is a shipped name ("rmsnorm.static_persistent") or "path/to/file.py:name". `knobs` are its
    own compile-time settings (allow_tma, latency, tile_m, ...), sorted by name. `layout` and
    `values` name how arrays lie in memory and what is in them; they matter to execution, and the
    layout to alignment. `parameters` is empty unless the matrix spells them out; `run` then says how
    to launch the kernel, if it can be launched. `engine` is who launches: "cubin", the lab itself, or
    "jit", `cuda.tile.launch` on torch tensors, as users do.
    """

    kernel: str
    shape: tuple[int, ...]
    dtype: str
    hints: Hints = Hints()
    knobs: tuple[tuple[str, Scalar], ...] = ()
    layout: str = "contiguous"
    values: str = "normal"
    seed: int = 0
    parameters: tuple[Parameter, ...] = ()
    run: RunSettings | None = None
    bytecode_version: str | None = None
    calling_convention: str = "cutile_python_v1"
    engine: str = "cubin"

    def to_json(self) -> dict[str, Any]:
        """Without what came later and is not asked for, so that a cell keeps its id."""
        plain = super().to_json()
        for name in ("run", "bytecode_version", "calling_convention", "engine"):
            if getattr(self, name) == getattr(type(self), name):
                del plain[name]
        return plain

    def knob(self, name: str, default: Scalar = None) -> Scalar:
        return dict(self.knobs).get(name, default)

    @property
    def settings(self) -> dict[str, Scalar]:
        """All hints and knobs under one roof, as reports show them."""
        further: dict[str, Scalar] = {}
        if self.bytecode_version is not None:
            further["bytecode_version"] = self.bytecode_version
        if self.calling_convention != "cutile_python_v1":
            further["calling_convention"] = self.calling_convention
        if self.engine != "cubin":
            further["engine"] = self.engine
        return {**self.hints.to_json(), **dict(self.knobs), **further}


@dataclass(frozen=True)
class Toolchain(Record):
    """A frontend version and a backend version; a component may be overridden alone."""

    name: str
    cuda_tile: str
    cuda_toolkit: str
    tileiras: str | None = None
    nvvm: str | None = None
    ptxas: str | None = None


@dataclass(frozen=True)
class Device(Record):
    """What execution needs: a GPU of this name and architecture, and a driver in this range."""

    name: str
    gpu: str
    arch: str
    driver: str = ""
    """A version range such as ">=580,<600"; empty for any."""


@dataclass(frozen=True)
class Cell(Record):
    """One square of the matrix. Without a device it asks about compiling, with one about running."""

    toolchain: Toolchain
    arch: str
    case: Case
    device: Device | None = None

    @cached_property
    def id(self) -> str:
        """Twelve hex digits, stable across runs and machines."""
        return self.digest[:12]


# --- what the tools said ----------------------------------------------------------------------


@dataclass(frozen=True)
class Component(Record):
    """One resolved piece of a backend: package version and SHA-256 of the file that runs."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Backend(Record):
    """A composed tree that can run: `root`/bin/tileiras with its ptxas, libnvvm and libdevice.

    `identity` covers the bytes of all components, not their location or version label, so two
    toolkits that ship the same binaries are one backend.
    """

    root: str
    tileiras: Component
    nvvm: Component
    ptxas: Component
    bytecode_versions: tuple[str, ...]

    @property
    def identity(self) -> str:
        return digest_of([self.tileiras.sha256, self.nvvm.sha256, self.ptxas.sha256])

    @property
    def components(self) -> dict[str, str]:
        return {c.name: c.version for c in (self.tileiras, self.nvvm, self.ptxas)}


@dataclass(frozen=True)
class Frontend(Record):
    """An installed cuda-tile: a directory for sys.path, and the identity of its files."""

    root: str
    version: str
    sha256: str
    bytecode_versions: tuple[str, ...] = ()


@dataclass(frozen=True)
class TraceOutcome(Record):
    """What the frontend made of a specialisation.

    `status`: ok | error (a located, diagnosed user error) | unsupported (it says so) | internal
    (KeyError and the like out of cuda.tile) | crash (the tracer died) | timeout. `error_type` is the
    exception's, of a crash how it died: "SIGSEGV", "exit code 7".
    """

    status: str
    bytecode_sha256: str | None = None
    bytecode_version: str | None = None
    symbol: str | None = None
    opt_level: int | None = None
    """The level to compile with where the request left it to the kernel's decorator."""
    error_type: str | None = None
    message: str = ""
    traceback: str = ""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    cached: bool = False
    stage: str | None = None
    """Where it ended, unless well: at the "import" of the kernel's own file, or at the "trace"."""


@dataclass(frozen=True)
class ProcessUsage(Record):
    """What one process of a group was seen to use: CPU seconds, peak resident bytes."""

    name: str
    cpu_seconds: float
    peak_rss_bytes: int


@dataclass(frozen=True)
class CompileOutcome(Record):
    """What one run of tileiras came to.

    `status`: ok | failed | timeout. `holder` names the component that was burning CPU when the
    deadline struck. `usage` has one entry per process name seen in the group; `rss_over_time` and
    `cpu_over_time` are (seconds, bytes) and (seconds, CPU seconds) samples of the whole group.
    """

    status: str
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    deadline_seconds: float = 0.0
    holder: str | None = None
    usage: tuple[ProcessUsage, ...] = ()
    rss_over_time: tuple[tuple[float, int], ...] = ()
    cpu_over_time: tuple[tuple[float, float], ...] = ()
    cubin_sha256: str | None = None
    cached: bool = False
    unkillable: bool = False
    """A process of the compiler survived SIGKILL."""


# --- what the cubin tells ---------------------------------------------------------------------


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


# --- what was concluded -----------------------------------------------------------------------


@dataclass(frozen=True)
class Advice(Record):
    """A remark that fails nothing by itself."""

    kind: str
    text: str


@dataclass(frozen=True)
class Judgement(Record):
    """One word, the name equal findings share, one plain sentence, and the evidence."""

    verdict: Verdict
    signature: str | None
    summary: str
    component: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()


@dataclass(frozen=True)
class CellResult(Record):
    """A judged cell and everything that was seen on the way."""

    cell: Cell
    judgement: Judgement
    components: dict[str, str] = field(default_factory=dict)
    trace: TraceOutcome | None = None
    compile: CompileOutcome | None = None
    inspection: Inspection | None = None
    observation: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    resolved: dict[str, str] = field(default_factory=dict)
    """The exact `cuda_tile` and `cuda_toolkit`, where a toolchain may name but the series ("13.3")."""

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict
