"""One open laboratory: store, processes, tracers, compilers, and the way from a question to what was seen.

A `Question` is what can be asked without a GPU: this toolchain, this architecture, this
specialisation. `Lab.examine` answers it with an `Examination`, the input of `judge.judge_compile`.
Every command that compiles (run, explain, bisect, reduce, gate) goes through here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from packaging.version import Version

from harness.compile.backend import Compiler
from harness.compile.cache import Cache
from harness.compile.trace import Tracer
from harness.inspect import Disassembler, inspect_cubin
from harness.kernels.control.spec import CONTROL
from harness.model import (
    Backend,
    Case,
    CompileOutcome,
    Frontend,
    Inspection,
    Record,
    Specialization,
    Toolchain,
    TraceOutcome,
)
from harness.process import Supervisor
from harness.toolchain import Provisioner, UnsupportedFrontend, open_store

OPAQUE_EXIT_CODE = 5
"""tileiras's catch-all: anything that failed inside, ptxas included."""

REFUSALS = (1, 2)
"""Exit codes of a tileiras that will not even begin: an option, architecture or version it does not know."""

CONTROL_LEVEL = 3


@dataclass(frozen=True)
class Question(Record):
    """What can be asked without a GPU. Deadlines are in seconds."""

    toolchain: Toolchain
    arch: str
    specialization: Specialization


def opt_level(question: Question, trace: TraceOutcome | None) -> int:
    """The -O level: the question's, else that of the kernel's own decorator, else tileiras's 3."""
    asked = question.specialization.hints.opt_level
    decorated = trace.opt_level if trace is not None else None
    return asked if asked is not None else 3 if decorated is None else decorated


@dataclass(frozen=True)
class Deadlines:
    """Seconds a stage may take; trace includes nothing of the tracer's start-up.

    A compile that misses its deadline gets a second try of `patience` seconds, if that is more.
    """

    trace: float = 30.0
    compile: float = 60.0
    patience: float = 0.0


@dataclass(frozen=True)
class Examination:
    """Everything seen on the way from a specialisation to an inspected cubin."""

    trace: TraceOutcome | None = None
    compile: CompileOutcome | None = None
    inspection: Inspection | None = None
    patient: CompileOutcome | None = None
    control: CompileOutcome | None = None
    diagnosis: dict[str, Any] | None = None
    unsupported: str | None = None


