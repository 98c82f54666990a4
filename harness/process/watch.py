"""One process from start to end: output, deadline, who held the CPU, what it used."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model import ProcessUsage
from harness.process.errors import Cancelled
from harness.process.group import Group
from harness.process.output import BoundedOutput
from harness.process.table import Sampler

SAMPLE_SECONDS = 0.5
_DRAIN_SECONDS = 0.5
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Finished:
    """How a process ended and what its group used.

    Exactly one of `exit_code` and `signal` is set, unless `unkillable`: then neither. `timed_out` means
    that the deadline struck and the group was killed (`signal` is then 9). `leftovers` names processes
    of the group that outlived the leader and were killed. `cpu_seconds` covers the whole
    tree. `peak_rss_bytes` is of the largest process or, when sampled, of the group; a run too
    short to be sampled cannot show less than the harness's own peak, which Linux hands on at fork.
    `usage`, `rss_over_time` and `cpu_over_time` come from samples: empty for a short run.
    `holder` names, after a timeout, the process that was burning CPU.
    """

    argv: tuple[str, ...]
    exit_code: int | None
    signal: int | None
    timed_out: bool
    unkillable: bool
    stdout: str
    stderr: str
    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    usage: tuple[ProcessUsage, ...] = ()
    holder: str | None = None
    leftovers: tuple[str, ...] = ()
    rss_over_time: tuple[tuple[float, int], ...] = ()
    cpu_over_time: tuple[tuple[float, float], ...] = ()

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out


class Watch:
    """One `Supervisor.run` from start to end."""

    def __init__(
        self,
        group: Group,
        argv: Sequence[str | Path],
        deadline: float,
        stdin: bytes,
        max_output: int,
        sample: bool,
        cancel_fd: int,
    ) -> None:
        self._cancel_fd = cancel_fd
        self._group = group
        self._argv = tuple(str(word) for word in argv)
        self._ends = group.started + deadline
        self._input = memoryview(stdin)
        self._series = sample
        interval = SAMPLE_SECONDS if sample else deadline
        self._sampler = Sampler(group.pid, interval, group.started)
        # The last interval before the deadline tells who holds the CPU, sampled or not.
        self._late_sample: float | None = self._ends - min(SAMPLE_SECONDS, deadline / 4)
        self._next_sample = group.started + SAMPLE_SECONDS if sample else self._late_sample
        popen = group.popen
        assert popen.stdout is not None and popen.stderr is not None
        self._outputs = {
            popen.stdout.fileno(): BoundedOutput(max_output),
            popen.stderr.fileno(): BoundedOutput(max_output),
        }
        self._stdout, self._stderr = self._outputs.values()
        self._poll = select.poll()
        for fd in (group.pidfd, cancel_fd, *self._outputs):
            self._poll.register(fd, select.POLLIN)
        for fd in self._outputs:
            os.set_blocking(fd, False)
        if popen.stdin is not None:
            os.set_blocking(popen.stdin.fileno(), False)
            self._poll.register(popen.stdin.fileno(), select.POLLOUT)

    def finish(self) -> Finished:
        timed_out = unkillable = False
        ended = False
        try:
            timed_out = not self._until_end()
            ended = not timed_out
        finally:
            wall = time.monotonic() - self._group.started
            unkillable = not self._group.end(kill=not ended)
            self._drain()
            self._close()
        return self._finished(timed_out, unkillable, wall)

    def _until_end(self) -> bool:
        """True when the leader ended, False when the deadline struck."""
        while True:
            now = time.monotonic()
            if now >= self._ends:
                self._sampler.take()
                return self._group.wait(0)
            if now >= self._next_sample:
                self._next_sample = self._after_sample(self._sampler.take())
            wake = min(self._ends, self._next_sample)
            events = self._poll.poll(max(0.0, wake - time.monotonic()) * 1000 + 0.5)
            ready = dict(events)
            if self._cancel_fd in ready:
                raise Cancelled("the run was cancelled")
            for fd in ready:
                if fd in self._outputs:
                    self._read(fd)
                elif fd != self._group.pidfd:
                    self._feed_input(fd)
            if self._group.pidfd in ready:
                return True

    def _after_sample(self, due: float) -> float:
        """When to sample next: never so late that the holder's last interval is missed."""
        late, now = self._late_sample, time.monotonic()
        if late is None or now >= late:
            self._late_sample = None
            return max(due, self._ends)
        return late if due >= late - SAMPLE_SECONDS / 2 else due

    def _read(self, fd: int) -> bool:
        """Read one chunk; False when there is nothing more for now."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(fd)
            return False
        self._outputs[fd].feed(data)
        return True

    def _feed_input(self, fd: int) -> None:
        try:
            self._input = self._input[os.write(fd, self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = memoryview(b"")
        if not self._input:
            self._poll.unregister(fd)
            stdin = self._group.popen.stdin
            assert stdin is not None
            stdin.close()

    def _drain(self) -> None:
        """What is in the pipes now; a stranger that still holds them open is not waited for."""
        until = time.monotonic() + _DRAIN_SECONDS
        for fd in self._outputs:
            with contextlib.suppress(KeyError):  # at end of file it was unregistered already
                while time.monotonic() < until and self._read(fd):
                    pass

    def _close(self) -> None:
        popen = self._group.popen
        for stream in (popen.stdin, popen.stdout, popen.stderr):
            if stream is not None:
                stream.close()

    def _finished(self, timed_out: bool, unkillable: bool, wall: float) -> Finished:
        group, sampler = self._group, self._sampler
        rusage = group.rusage
        if timed_out or rusage is None:
            others = sampler.unreaped_cpu_seconds(group.pid if rusage else 0)
        else:
            others = sum(s.cpu_seconds + s.reaped_cpu_seconds for s in group.leftovers if s.pid != group.pid)
        cpu = others + (rusage.ru_utime + rusage.ru_stime if rusage else 0.0)
        peak = max(sampler.peak_rss_bytes, rusage.ru_maxrss * 1024 if rusage else 0)
        return Finished(
            argv=self._argv,
            exit_code=group.exit_code,
            signal=group.signal,
            timed_out=timed_out,
            unkillable=unkillable,
            stdout=self._stdout.text,
            stderr=self._stderr.text,
            wall_seconds=wall,
            cpu_seconds=cpu,
            peak_rss_bytes=peak,
            usage=sampler.usage,
            holder=sampler.holder if timed_out else None,
            leftovers=tuple(seen.name for seen in group.leftovers if not timed_out),
            rss_over_time=tuple(sampler.rss_over_time) if self._series else (),
            cpu_over_time=tuple(sampler.cpu_over_time) if self._series else (),
        )
