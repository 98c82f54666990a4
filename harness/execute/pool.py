"""Many cases on few GPUs: who runs where, what a deadline costs, and what happens after an accident.

A thread takes a case when a GPU has a *place* free: `workers` places per GPU. A case that takes
long gives its place up at once and waits out its deadline beside the others, up to `waiting` of
them, so that a hang costs no throughput. `garage.py` keeps the processes, `feed.py` deals out the launches.

After a hang or a fault every process on that GPU must pass the canary before its next case; if two
processes cannot, or a process survives SIGKILL, the GPU is set aside and what was left for it is not run.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from harness.execute import coredump
from harness.execute.coredump import DumpPaths
from harness.execute.feed import Feed, Report, Running
from harness.execute.garage import Garage, NoWorker, canary_problem
from harness.execute.handle import Handle
from harness.execute.options import PoolOptions
from harness.execute.protocol import Evidence, Gpu, Launch, Observation, Outcome, Stage
from harness.execute.watch import Watched, watch
from harness.process import Cancelled, Supervisor

CANARY_TRIES = 2


class _Quarantined(Exception):
    """The GPU was set aside."""


class _Lane:
    """One GPU: its places, its processes, its accidents."""

    def __init__(self, pool: Pool, gpu: Gpu) -> None:
        self.gpu = gpu
        self.garage = Garage(pool.supervisor, pool.options, gpu)
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
        feed = Feed(launches, self._retry)
        report = Report(on_result)
        running = Running()
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

    def _serve(self, lane: _Lane, feed: Feed, report: Report) -> None:
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
            problem = canary_problem(handle)
            if not problem:
                handle.epoch = epoch
                return handle
            if not handle.kill():
                problem = f"process {handle.pid} survived SIGKILL"
                break
            fresh = True
        lane.quarantined = f"the known-good kernel failed after an accident: {problem}"
        raise _Quarantined(lane.quarantined)


def _plain(launch: Launch, outcome: Outcome, message: str, gpu: Gpu | None) -> Observation:
    return Observation(case=launch.case, outcome=outcome, stage=Stage.START_UP, message=message, gpu=gpu)


def _not_run(launch: Launch, reason: str) -> Observation:
    return _plain(launch, Outcome.NOT_RUN, reason or "was not run", None)
