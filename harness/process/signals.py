"""SIGINT, SIGTERM and SIGHUP: the first ends a command in good order, another one at once.

The first is raised as KeyboardInterrupt, whichever it was, so that there is one way to stop. After it the
signals have their default effect: the kernel ends the process, and the warden its children. A signal
that was ignored from the start (nohup) stays ignored.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_ECHO_SECONDS = 0.3
"""`timeout` and closing terminals send a signal twice; what comes this soon is the same wish."""

_SHOW_CURSOR = b"\x1b[?25h"


class Stopping:
    """Listens while it is entered, in the main thread. `heard` is the signal that came first."""

    def __init__(self) -> None:
        self.heard: signal.Signals | None = None
        self._heard_at = 0.0
        self._holds = 0
        self._owed = False
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN:
                    signal.signal(number, self._hear)
                    self._before[number] = before
        _listening.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _listening.remove(self)
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """A first signal within waits for the end of the block."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
        if self._owed and not self._holds:
            self._owed = False
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.heard is None:
            self.heard, self._heard_at = signal.Signals(number), now
            if self._holds:
                self._owed = True
            else:
                raise KeyboardInterrupt
        elif now - self._heard_at > _ECHO_SECONDS:
            if os.isatty(2):  # a live display hid it
                os.write(2, _SHOW_CURSOR)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def finishing() -> contextlib.AbstractContextManager[None]:
    """For what takes a moment and must be whole, such as writing reports: a first signal waits for it."""
    return _listening[-1].held() if _listening else contextlib.nullcontext()


_listening: list[Stopping] = []
