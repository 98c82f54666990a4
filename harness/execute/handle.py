"""One GPU process as the pool sees it: messages with a deadline, host-side evidence, and its end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.execute.coredump import DumpPaths
from harness.execute.protocol import MAX_LINE_BYTES, Garbled, decode, encode
from harness.process import Cancelled, Supervisor

WORKER = (sys.executable, "-m", "harness.execute.worker")

_ROOT = Path(__file__).resolve().parents[2]
_STACK_SECONDS = 0.5
_CHUNK = 1 << 16


class Gone(Exception):
    """The process closed its end: it died, or is dying."""


class Silent(Exception):
    """Nothing came before the deadline."""


class Handle:
    """Owns a worker process and the pipes to it. Used by one thread at a time.

    `epoch` is the number of accidents on its GPU that a canary has been run after, in this process.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        gpu_uuid: str,
        argv: Sequence[str],
        extra_env: Mapping[str, str],
        dump: DumpPaths | None,
    ) -> None:
        self._supervisor = supervisor
        self.dump = dump
        self.epoch = 0
        self.warm = False
        self.started = time.monotonic()
        self._buffer = bytearray()
        request_read, self._request = os.pipe()
        self._response, response_write = os.pipe()
        self._stack = os.memfd_create("host-stack", os.MFD_CLOEXEC)
        self._stack_seen = 0
        os.set_blocking(self._response, False)
        os.set_blocking(self._request, False)
        fds = (request_read, response_write, self._stack)
        try:
            self._child = supervisor.spawn(
                [*argv, *(str(fd) for fd in fds)], env=_environment(gpu_uuid, extra_env), pass_fds=fds
            )
        except BaseException:
            self._close_fds()
            raise
        finally:
            os.close(request_read)
            os.close(response_write)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child.alive

    @property
    def stderr(self) -> str:
        return self._child.stderr_text

    def send(self, message: dict[str, Any], seconds: float) -> None:
        """Hand over a request; `Silent` where the worker does not take it, `Gone` where it died."""
        data, until = encode(message), time.monotonic() + seconds
        while data:
            self._await(self._request, select.POLLOUT, until)
            try:
                data = data[os.write(self._request, data) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise Gone from None

    def receive(self, until: float) -> dict[str, Any]:
        """The next message. Raises `Silent` at `until` (monotonic), `Gone`, `Garbled`, `Cancelled`."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MAX_LINE_BYTES:
                raise Garbled(f"the worker wrote a line of more than {MAX_LINE_BYTES} bytes")
            self._await(self._response, select.POLLIN, until)
            try:
                data = os.read(self._response, _CHUNK)
            except BlockingIOError:
                continue
            if not data:
                raise Gone
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return decode(line)

    def _await(self, fd: int, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(fd, event)
        if poll.poll(max(0.0, until - time.monotonic()) * 1000):
            return
        if self._supervisor.cancelled:
            raise Cancelled("the run was cancelled")
        raise Silent

    def host_stack(self) -> str:
        """What every thread of the worker is doing, as faulthandler writes it; "" if it will not say."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGUSR1)
        until, size = time.monotonic() + _STACK_SECONDS, -1
        while time.monotonic() < until:
            time.sleep(0.02)
            now = os.fstat(self._stack).st_size
            if now > self._stack_seen and now == size:
                break
            size = now
        text = os.pread(self._stack, 1 << 16, self._stack_seen).decode("utf-8", "replace")
        self._stack_seen += len(text)
        return text

    def wait_channel(self) -> str:
        """Where in the kernel each thread of the worker sleeps, and its state, as far as /proc tells."""
        found = []
        with contextlib.suppress(OSError):
            for task in sorted(Path(f"/proc/{self.pid}/task").iterdir()):
                with contextlib.suppress(OSError, IndexError):
                    state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                    where = (task / "wchan").read_text().strip() or "?"
                    found.append(f"{task.name} {state} {where}")
        return "\n".join(found[:32])

    def kill(self) -> bool:
        """SIGKILL to the group and a bounded wait; False if it will not die."""
        dead = self._child.kill()
        self._close_fds()
        return dead

    def close(self) -> bool:
        """Let it leave by itself, briefly, then make it; False if it will not die."""
        if self._request >= 0:
            os.close(self._request)
            self._request = -1
        dead = self._child.close(2.0)
        self._close_fds()
        return dead

    def ended(self, seconds: float) -> tuple[int | None, int | None]:
        """Exit code and signal of a worker that closed its pipe; what remains of its group is killed."""
        until = time.monotonic() + seconds
        while self._child.alive and time.monotonic() < until:
            time.sleep(0.01)
        self.kill()
        return self._child.exit_code, self._child.signal

    def _close_fds(self) -> None:
        for name in ("_request", "_response", "_stack"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)


def _environment(gpu_uuid: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Ours, this GPU alone, and modules loaded whole, so that the launch clock pays for no loading."""
    path = os.pathsep.join(p for p in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("CUDA_COREDUMP")},
        "PYTHONPATH": path,
        "CUDA_VISIBLE_DEVICES": gpu_uuid,
        "CUDA_MODULE_LOADING": "EAGER",
        # Several workers share the cores; numpy must not start a thread per core in each.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **extra,
    }
