"""Trace specialisations to bytecode in a warm tracer, one process per cuda-tile version.

What a tracer answered is remembered by everything that went in, so that a warm cache starts no
tracer at all. The tracer's errors, crashes and timeouts are statuses of `TraceOutcome`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.compile import tracer_worker
from harness.compile.cache import Cache
from harness.legible import legible
from harness.model import Frontend, KernelSource, Specialization, TraceOutcome, canonical_json
from harness.outcome import ending
from harness.process import Child, Supervisor

PROTOCOL = 3
"""Raise it when the same request may be answered otherwise: old memos are then out of use."""

START_SECONDS = 60.0
"""Deadline of a tracer's start-up, which no trace pays for."""

_CLOSE_SECONDS = 1.0
_TRACE = "trace"
_IMPORTS = "imports"
"""Which files beside a kernel's own a trace hangs on."""

_HELLO = "frontend"
_STATUSES = ("ok", "error", "unsupported", "internal", "crash", "timeout")


class _StartFailed(Exception):
    """The tracer did not come up; args: a sentence, and its standard error."""


class Tracer:
    """The tracer of one frontend; safe to share between threads, one trace at a time.

    Its process starts with the first trace that is not remembered, and is replaced after a crash,
    a timeout or an internal error.
    """

    def __init__(
        self, frontend: Frontend, supervisor: Supervisor, cache: Cache, python: str = sys.executable
    ) -> None:
        self.frontend = frontend
        self._supervisor = supervisor
        self._cache = cache
        self._python = python
        self._lock = threading.Lock()
        self._worker: Child | None = None
        self._versions: tuple[str, ...] = ()
        self._spent_cpu_seconds = 0.0

    def trace(self, spec: Specialization, arch: str, bytecode_version: str, deadline: float) -> TraceOutcome:
        """Bytecode for `arch` in the given version, or why there is none. `deadline` is in seconds."""
        key = canonical_json([PROTOCOL, self.frontend.sha256, spec.digest, arch, bytecode_version])
        outcome = self._recall(key, spec.source)
        if outcome is None:
            with self._lock:
                outcome = self._recall(key, spec.source) or self._ask(
                    key, spec, arch, bytecode_version, deadline
                )
        return _with_real_path(outcome, spec.source)

    def bytecode_versions(self) -> tuple[str, ...]:
        """Versions this frontend writes, oldest first.

        Where the frontend cannot even be imported, the oldest there is: the trace then tells why.
        """
        if self.frontend.bytecode_versions:
            return self.frontend.bytecode_versions
        with self._lock:
            if not self._versions:
                self._versions = self._cache.recall_as(_HELLO, self._hello_key, _versions) or ()
            if not self._versions:
                try:
                    self._ensure_worker()
                except _StartFailed:
                    return ("13.1",)
            return self._versions

    @property
    def cpu_seconds(self) -> float:
        """Of all processes of this tracer so far, start-up included."""
        worker = self._worker
        return self._spent_cpu_seconds + (worker.cpu_seconds if worker is not None else 0.0)

    def close(self) -> None:
        """End the process; a later trace would start another."""
        with self._lock:
            self._retire(_CLOSE_SECONDS)

    # --- the process -------------------------------------------------------------------------

    @property
    def _hello_key(self) -> str:
        return canonical_json([PROTOCOL, self.frontend.sha256])

    def _ensure_worker(self) -> Child:
        if self._worker is not None and self._worker.alive:
            return self._worker
        self._retire()
        script = str(Path(tracer_worker.__file__))
        environment = {name: value for name, value in os.environ.items() if "CUDA_TILE" not in name}
        worker = self._supervisor.spawn(
            [self._python, "-I", script, self.frontend.root], cwd="/", env=environment
        )
        self._worker = worker
        try:
            hello = json.loads(worker.readline(START_SECONDS))
            versions = _versions(hello)
        except (EOFError, TimeoutError, ValueError, LookupError, TypeError) as error:
            self._retire()
            what = "did not start in time" if isinstance(error, TimeoutError) else "cannot be imported"
            raise _StartFailed(
                f"cuda-tile {self.frontend.version} {what} ({_last_line(worker.stderr_text)})",
                worker.stderr_text,
            ) from error
        if not self._versions:
            self._cache.remember(_HELLO, self._hello_key, hello)
        self._versions = versions
        return worker

    def _retire(self, patience: float = 0.0) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        if patience > 0:
            worker.close(patience)
        else:
            worker.kill()
        self._spent_cpu_seconds += worker.cpu_seconds

    def _ask(
        self, key: str, spec: Specialization, arch: str, bytecode_version: str, deadline: float
    ) -> TraceOutcome:
        try:
            worker = self._ensure_worker()
        except _StartFailed as failure:
            message, traceback = map(legible, failure.args)
            return TraceOutcome(status="crash", message=message, traceback=traceback)
        request = {"spec": spec.to_json(), "arch": arch, "bytecode_version": bytecode_version}
        begun = time.monotonic()
        talk = _Talk(worker, spec.source.canonical)
        try:
            answer = talk.ask(request, deadline)
        except (TimeoutError, EOFError, ValueError) as error:
            answer = talk.failure(error, deadline)
            self._retire()
        except BaseException:
            self._retire()
            raise
        wall = time.monotonic() - begun
        if answer["status"] == "internal":
            self._retire()
        outcome = self._outcome(answer, bytecode_version, wall)
        if outcome.status not in ("timeout", "crash") and answer.get("lasting", True):
            imported = answer.get("imported", {})
            if imported:
                self._cache.remember(_IMPORTS, key, {"files": sorted(imported)})
                key = _with_imports(key, imported)
            self._cache.remember(_TRACE, key, outcome.to_json())
        return outcome

    # --- answers -----------------------------------------------------------------------------

    def _outcome(self, answer: dict[str, Any], bytecode_version: str, wall: float) -> TraceOutcome:
        cpu = answer.get("cpu_seconds", 0.0)
        if answer["status"] != "ok":
            kind = answer.get("error_type")
            return TraceOutcome(
                status=answer["status"],
                error_type=legible(kind) if kind is not None else None,
                message=legible(answer["message"]),
                traceback=legible(answer.get("traceback", "")),
                wall_seconds=wall,
                cpu_seconds=cpu,
                stage=answer.get("stage"),
            )
        return TraceOutcome(
            status="ok",
            bytecode_sha256=self._cache.put(answer["bytecode"]),
            bytecode_version=bytecode_version,
            symbol=answer["symbol"],
            opt_level=answer.get("opt_level"),
            wall_seconds=wall,
            cpu_seconds=cpu,
        )

    def _recall(self, key: str, source: KernelSource) -> TraceOutcome | None:
        """What was remembered, with the files that the kernel's own imported beside it as they are now."""
        files = self._cache.recall_as(_IMPORTS, key, lambda value: tuple(map(str, value["files"])))
        if files:
            folder = Path(source.path).parent
            key = _with_imports(key, {name: _sha256(folder / name) for name in files})
        return self._cache.recall_as(_TRACE, key, self._remembered)

    def _remembered(self, value: dict[str, Any]) -> TraceOutcome:
        """Raises ValueError or another of `recall_as`'s where this is of no use."""
        outcome = TraceOutcome.from_json({**value, "cached": True})
        if outcome.status not in _STATUSES:
            raise ValueError(outcome.status)
        if outcome.bytecode_sha256 is not None and self._cache.get(outcome.bytecode_sha256) is None:
            raise LookupError(outcome.bytecode_sha256)
        return outcome


