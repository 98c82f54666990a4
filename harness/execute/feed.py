"""What the threads of a pool share: the launches still to take, who is still at work, and whom to tell."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from harness.execute.protocol import Launch, Observation


class Feed:
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


class Running:
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


class Report:
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
