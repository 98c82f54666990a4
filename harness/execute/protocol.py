"""What the execution room takes and gives: frozen values, and the lines two processes exchange.

A `Launch` is everything a GPU process needs to know about a case; an `Observation` is everything
that was seen. Both are plain JSON. Neither mentions a verdict: judging is `verdict.py`'s.

The values are many and have no logic; they are one file because two processes must agree on all of them.

On the wire every message is one JSON object on one line with a "say" (worker to pool) or a "do" (pool
to worker). They travel over pipes of their own, so nothing printed to standard output can
be mistaken for one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.model import Record, Scalar, Tolerance

MAX_LINE_BYTES = 4 << 20
"""A longer message is a protocol violation: results are small, bulk data never travels."""


class Stage(StrEnum):
    """Where a case is. Announced by the worker before it starts, so a death names its stage."""

    START_UP = "start_up"
    LOAD = "load"
    PREPARE = "prepare"
    COMPILE = "compile"
    LAUNCH = "launch"
    READ_BACK = "read_back"
    COMPARE = "compare"
    TIMING = "timing"


DEVICE_STAGES = frozenset({Stage.LOAD, Stage.PREPARE, Stage.LAUNCH, Stage.READ_BACK, Stage.TIMING})
"""Stages that wait for the driver or the GPU; a deadline missed elsewhere is the host's fault."""


class Outcome(StrEnum):
    """How a case ended, as seen from outside."""

    DONE = "done"
    HANG = "hang"
    FAULT = "fault"
    REFUSED = "refused"
    OUT_OF_MEMORY = "out_of_memory"
    CRASH = "crash"
    GARBLED = "garbled"
    HOST_TIMEOUT = "host_timeout"
    HOST_ERROR = "host_error"
    NO_WORKER = "no_worker"
    TAINTED = "tainted"
    NOT_RUN = "not_run"


@dataclass(frozen=True)
class ArrayValue(Record):
    """An array argument: how it lies in memory and what is in it.

    Shape, strides and offset are in elements; `offset` is the distance of the first element from
    a 256-byte aligned address. `role`: in | out | inout. `values` names a kind of `inputs.KINDS`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    role: str = "in"
    values: str = "normal"
    index_dtype: str = "int32"
    type: str = "ArrayValue"


@dataclass(frozen=True)
class ScalarValue(Record):
    """A scalar argument passed at launch."""

    name: str
    dtype: str
    value: Scalar
    type: str = "ScalarValue"


Argument = ArrayValue | ScalarValue


@dataclass(frozen=True)
class Reference(Record):
    """Which reference judges the outputs: a name of `reference.REFERENCES`, its parameters, and `roles`
    from the reference's names to the arguments' (a role left out is the argument of that name).

    Or, with the name EXPRESSIONS, what a matrix says: (name, expression) in order, and tolerances by output.
    """

    name: str
    parameters: dict[str, float] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    expressions: tuple[tuple[str, str], ...] = ()
    tolerances: dict[str, Tolerance] = field(default_factory=dict)


EXPRESSIONS = "expressions"


@dataclass(frozen=True)
class Relation(Record):
    """A second way to the same answer, launched from the same cubin (see `relations.py`).

    `kind`: rows_permuted | rows_split | scaled. `axes` maps every array that has rows to the axis they run
    along. `parts` is (rows, grid) per launch; together they cover all rows.
    """

    kind: str
    axes: dict[str, int]
    parts: tuple[tuple[int, tuple[int, int, int]], ...]


@dataclass(frozen=True)
class JitCall(Record):
    """How users call the kernel: its file and function, hints, all parameters in order, and constants."""

    path: str
    function: str
    hints: tuple[tuple[str, int | None], ...]
    parameters: tuple[str, ...]
    constants: tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True)
class Timeouts(Record):
    """Seconds each stage may take. Start-up has its own clock, in the pool's options."""

    load: float = 30.0
    prepare: float = 60.0
    compile: float = 120.0
    launch: float = 5.0
    read_back: float = 30.0
    compare: float = 120.0
    timing: float = 30.0

    def of(self, stage: Stage) -> float:
        return float(getattr(self, stage.value))


@dataclass(frozen=True)
class Launch(Record):
    """One case, ready for a GPU process. Arguments are in calling-convention order.

    `arguments` leaves constants out: they are baked into the cubin. The block is (1, 1, 1)
    for a tile kernel: the cubin itself carries the thread count, and its static shared memory.
    `repeats` launches of fresh outputs must agree bit for bit. With `timed`, device time is measured
    too; it means something only where nothing else runs: in a pool of one worker and none waiting.
    """

    case: str
    cubin: str
    cubin_sha256: str
    symbol: str
    arch: str
    grid: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    seed: int = 0
    block: tuple[int, int, int] = (1, 1, 1)
    reference: Reference | None = None
    repeats: int = 3
    timed: bool = False
    timeouts: Timeouts = Timeouts()
    relations: tuple[Relation, ...] = ()
    jit: JitCall | None = None
    """Set where `cuda.tile.launch` is to compile and launch the kernel, in place of the cubin."""

    @property
    def arrays(self) -> tuple[ArrayValue, ...]:
        return tuple(a for a in self.arguments if isinstance(a, ArrayValue))


@dataclass(frozen=True)
class Mismatch(Record):
    """One element outside its bound. `ulp` is None where a NaN is involved."""

    index: tuple[int, ...]
    got: float | str
    expected: float | str
    ulp: int | None


