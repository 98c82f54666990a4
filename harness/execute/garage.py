"""The processes of one GPU: kept warm, started ahead of need, and asked to prove that the GPU still works.

The most recently used is taken first. Spares are always starting, so that a replacement is ready when it is
needed.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from harness.execute import coredump
from harness.execute.coredump import DumpPaths
from harness.execute.handle import Gone, Handle, Silent
from harness.execute.options import PoolOptions
from harness.execute.protocol import Garbled, Gpu
from harness.process import ProcessError, Supervisor

CANARY_SECONDS = 10.0
START_TRIES = 3


class NoWorker(Exception):
    """No process could be made ready; the text says why."""


class Garage:
    """The processes of one GPU: warm and idle, or starting."""

    def __init__(self, supervisor: Supervisor, options: PoolOptions, gpu: Gpu) -> None:
        self._supervisor = supervisor
        self._options = options
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
        options = self._options
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
        return Handle(self._supervisor, self._gpu.uuid, self._options.worker_argv, extra, dump)

    def _warm(self, handle: Handle) -> Handle:
        """Wait until the process says that it is ready; its start-up has a clock of its own."""
        if handle.warm:
            return handle
        until = handle.started + self._options.start_up_seconds
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
            why = f"it was not ready after {self._options.start_up_seconds:g} s"
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


def canary_problem(handle: Handle) -> str:
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


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
