"""The worker's end of the protocol: private pipes, announcements, and an eye on the parent.

Standard output is pointed at standard error first of all, so that whatever prints (a kernel's printf,
a native library) lands where the parent keeps a bounded tail of it. A thread owns the request pipe:
when the parent is gone, however it went, the pipe ends and the process leaves at once, even if its
main thread is stuck in the driver.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import sys
import threading
import time
from typing import Any

from harness.execute.protocol import MAX_LINE_BYTES, Stage, decode, encode

PARENT_GONE = 3
"""Exit code of a worker whose parent went away."""


class Channel:
    """Requests in, announcements and results out."""

    def __init__(self, request_fd: int, response_fd: int, stack_fd: int) -> None:
        sys.stdout.flush()
        os.dup2(2, 1)
        os.set_inheritable(request_fd, False)
        os.set_inheritable(response_fd, False)
        self._response_fd = response_fd
        self._requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._case: str | None = None
        self._stage: Stage | None = None
        self._since = 0.0
        self._seconds: dict[str, float] = {}
        faulthandler.register(signal.SIGUSR1, file=stack_fd, all_threads=True, chain=False)
        reader = threading.Thread(target=self._read, args=(request_fd,), name="requests", daemon=True)
        reader.start()

    def next_request(self) -> dict[str, Any]:
        return self._requests.get()

    def say(self, kind: str, **content: Any) -> None:
        data = encode({"say": kind, **content})
        if len(data) > MAX_LINE_BYTES:
            raise ValueError(f"a {kind} message of {len(data)} bytes is over the limit of {MAX_LINE_BYTES}")
        while data:
            data = data[os.write(self._response_fd, data) :]

    def enter(self, stage: Stage, case: str | None = None) -> None:
        """Announce a stage before it starts; the clock of the one before stops."""
        if case is not None:
            self._case, self._seconds, self._stage = case, {}, None
        self._stop_clock()
        self._stage, self._since = stage, time.monotonic()
        self.say("stage", case=self._case, stage=stage.value)

    @property
    def stage(self) -> Stage:
        return self._stage or Stage.START_UP

    def seconds(self) -> dict[str, float]:
        """Per stage, up to now; the running stage included."""
        self._stop_clock()
        return {stage: round(value, 6) for stage, value in self._seconds.items()}

    def _stop_clock(self) -> None:
        if self._stage is not None:
            now = time.monotonic()
            spent = self._seconds.get(self._stage.value, 0.0)
            self._seconds[self._stage.value] = spent + now - self._since
            self._since = now

    def _read(self, fd: int) -> None:
        buffer = bytearray()
        try:
            while data := os.read(fd, 1 << 16):
                buffer += data
                while (end := buffer.find(b"\n")) >= 0:
                    self._requests.put(decode(bytes(buffer[:end])))
                    del buffer[: end + 1]
        finally:
            os._exit(PARENT_GONE)
