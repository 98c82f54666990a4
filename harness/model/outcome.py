"""The tools that ran, and what they said."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.record import Record, digest_of


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
    """Where it ended, unless well: at the "import" of the kernel's own file, at the "signature", which
    the request's parameters make, or at the "trace"."""


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
