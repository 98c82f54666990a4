"""Trace specialisations to bytecode in a warm tracer, one process per cuda-tile version.

What a tracer answered is remembered by everything that went in, so that a warm cache starts no
tracer at all. The tracer's errors, crashes and timeouts are statuses of `TraceOutcome`.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from harness.compile import tracer_worker
from harness.compile.cache import Cache
from harness.model import Frontend, KernelSource, Specialization, TraceOutcome, canonical_json
from harness.process import Child, Supervisor

PROTOCOL = 2
"""Raise it when the same request may be answered otherwise: old memos are then out of use."""

START_SECONDS = 60.0
"""Deadline of a tracer's start-up, which no trace pays for."""

_CLOSE_SECONDS = 1.0
_TRACE = "trace"
_HELLO = "frontend"


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
        outcome = self._recall(key)
        if outcome is None:
            with self._lock:
                outcome = self._recall(key) or self._ask(key, spec, arch, bytecode_version, deadline)
        return _with_real_path(outcome, spec.source)

    def bytecode_versions(self) -> tuple[str, ...]:
        """Versions this frontend writes, oldest first.

        Where the frontend cannot even be imported, the oldest there is: the trace then tells why.
        """
        if self.frontend.bytecode_versions:
            return self.frontend.bytecode_versions
        with self._lock:
            if not self._versions:
                known = self._cache.recall(_HELLO, self._hello_key) or {}
                self._versions = tuple(known.get("bytecode_versions", ()))
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
        except (EOFError, TimeoutError) as error:
            self._retire()
            what = "did not start in time" if isinstance(error, TimeoutError) else "cannot be imported"
            raise _StartFailed(
                f"cuda-tile {self.frontend.version} {what} ({_last_line(worker.stderr_text)})",
                worker.stderr_text,
            ) from error
        if not self._versions:
            self._cache.remember(_HELLO, self._hello_key, hello)
        self._versions = tuple(hello["bytecode_versions"])
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
            return TraceOutcome(status="crash", message=failure.args[0], traceback=failure.args[1])
        request = {"spec": spec.to_json(), "arch": arch, "bytecode_version": bytecode_version}
        begun = time.monotonic()
        answer: dict[str, Any]
        try:
            worker.send(json.dumps(request).encode("ascii") + b"\n", deadline)
            answer = json.loads(worker.readline(deadline - (time.monotonic() - begun)))
        except TimeoutError:
            self._retire()
            answer = {"status": "timeout", "message": f"tracing did not end within {deadline:g} s"}
        except EOFError:
            self._retire(_CLOSE_SECONDS)  # it is dying by itself: let it, to learn how
            how = f"signal {worker.signal}" if worker.signal else f"exit code {worker.exit_code}"
            answer = {
                "status": "crash",
                "message": f"the frontend's process died while tracing ({how})",
                "traceback": worker.stderr_text,
            }
        except BaseException:
            self._retire()
            raise
        wall = time.monotonic() - begun
        if answer["status"] == "internal":
            self._retire()
        outcome = self._outcome(answer, bytecode_version, wall)
        if answer["status"] not in ("timeout", "crash") and answer.get("lasting", True):
            self._cache.remember(_TRACE, key, outcome.to_json())
        return outcome

    # --- answers -----------------------------------------------------------------------------

    def _outcome(self, answer: dict[str, Any], bytecode_version: str, wall: float) -> TraceOutcome:
        cpu = answer.get("cpu_seconds", 0.0)
        if answer["status"] != "ok":
            return TraceOutcome(
                status=answer["status"],
                error_type=answer.get("error_type"),
                message=answer["message"],
                traceback=answer.get("traceback", ""),
                wall_seconds=wall,
                cpu_seconds=cpu,
            )
        return TraceOutcome(
            status="ok",
            bytecode_sha256=self._cache.put(base64.b64decode(answer["bytecode"])),
            bytecode_version=bytecode_version,
            symbol=answer["symbol"],
            opt_level=answer.get("opt_level"),
            wall_seconds=wall,
            cpu_seconds=cpu,
        )

    def _recall(self, key: str) -> TraceOutcome | None:
        value = self._cache.recall(_TRACE, key)
        if value is None:
            return None
        try:
            outcome = TraceOutcome.from_json({**value, "cached": True})
        except (KeyError, TypeError, ValueError):
            return None
        if outcome.bytecode_sha256 is not None and self._cache.get(outcome.bytecode_sha256) is None:
            return None
        return outcome


def _with_real_path(outcome: TraceOutcome, source: KernelSource) -> TraceOutcome:
    """Errors name the user's file, not its canonical stand-in."""
    if outcome.status == "ok":
        return outcome
    plain = outcome.to_json()
    for name in ("message", "traceback"):
        plain[name] = plain[name].replace(source.canonical, source.path)
    return TraceOutcome.from_json(plain)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"