class Lab:
    """Owns what outlives a question. Use as a context manager; safe to share between threads."""

    def __init__(
        self,
        store: Path | None = None,
        deadlines: Deadlines | None = None,
        *,
        offline: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.store = open_store(store)
        self.deadlines = deadlines or Deadlines()
        self.supervisor = Supervisor()
        self.cache = Cache(self.store.root / "cache", writable=self.store.writable)
        self.provisioner = Provisioner(self.store, self.supervisor, offline=offline, progress=progress)
        self.compiler = Compiler(self.supervisor, self.cache)
        self.disassembler = Disassembler(self.supervisor, self.cache)
        self.compiler_cpu_seconds = 0.0
        """CPU seconds inside tileiras and ptxas so far, of compiles that really ran."""
        self._tracers: dict[str, Tracer] = {}
        self._lock = threading.Lock()
        self._using = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._using.enter_context(self.store.shared())
        self.supervisor.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for tracer in self._tracers.values():
            tracer.close()
        self.supervisor.__exit__(kind, error, traceback)
        self._using.close()

    @property
    def tracer_cpu_seconds(self) -> float:
        """CPU seconds of all tracers so far, start-up included."""
        return sum(tracer.cpu_seconds for tracer in self._tracers.values())

    def tracer(self, frontend: Frontend) -> Tracer:
        """The one warm tracer of this frontend; its process starts with the first real trace."""
        with self._lock:
            if frontend.sha256 not in self._tracers:
                self._tracers[frontend.sha256] = Tracer(frontend, self.supervisor, self.cache)
            return self._tracers[frontend.sha256]

    def bytecode_version(self, tracer: Tracer, backend: Backend) -> str | None:
        """The newest bytecode that both sides know, as a JIT launch picks it; None if there is none."""
        common = set(tracer.bytecode_versions()) & set(backend.bytecode_versions)
        return max(common, key=Version, default=None)

    def trace(self, question: Question) -> TraceOutcome:
        """Bytecode for the question. Raises UnsupportedFrontend for a cuda-tile without export."""
        tracer = self.tracer(self.provisioner.frontend(question.toolchain.cuda_tile))
        backend = self.provisioner.backend(question.toolchain)
        version = question.specialization.bytecode_version or self.bytecode_version(tracer, backend)
        if version is None:
            return TraceOutcome(
                status="unsupported",
                message=f"cuda-tile {question.toolchain.cuda_tile} and tileiras {backend.tileiras.version} "
                "share no bytecode version",
            )
        return tracer.trace(question.specialization, question.arch, version, self.deadlines.trace)

    def compile(
        self, question: Question, bytecode_sha256: str, level: int, deadline: float | None = None
    ) -> CompileOutcome:
        """One run of tileiras, or what an equal run came to before."""
        backend = self.provisioner.backend(question.toolchain)
        seconds = self.deadlines.compile if deadline is None else deadline
        outcome = self.compiler.compile(backend, bytecode_sha256, question.arch, level, seconds)
        if not outcome.cached:
            with self._lock:
                self.compiler_cpu_seconds += outcome.cpu_seconds
        return outcome

    def inspect(self, question: Question, outcome: CompileOutcome) -> Inspection | None:
        """Resources and register-pool books of a compiled cubin."""
        if outcome.cubin_sha256 is None:
            return None
        cubin = self.cache.get(outcome.cubin_sha256)
        if cubin is None:
            return None
        source = question.specialization.source
        return inspect_cubin(
            cubin, question.arch, self.disassembler, source_names={source.canonical: source.path}
        )

    def control(self, question: Question) -> tuple[CompileOutcome, str] | None:
        """The control kernel on the same toolchain and target, and its bytecode; None where it
        cannot be traced."""
        spec = CONTROL.specialise(Case("control", (16,), "float32"))
        plain = Question(question.toolchain, question.arch, spec)
        traced = self.trace(plain)
        if traced.bytecode_sha256 is None:
            return None
        level = opt_level(plain, traced)
        return self.compile(plain, traced.bytecode_sha256, level), traced.bytecode_sha256

    def finish(self, question: Question, trace: TraceOutcome) -> Examination:
        """Compile and inspect what was traced; where that fails, ask the control and the shim.

        A control that fails too is what the shim looks into: its failure is the toolchain's own.
        """
        seen = Examination(trace=trace)
        if trace.bytecode_sha256 is None:
            return seen
        level = opt_level(question, trace)
        outcome = self.compile(question, trace.bytecode_sha256, level)
        seen = replace(seen, compile=outcome)
        if outcome.status == "ok":
            return replace(seen, inspection=self.inspect(question, outcome))
        if outcome.exit_code in REFUSALS:
            return seen
        suspect = trace.bytecode_sha256
        control = self.control(question)
        if control is not None:
            seen = replace(seen, control=control[0])
            if control[0].status != "ok":
                outcome, suspect, level = *control, CONTROL_LEVEL
        if seen.compile is outcome and outcome.status == "timeout":
            return replace(seen, patient=self._patiently(question, suspect, level))
        if outcome.exit_code == OPAQUE_EXIT_CODE:
            backend = self.provisioner.backend(question.toolchain)
            diagnosis = self.compiler.diagnose(backend, suspect, question.arch, level, self.deadlines.compile)
            seen = replace(seen, diagnosis=diagnosis)
        return seen

    def _patiently(self, question: Question, bytecode_sha256: str, level: int) -> CompileOutcome | None:
        """Another try with more time, where that was asked for."""
        if self.deadlines.patience <= self.deadlines.compile:
            return None
        return self.compile(question, bytecode_sha256, level, self.deadlines.patience)

    def examine(self, question: Question) -> Examination:
        """From question to inspected cubin, as far as it goes."""
        try:
            traced = self.trace(question)
        except UnsupportedFrontend as refusal:
            return Examination(unsupported=str(refusal))
        return self.finish(question, traced)
