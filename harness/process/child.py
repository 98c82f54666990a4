"""Long-lived workers that answer line by line."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable

from harness.process.errors import Cancelled
from harness.process.group import DEATH_PATIENCE_SECONDS, Group
from harness.process.output import BoundedOutput
from harness.process.table import Seen, look_at, look_at_group

_CHUNK = 1 << 16
_DRAIN_SECONDS = 0.5


class Child:
    """A long-lived worker: lines in, lines out, standard error kept bounded.

    One thread at a time may talk to it. After any failure, `kill` it and start another.
    """

    def __init__(
        self, group: Group, max_output: int, cancel_fd: int, forget: Callable[[Group], None]
    ) -> None:
        self._cancel_fd = cancel_fd
        self._forget = forget
        self._group = group
        self._errors = BoundedOutput(max_output)
        self._buffer = bytearray()
        popen = group.popen
        assert popen.stdin is not None and popen.stdout is not None and popen.stderr is not None
        self._stdin, self._stdout, self._stderr = popen.stdin, popen.stdout, popen.stderr
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._drain = threading.Thread(target=self._drain_stderr, name=f"stderr-{group.pid}", daemon=True)
        self._drain.start()

    @property
    def pid(self) -> int:
        return self._group.pid

    @property
    def alive(self) -> bool:
        return not self._group.wait(0)

    @property
    def exit_code(self) -> int | None:
        """Of a worker that ended by itself, known after `kill` or `close`."""
        return self._group.exit_code

    @property
    def signal(self) -> int | None:
        return self._group.signal

    @property
    def stderr_text(self) -> str:
        return self._errors.text

    @property
    def cpu_seconds(self) -> float:
        """Of the worker and the children that it reaped, up to now."""
        if self._group.rusage is not None:
            return self._group.rusage.ru_utime + self._group.rusage.ru_stime
        seen = look_at(self._group.pid)
        return seen.cpu_seconds + seen.reaped_cpu_seconds if seen else 0.0

    def look(self) -> tuple[Seen, ...]:
        """The live processes of the group, and what they use."""
        return look_at_group(self._group.pid)

    def send(self, data: bytes, timeout: float) -> None:
        """Write all of `data`; TimeoutError where the worker does not read, EOFError where it died."""
        until = time.monotonic() + timeout
        while data:
            self._await(self._stdin.fileno(), select.POLLOUT, until)
            try:
                data = data[os.write(self._stdin.fileno(), data) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise EOFError(f"process {self.pid} closed its standard input") from error

    def readline(self, timeout: float) -> bytes:
        """The next line, without its end; TimeoutError after `timeout`, EOFError once it died."""
        until = time.monotonic() + timeout
        while (end := self._buffer.find(b"\n")) < 0:
            self._await(self._stdout.fileno(), select.POLLIN, until)
            try:
                data = os.read(self._stdout.fileno(), _CHUNK)
            except BlockingIOError:
                continue
            if not data:
                raise EOFError(f"process {self.pid} closed its standard output")
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def kill(self, patience: float = DEATH_PATIENCE_SECONDS) -> bool:
        """SIGKILL to the group and a bounded wait; False if it will not die. Harmless when repeated."""
        return self._finish(patience, kill=True)

    def close(self, patience: float) -> bool:
        """Close standard input, which ends a worker that watches it; kill the group if it stays."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        return self._finish(DEATH_PATIENCE_SECONDS, kill=not self._group.wait(patience))

    def _finish(self, patience: float, *, kill: bool) -> bool:
        dead = self._group.end(patience, kill=kill)
        if dead:
            self._forget(self._group)
        self._drain.join(_DRAIN_SECONDS)
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()
        return dead

    def _await(self, fd: int, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(fd, event)
        poll.register(self._cancel_fd, select.POLLIN)
        ready = {number for number, _ in poll.poll(max(0.0, until - time.monotonic()) * 1000)}
        if self._cancel_fd in ready:
            raise Cancelled("the run was cancelled")
        if fd not in ready:
            raise TimeoutError(f"process {self.pid} did not answer in time")

    def _drain_stderr(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._stderr:
            while data := os.read(self._stderr.fileno(), _CHUNK):
                self._errors.feed(data)
