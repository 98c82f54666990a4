"""One case in one process, from request to observation: the clocks, and what is gathered before a kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from harness.execute import coredump, device
from harness.execute.handle import Gone, Handle, Silent
from harness.execute.protocol import (
    DEVICE_STAGES,
    Evidence,
    Garbled,
    Gpu,
    Launch,
    Observation,
    Outcome,
    Stage,
)
from harness.process import Cancelled, Supervisor

SEND_SECONDS = 10.0
EXIT_SECONDS = 5.0
"""How long a worker that closed its pipe may take to be gone."""


@dataclass(frozen=True)
class Watched:
    """An observation, and whether the process may be used again."""

    observation: Observation
    reusable: bool


def watch(
    supervisor: Supervisor,
    handle: Handle,
    launch: Launch,
    gpu: Gpu,
    *,
    overdue_seconds: float,
    on_overdue: Callable[[], None],
) -> Watched:
    """Run a case in a warm worker and see it through to its end.

    Each stage has its own clock, which starts when the worker announces the stage. `on_overdue` is
    called once when a stage has run for `overdue_seconds`: from then on the caller's place may
    be given to another. A worker that is not reusable has been killed and reaped here.
    """
    return _Watch(supervisor, handle, launch, gpu, overdue_seconds, on_overdue).run()


class _Watch:
    def __init__(
        self,
        supervisor: Supervisor,
        handle: Handle,
        launch: Launch,
        gpu: Gpu,
        overdue_seconds: float,
        on_overdue: Callable[[], None],
    ) -> None:
        self._supervisor = supervisor
        self._handle = handle
        self._launch = launch
        self._gpu = gpu
        self._overdue_seconds = overdue_seconds
        self._on_overdue: Callable[[], None] | None = on_overdue
        self._stage = Stage.LOAD
        self._since = time.monotonic()
        self._seconds: dict[str, float] = {}

    def run(self) -> Watched:
        try:
            self._handle.send({"do": "run", "launch": self._launch.to_json()}, SEND_SECONDS)
            self._since = time.monotonic()
            while True:
                message = self._next()
                if message["say"] == "stage":
                    self._enter(message)
                elif message["say"] == "observation":
                    return self._finished(message)
                elif message["say"] == "broken":
                    raise Garbled(str(message.get("message", "the worker broke")))
                else:
                    raise Garbled(f"the worker said {message['say']!r} in the middle of a case")
        except Silent:
            return self._timed_out()
        except Gone:
            return self._gone()
        except Garbled as error:
            return self._garbled(str(error))

    def _next(self) -> dict[str, Any]:
        """The next message before the stage's deadline; tells the caller, once, when it takes long."""
        deadline = self._since + self._launch.timeouts.of(self._stage)
        if self._on_overdue is not None:
            overdue = self._since + self._overdue_seconds
            if overdue < deadline:
                try:
                    return self._handle.receive(overdue)
                except Silent:
                    self._overdue()
        return self._handle.receive(deadline)

    def _overdue(self) -> None:
        if self._on_overdue is not None:
            self._on_overdue()
            self._on_overdue = None

    def _enter(self, message: dict[str, Any]) -> None:
        if message.get("case") != self._launch.case:
            raise Garbled(
                f"the worker announced a stage of case {message.get('case')!r}, not {self._launch.case!r}"
            )
        try:
            stage = Stage(str(message.get("stage")))
        except ValueError:
            raise Garbled(f"the worker announced an unknown stage {message.get('stage')!r}") from None
        self._stop_clock()
        self._stage = stage

    def _stop_clock(self) -> float:
        now = time.monotonic()
        spent = now - self._since
        self._seconds[self._stage.value] = round(self._seconds.get(self._stage.value, 0.0) + spent, 6)
        self._since = now
        return spent

    def _finished(self, message: dict[str, Any]) -> Watched:
        try:
            observation = Observation.from_json(message["observation"])
        except (KeyError, TypeError, ValueError) as error:
            raise Garbled(
                f"the worker's observation cannot be read: {type(error).__name__}: {error}"
            ) from None
        if observation.case != self._launch.case:
            raise Garbled(f"the worker reported on case {observation.case!r}, not {self._launch.case!r}")
        observation = replace(observation, gpu=self._gpu)
        if observation.outcome is Outcome.DONE:
            return Watched(observation, True)
        return self._end(observation, self._fault_evidence(observation))

    def _fault_evidence(self, observation: Observation) -> Callable[[], Evidence] | None:
        """Where the process was set up to dump core when a kernel traps, read that dump."""
        handle = self._handle
        if observation.outcome is not Outcome.FAULT or handle.dump is None:
            return None
        dump = handle.dump
        note = coredump.wait_for_core(dump.core, gone=lambda: not handle.alive, seconds=EXIT_SECONDS)
        return lambda: self._with_warps(Evidence(), note)

    def _timed_out(self) -> Watched:
        """The deadline struck: look, dump, kill, and only then read the dump."""
        self._overdue()
        handle = self._handle
        waited = self._stop_clock()
        on_device = self._stage in DEVICE_STAGES
        evidence = Evidence(waited_seconds=round(waited, 3), host_stack=handle.host_stack())
        evidence = replace(evidence, wait_channel=handle.wait_channel())
        if on_device:
            usage = device.usage(self._gpu.uuid)
            evidence = replace(
                evidence, gpu_utilisation=usage.utilisation, gpu_memory_bytes=usage.memory_bytes
            )
        later: Callable[[], Evidence] | None = None
        if on_device and handle.dump is not None:
            note = coredump.trigger(handle.dump, gone=lambda: not handle.alive)
            later = lambda: self._with_warps(evidence, note)  # noqa: E731
        outcome = Outcome.HANG if on_device else Outcome.HOST_TIMEOUT
        message = "" if on_device else f"stage {self._stage.value} took more than {waited:.1f} s on the host"
        observation = self._observation(outcome, message=message, evidence=evidence)
        return self._end(observation, later)

    def _with_warps(self, evidence: Evidence, note: str | None) -> Evidence:
        """Read the core dump; whatever fails becomes a note."""
        dump = self._handle.dump
        notes = (*evidence.notes, note) if note else evidence.notes
        cuda_gdb = coredump.debugger()
        if dump is None or note is not None:
            return replace(evidence, notes=notes)
        size = dump.core.stat().st_size if dump.core.exists() else None
        evidence = replace(evidence, core_bytes=size)
        if cuda_gdb is None:
            return replace(evidence, notes=(*notes, "no per-warp evidence: cuda-gdb is not installed"))
        reading = coredump.read(self._supervisor, dump.core, cuda_gdb)
        warps = coredump.explain(reading.warps, (), reading.listing)
        return replace(
            evidence,
            warps=warps,
            summary=coredump.summarise(warps),
            pattern=coredump.pattern(warps),
            raw=reading.raw,
            notes=(*notes, *reading.notes),
        )

    def _gone(self) -> Watched:
        if self._supervisor.cancelled:  # it did not die, it was killed
            raise Cancelled("the run was cancelled")
        self._overdue()
        self._stop_clock()
        exit_code, signal = self._handle.ended(EXIT_SECONDS)
        observation = self._observation(Outcome.CRASH, exit_code=exit_code, signal=signal)
        return self._end(observation, None)

    def _garbled(self, why: str) -> Watched:
        self._overdue()
        self._stop_clock()
        return self._end(self._observation(Outcome.GARBLED, message=why), None)

    def _observation(self, outcome: Outcome, **seen: Any) -> Observation:
        return Observation(
            case=self._launch.case,
            outcome=outcome,
            stage=self._stage,
            seconds=dict(self._seconds),
            gpu=self._gpu,
            **seen,
        )

    def _end(self, observation: Observation, later: Callable[[], Evidence] | None) -> Watched:
        """Kill the process and add what could only be had before or after."""
        handle = self._handle
        dead = handle.kill()
        observation = replace(observation, stderr=handle.stderr[-4000:], unkillable=not dead)
        try:
            if later is not None:
                try:
                    observation = replace(observation, evidence=later())
                except (OSError, ValueError) as error:
                    note = f"no per-warp evidence: {type(error).__name__}: {error}"
                    before = observation.evidence or Evidence()
                    observation = replace(observation, evidence=replace(before, notes=(*before.notes, note)))
        finally:
            if handle.dump is not None:
                handle.dump.core.unlink(missing_ok=True)
                handle.dump.pipe.unlink(missing_ok=True)
        return Watched(observation, False)