def _with_imports(key: str, imported: Mapping[str, str]) -> str:
    """The key of an answer that hangs on these files too, given with their SHA-256."""
    return canonical_json([key, dict(imported)])


def _sha256(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _versions(hello: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(version) for version in hello["bytecode_versions"])


class _Talk:
    """One request to a tracer, and what it was at when it failed to answer."""

    def __init__(self, worker: Child, canonical: str) -> None:
        self._worker = worker
        self._canonical = canonical
        self._stage: str | None = None

    def ask(self, request: dict[str, Any], deadline: float) -> dict[str, Any]:
        """The answer. Raises TimeoutError, EOFError, and ValueError for what is no answer."""
        until = time.monotonic() + deadline
        self._worker.send(json.dumps(request).encode("ascii") + b"\n", deadline)
        while True:
            said = json.loads(self._worker.readline(until - time.monotonic()))
            if not isinstance(said, dict):
                raise ValueError("an answer is an object")
            if said.get("status") in _STATUSES:
                return _checked(said)
            self._stage = said.get("stage")

    def failure(self, error: Exception, deadline: float) -> dict[str, Any]:
        """An answer in the place of the one that never came."""
        importing = self._stage == tracer_worker.IMPORT
        doing = f"importing {self._canonical}" if importing else "tracing"
        status, how, traceback = "crash", None, ""
        if isinstance(error, TimeoutError) and self._worker.alive:
            status, message = "timeout", f"{doing} did not end within {deadline:g} s"
        elif isinstance(error, ValueError):
            message = f"the frontend's process gave something that is no answer while {doing}"
        else:
            how, traceback = self._death(), self._worker.stderr_text
            message = (
                f"{doing} ended the process" if importing else "the frontend's process died while tracing"
            )
            message += f" ({how})"
        return {
            "status": status,
            "error_type": how,
            "message": message,
            "traceback": traceback,
            "stage": self._stage,
        }

    def _death(self) -> str:
        """How a process ended that closed its standard output, most likely because it is dying."""
        until = time.monotonic() + _CLOSE_SECONDS
        while self._worker.alive:
            if time.monotonic() > until:
                return "it closed its pipes"
            time.sleep(0.005)
        self._worker.kill()  # reaps it
        signal = self._worker.signal
        return ending(-signal if signal is not None else self._worker.exit_code or 0)


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, its bytecode decoded. Raises ValueError where a part is missing or of another kind."""
    try:
        if answer["status"] == "ok":
            return {
                **answer,
                "bytecode": base64.b64decode(answer["bytecode"]),
                "symbol": str(answer["symbol"]),
            }
        return {**answer, "message": str(answer["message"]), "traceback": str(answer.get("traceback", ""))}
    except (KeyError, TypeError) as error:
        raise ValueError(f"an answer without {error}") from error


def _with_real_path(outcome: TraceOutcome, source: KernelSource) -> TraceOutcome:
    """Errors name the user's file, and those beside it, not their canonical stand-ins."""
    if outcome.status == "ok":
        return outcome
    path = legible(source.path).replace("\n", "\\n")
    folder, _, _ = path.rpartition("/")
    beside, _, _ = source.canonical.rpartition("/")

    def real(text: str) -> str:
        text = text.replace(source.canonical, path)
        if not beside:
            return text
        return re.sub(rf'(?<![\w/.-]){re.escape(beside)}/(?=[^"\n]*\.py)', lambda _: f"{folder}/", text)

    message, traceback = map(real, (outcome.message, outcome.traceback))
    return replace(outcome, message=message, traceback=traceback)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"