@dataclass(frozen=True)
class OutputSeen(Record):
    """What became of one output array.

    Counts are of elements, `outside_bytes` of bytes between and around the elements that the
    kernel changed. `worst_ulp` is the largest distance from the rounded reference in ULP of
    the output type, `bound_ulp` the largest distance the bound allows anywhere. `differing` counts
    elements whose bits a repeat launch changed. `sha256` covers the elements' bits of the first
    launch in logical order, whatever the layout.
    """

    name: str
    sha256: str
    elements: int
    never_written: int = 0
    outside_bytes: int = 0
    differing: int = 0
    compared: bool = False
    beyond_bound: int = 0
    unexpected_nan: int = 0
    missing_nan: int = 0
    worst_ulp: int | None = None
    worst_index: tuple[int, ...] | None = None
    bound_ulp: int | None = None
    pattern: str = ""
    examples: tuple[Mismatch, ...] = ()

    @property
    def wrong(self) -> bool:
        return bool(self.never_written or self.outside_bytes or self.beyond_bound)


@dataclass(frozen=True)
class RelationSeen(Record):
    """What a relation came to for one output: how many elements have other bits than they must, and
    of those how many lie outside the error bound of their own inputs."""

    kind: str
    output: str
    elements: int
    differing: int = 0
    beyond_bound: int = 0
    outside_bytes: int = 0
    pattern: str = ""

    @property
    def wrong(self) -> bool:
        return bool(self.beyond_bound or self.outside_bytes)


@dataclass(frozen=True)
class Timing(Record):
    """Device time by events, L2 flushed before each launch; the `warm_` ones without flushing, as a
    caller in a loop sees it: where the data fit into L2, that shows instructions rather than memory.

    `samples_us` holds every launch in the order they ran, so that two distributions can be compared;
    `spread_us` is the distance between the 10th and the 90th percentile. `bytes_moved` counts
    every input once and every output once; `copy_bytes_per_second` is a device-to-device copy of
    `copy_bytes` measured the same way in the same process (bytes read plus bytes written).
    """

    median_us: float
    spread_us: float
    launches: int
    bytes_moved: int
    bytes_per_second: float
    copy_bytes_per_second: float
    copy_bytes: int
    samples_us: tuple[float, ...] = ()
    warm_median_us: float | None = None
    warm_samples_us: tuple[float, ...] = ()


@dataclass(frozen=True)
class Warp(Record):
    """One warp in a core dump: its slot, CTA, and where in the kernel it stands (bytes from the start)."""

    warp: int
    block: tuple[int, int, int]
    pc: int
    offset: int | None = None
    instruction: str = ""
    source: str | None = None
    doing: str = "runs"
    """spins | waits | runs: at a register-pool request, at a barrier, or anywhere else."""


@dataclass(frozen=True)
class Evidence(Record):
    """What was seen of a process that outlived its deadline or faulted, before it was killed.

    `notes` say what could not be had. `raw` is the debugger's text, cut to a bounded length.
    """

    waited_seconds: float = 0.0
    host_stack: str = ""
    wait_channel: str = ""
    gpu_utilisation: int | None = None
    gpu_memory_bytes: int | None = None
    warps: tuple[Warp, ...] = ()
    summary: str = ""
    pattern: str = ""
    core_bytes: int | None = None
    raw: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gpu(Record):
    """A GPU and its driver, as found on this machine."""

    index: int
    uuid: str
    name: str
    arch: str
    driver: str
    sm_count: int
    memory_bytes: int


@dataclass(frozen=True)
class Observation(Record):
    """What one isolated process was seen to do with one case.

    `stage` is the last one announced. `error` is the driver's own name of what it reported and
    `call` the function that did. `seconds` has one entry per finished stage. `attempts` holds the
    observations of the other processes this case ran in, oldest first: a bad outcome is
    confirmed once. `confirmed_by` names another case of the same cubin that was, in its stead.
    """

    case: str
    outcome: Outcome
    stage: Stage
    error: str | None = None
    call: str | None = None
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    repeats: int = 0
    outputs: tuple[OutputSeen, ...] = ()
    inputs_changed: dict[str, int] = field(default_factory=dict)
    timing: Timing | None = None
    gpu: Gpu | None = None
    evidence: Evidence | None = None
    exit_code: int | None = None
    signal: int | None = None
    stderr: str = ""
    unkillable: bool = False
    attempts: tuple[dict[str, Any], ...] = ()
    confirmed_by: str | None = None
    relations: tuple[RelationSeen, ...] = ()
    data: str = ""
    """Names what was in the inputs: equal for all hints, toolchains and layouts of the same data."""

    @property
    def looks_bad(self) -> bool:
        """True where something about the case itself went wrong and a second look is due."""
        if self.outcome is Outcome.DONE:
            seen_wrong = any(o.wrong or o.differing for o in self.outputs)
            return bool(self.inputs_changed) or seen_wrong or any(r.wrong for r in self.relations)
        return self.outcome in _CASE_FAULTS


_CASE_FAULTS = frozenset(
    {
        Outcome.HANG,
        Outcome.FAULT,
        Outcome.REFUSED,
        Outcome.OUT_OF_MEMORY,
        Outcome.CRASH,
        Outcome.GARBLED,
        Outcome.HOST_TIMEOUT,
        Outcome.HOST_ERROR,
    }
)


class Garbled(Exception):
    """A line that is not a message of this protocol."""


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """A message, or `Garbled` with a sentence that quotes what came instead."""
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("say", message.get("do")), str):
        raise Garbled(f"the worker wrote something that is no message: {line[:200]!r}")
    return message
