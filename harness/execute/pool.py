"""Many cases on few GPUs: who runs where, what a deadline costs, and what happens after an accident.

A thread takes a case when a GPU has a *place* free: `workers` places per GPU. A case that takes
long gives its place up at once and waits out its deadline beside the others, up to `waiting` of
them, so that a hang costs no throughput. Processes are kept warm and taken most recently used first;
`spares` more are always starting, so that a replacement is ready when it is needed.

After a hang or a fault every process on that GPU must pass the canary before its next case; if two
processes cannot, or a process survives SIGKILL, the GPU is set aside and what was left for it is not run.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.execute import coredump
from harness.execute.coredump import DumpPaths
from harness.execute.handle import WORKER, Gone, Handle, Silent
from harness.execute.protocol import Evidence, Garbled, Gpu, Launch, Observation, Outcome, Stage
from harness.execute.watch import Watched, watch
from harness.process import Cancelled, ProcessError, Supervisor

CANARY_SECONDS = 10.0
CANARY_TRIES = 2
START_TRIES = 3


@dataclass(frozen=True)
class PoolOptions:
    """How to run. `workers` and `waiting` are per GPU; seconds where it says so.

    `isolation`: "worker" keeps processes warm from case to case, "process" gives every case its own.
    """

    workers: int = 6
    waiting: int = 24
    spares: int = 2
    isolation: str = "worker"
    start_up_seconds: float = 60.0
    overdue_seconds: float = 0.5
    confirm: bool = True
    worker_argv: tuple[str, ...] = WORKER


class NoWorker(Exception):
    """No process could be made ready; the text says why."""


class _Quarantined(Exception):
    """The GPU was set aside."""


class _Garage:
    """The processes of one GPU: warm and idle, or starting."""

    def __init__(self, pool: Pool, gpu: Gpu) -> None:
        self._pool = pool
        self._gpu = gpu
        self._lock = threading.Lock()
        self._idle: list[Handle] = []
        self._starting: deque[Handle] = deque()
        self._failures = 0
        self._closed = False

    def take(self, *, fresh: bool, dump: DumpPaths | None = None, on_fault: bool = False) -> Handle:
        """A warm process; with `fresh` one that has run nothing, with `dump` one set up to dump core."""
        if dump is not None:
            return self._warm(self._start(dump, on_fault=on_fault))
        while True:
            with self._lock:
                handle: Handle | None = None
                if self._idle and not fresh:
                    handle = self._idle.pop()
                elif self._starting:
                    handle = self._starting.popleft()
            try:
                return self._warm(handle or self._start())
            except NoWorker:
                self._failures += 1
                if self._failures >= START_TRIES:
                    raise
            finally:
                self.top_up()

    def put_back(self, handle: Handle) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(handle)
                return
        handle.close()

    def top_up(self) -> None:
        """Have as many spares starting as the options ask for."""
        if self._failures or self._closed:
            return
        options = self._pool.options
        wanted = options.spares if options.isolation == "worker" else max(options.spares, options.workers)
        with self._lock:
            missing = wanted - len(self._starting) - len(self._idle)
        for _ in range(missing):
            try:
                handle = self._start()
            except (ProcessError, OSError):
                return
            with self._lock:
                self._starting.append(handle)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            handles = [*self._idle, *self._starting]
            self._idle.clear()
            self._starting.clear()
        for handle in handles:
            handle.kill()

    def _start(self, dump: DumpPaths | None = None, *, on_fault: bool = False) -> Handle:
        extra = coredump.environment(dump, on_fault=on_fault) if dump else {}
        return Handle(self._pool.supervisor, self._gpu.uuid, self._pool.options.worker_argv, extra, dump)

    def _warm(self, handle: Handle) -> Handle:
        """Wait until the process says that it is ready; its start-up has a clock of its own."""
        if handle.warm:
            return handle
        until = handle.started + self._pool.options.start_up_seconds
        try:
            while True:
                message = handle.receive(max(until, time.monotonic() + 1.0))
                if message["say"] == "ready":
                    handle.warm = True
                    self._failures = 0
                    return handle
                if message["say"] != "stage":
                    raise NoWorker(str(message.get("message", message["say"])))
        except Silent:
            why = f"it was not ready after {self._pool.options.start_up_seconds:g} s"
        except Gone:
            handle.ended(1.0)
            why = f"it died while starting: {_last_line(handle.stderr)}"
        except (Garbled, NoWorker) as error:
            why = str(error)
        except BaseException:
            handle.kill()
            raise
        handle.kill()
        raise NoWorker(f"the GPU process did not start: {why}")


class _Lane:
    """One GPU: its places, its processes, its accidents."""

    def __init__(self, pool: Pool, gpu: Gpu) -> None:
        self.gpu = gpu
        self.garage = _Garage(pool, gpu)
        self.places = threading.Semaphore(pool.options.workers)
        self.epoch = 0
        self.quarantined: str | None = None


class _Place:
    """A place on a GPU, given up at most once."""

    def __init__(self, lane: _Lane) -> None:
        self._lane = lane
        self._held = True
        lane.places.acquire()

    def give_up(self) -> None:
        if self._held:
            self._held = False
            self._lane.places.release()


class Pool:
    """Runs launches and hands every observation to a callback, one for each launch, none lost."""

    def __init__(
        self, supervisor: Supervisor, gpus: tuple[Gpu, ...], scratch: Path, options: PoolOptions | None = None
    ) -> None:
        self.supervisor = supervisor
        self.options = options or PoolOptions()
        if self.options.isolation not in ("worker", "process"):
            raise ValueError(f'isolation is "worker" or "process", not {self.options.isolation!r}')
        if not gpus:
            raise ValueError("a pool needs a GPU")
        self._scratch = scratch
        self._lanes = [_Lane(self, gpu) for gpu in gpus]
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._known: dict[tuple[str, Stage], Observation] = {}
        self._turns: dict[tuple[str, Stage], threading.Lock] = {}
        self._retry: deque[Launch] = deque()

    def run(self, launches: Iterable[Launch], on_result: Callable[[Launch, Observation], None]) -> None:
        """Run everything. `on_result` is called from one thread at a time, in order of completion.

        What cannot be run any more, after Ctrl-C or when every GPU is set aside, is reported `not_run`.
        """
        feed = _Feed(launches, self._retry)
        report = _Report(on_result)
        running = _Running()
        try:
            for lane in self._lanes:
                lane.garage.top_up()
                for number in range(self.options.workers + self.options.waiting):
                    name = f"gpu{lane.gpu.index}-{number}"
                    running.start(name, lambda lane=lane: self._serve(lane, feed, report))  # type: ignore[misc]
            running.wait()
        except BaseException:
            feed.stop("the run was interrupted")
            self.supervisor.cancel()
            running.wait()
            raise
        finally:
            for lane in self._lanes:
                lane.garage.close()
            reason = feed.reason or "; ".join(
                f"GPU {lane.gpu.index} was set aside: {lane.quarantined}"
                for lane in self._lanes
                if lane.quarantined
            )
            for launch in feed.rest():
                report(launch, _not_run(launch, reason))
        report.check()
        if feed.error is not None:
            raise feed.error

    def _serve(self, lane: _Lane, feed: _Feed, report: _Report) -> None:
        """One thread: a case at a time, for as long as there are cases and the GPU is trusted."""
        while lane.quarantined is None and feed.wait():
            place = _Place(lane)
            try:
                launch = feed.take()
                if launch is None:
                    continue
                try:
                    observation = self._case(lane, place, launch)
                except _Quarantined as error:
                    if any(other.quarantined is None for other in self._lanes):
                        feed.give_back(launch)
                        return
                    observation = _plain(launch, Outcome.TAINTED, str(error), lane.gpu)
                except Cancelled:
                    observation = _plain(launch, Outcome.NOT_RUN, "the run was interrupted", lane.gpu)
                except NoWorker as error:
                    lane.quarantined = lane.quarantined or str(error)
                    observation = _plain(launch, Outcome.NO_WORKER, str(error), lane.gpu)
                except Exception as error:
                    if self.supervisor.cancelled:
                        observation = _plain(launch, Outcome.NOT_RUN, "the run was interrupted", lane.gpu)
                    else:
                        text = f"{type(error).__name__}: {error}"
                        observation = _plain(launch, Outcome.HOST_ERROR, text, lane.gpu)
                feed.done()
                report(launch, observation)
            finally:
                place.give_up()

    # --- one case

    def _case(self, lane: _Lane, place: _Place, launch: Launch) -> Observation:
        """Run, and where the outcome is bad run once more in a fresh process."""
        fresh = self.options.isolation == "process"
        first = self._once(lane, place, launch, fresh=fresh)
        if not first.looks_bad or first.unkillable or not self.options.confirm:
            return first
        if self.supervisor.cancelled:
            return first
        if first.outcome is not Outcome.HANG:
            return self._confirmed(lane, place, launch, first)
        with self._lock:
            turn = self._turns.setdefault((launch.cubin_sha256, first.stage), threading.Lock())
        with turn:  # of many that hang alike at once, one is confirmed and the others wait for it
            return self._known_hang(launch, first) or self._confirmed(lane, place, launch, first)

    def _confirmed(self, lane: _Lane, place: _Place, launch: Launch, first: Observation) -> Observation:
        """The same case once more, in a fresh process; `first` becomes an earlier attempt of it."""
        if lane.quarantined is not None or self.supervisor.cancelled:
            return first
        place.give_up()
        second_place = _Place(lane)
        try:
            second = self._once(lane, second_place, launch, fresh=True, after=first.outcome)
        except (_Quarantined, NoWorker) as error:
            note = f"not confirmed: {error}"
            before = first.evidence or Evidence()
            return replace(first, evidence=replace(before, notes=(*before.notes, note)))
        finally:
            second_place.give_up()
        if second.outcome is Outcome.HANG:
            with self._lock:
                self._known.setdefault((launch.cubin_sha256, second.stage), second)
        return replace(second, attempts=(*second.attempts, first.to_json()))

    def _known_hang(self, launch: Launch, seen: Observation) -> Observation | None:
        """A hang of a cubin already seen to hang twice is not confirmed again: that costs a deadline.

        The warps of the confirmed case are lent to it, with a note.
        """
        with self._lock:
            known = self._known.get((launch.cubin_sha256, seen.stage))
        if known is None:
            return None
        evidence = seen.evidence or Evidence()
        if known.evidence is not None and known.evidence.warps:
            evidence = replace(
                evidence,
                warps=known.evidence.warps,
                summary=known.evidence.summary,
                pattern=known.evidence.pattern,
                notes=(*evidence.notes, f"warps as seen in case {known.case} of the same cubin"),
            )
        return replace(seen, evidence=evidence, confirmed_by=known.case)

    def _once(
        self, lane: _Lane, place: _Place, launch: Launch, *, fresh: bool, after: Outcome | None = None
    ) -> Observation:
        """One process, one case. A confirmation of a hang or fault is set up to dump core."""
        handle = self._ready(lane, fresh=fresh, after=after)
        try:
            watched: Watched = watch(
                self.supervisor,
                handle,
                launch,
                lane.gpu,
                overdue_seconds=self.options.overdue_seconds,
                on_overdue=place.give_up,
            )
        except BaseException:
            handle.kill()
            raise
        observation = watched.observation
        if observation.outcome in (Outcome.HANG, Outcome.FAULT, Outcome.CRASH):
            with self._lock:
                lane.epoch += 1
        if observation.unkillable:
            lane.quarantined = f"process {handle.pid} survived SIGKILL in case {launch.case}"
        if watched.reusable:
            if fresh:
                place.give_up()
                handle.close()
            else:
                lane.garage.put_back(handle)
        return observation

    def _ready(self, lane: _Lane, *, fresh: bool, after: Outcome | None) -> Handle:
        """A process that may run a case: warm, and past the canary where there was an accident."""
        wants_dump = after in (Outcome.HANG, Outcome.FAULT) and coredump.debugger() is not None
        problem = ""
        for _ in range(CANARY_TRIES):
            if lane.quarantined is not None:
                raise _Quarantined(lane.quarantined)
            number = next(self._numbers)
            dump = DumpPaths(self._scratch / f"{number}.pipe", self._scratch / f"{number}.core")
            handle = lane.garage.take(
                fresh=fresh, dump=dump if wants_dump else None, on_fault=after is Outcome.FAULT
            )
            epoch = lane.epoch
            if handle.epoch == epoch:
                return handle
            problem = _canary(handle)
            if not problem:
                handle.epoch = epoch
                return handle
            if not handle.kill():
                problem = f"process {handle.pid} survived SIGKILL"
                break
            fresh = True
        lane.quarantined = f"the known-good kernel failed after an accident: {problem}"
        raise _Quarantined(lane.quarantined)


def _canary(handle: Handle) -> str:
    """Run the known-good kernel; "" or what went wrong."""
    try:
        handle.send({"do": "canary"}, CANARY_SECONDS)
        message = handle.receive(time.monotonic() + CANARY_SECONDS)
    except Silent:
        return f"it did not end within {CANARY_SECONDS:g} s"
    except Gone:
        return f"its process died: {_last_line(handle.stderr)}"
    except Garbled as error:
        return str(error)
    if message["say"] != "canary":
        return f"its process answered {message['say']!r}"
    return str(message.get("problem") or "")


class _Feed:
    """The launches, read lazily by whichever thread has a place; a launch can be given back."""

    def __init__(self, launches: Iterable[Launch], retry: deque[Launch]) -> None:
        self._launches: Iterator[Launch] = iter(launches)
        self._retry = retry
        self._changed = threading.Condition()
        self._under_way = 0
        self._dry = False
        self.reason = ""
        self.error: BaseException | None = None

    def wait(self) -> bool:
        """Wait until there may be something to take; False when there never will be again.

        A case under way may be given back, so the last of them has to end first. No place is held meanwhile.
        """
        with self._changed:
            while self._dry and not self._retry and self._under_way and not self.reason:
                self._changed.wait()
            return not self.reason and not (self._dry and not self._retry)

    def take(self) -> Launch | None:
        """The next launch, if there is one now."""
        with self._changed:
            if self.reason:
                return None
            launch = self._retry.popleft() if self._retry else None
            if launch is None and not self._dry:
                try:
                    launch = next(self._launches, None)
                except Exception as error:
                    self.error = error
                self._dry = launch is None
            if launch is not None:
                self._under_way += 1
            self._changed.notify_all()
            return launch

    def done(self) -> None:
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def give_back(self, launch: Launch) -> None:
        with self._changed:
            self._retry.append(launch)
            self._under_way -= 1
            self._changed.notify_all()

    def stop(self, reason: str) -> None:
        with self._changed:
            self.reason = reason
            self._changed.notify_all()

    def rest(self) -> Iterator[Launch]:
        """What nobody took."""
        with self._changed:
            yield from self._retry
            self._retry.clear()
            yield from self._launches


class _Running:
    """Threads, and a way to wait for all of them that Ctrl-C may interrupt.

    An interrupted `Thread.join` takes the thread for ended in CPython 3.11 and 3.12.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def start(self, name: str, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            finally:
                with self._changed:
                    self._count -= 1
                    self._changed.notify_all()

        with self._changed:
            self._count += 1
        try:
            threading.Thread(target=run, name=name, daemon=True).start()
        except BaseException:
            with self._changed:
                self._count -= 1
            raise

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._count)


class _Report:
    """Calls back one at a time. An exception of the callback ends nothing half-way: it is raised last."""

    def __init__(self, on_result: Callable[[Launch, Observation], None]) -> None:
        self._on_result = on_result
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    def __call__(self, launch: Launch, observation: Observation) -> None:
        with self._lock:
            try:
                self._on_result(launch, observation)
            except Exception as error:
                self._error = self._error or error

    def check(self) -> None:
        if self._error is not None:
            raise self._error


def _plain(launch: Launch, outcome: Outcome, message: str, gpu: Gpu | None) -> Observation:
    return Observation(case=launch.case, outcome=outcome, stage=Stage.START_UP, message=message, gpu=gpu)


def _not_run(launch: Launch, reason: str) -> Observation:
    return _plain(launch, Outcome.NOT_RUN, reason or "was not run", None)


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
