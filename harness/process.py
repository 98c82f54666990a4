"""The only module that starts, watches and kills processes.

A `Supervisor` puts every process into a session, and so a process group, of its own: the terminal's
Ctrl-C reaches the harness alone, and killing the group also reaches what the process started
(tileiras leaves its ptxas child running when only tileiras is killed). Waiting is done on pidfds
and pipes, never by busy polling. What a process does, its death included, is data in `Finished`;
exceptions are for what the harness itself could not do.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from harness import warden
from harness.model import ProcessUsage
from harness.process_table import Sampler, Seen, look_at, look_at_group

DEATH_PATIENCE_SECONDS = 5.0
"""How long a SIGKILLed group may take to vanish before it counts as unkillable."""

SAMPLE_SECONDS = 0.5
DRAIN_SECONDS = 0.5
_CHUNK = 1 << 16


class ProcessError(Exception):
    """The harness could not do its part; the text says what, and how to mend it."""


class StartError(ProcessError, OSError):
    """The executable could not be started at all."""


class Cancelled(ProcessError):
    """`Supervisor.cancel` was called: the process was killed or never started."""


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


class BoundedOutput:
    """Keeps the head and the tail of a stream, at most `limit` bytes, and counts what it cut."""

    def __init__(self, limit: int) -> None:
        self._room = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def feed(self, data: bytes) -> None:
        take = self._room - len(self._head)
        if take > 0:
            self._head += data[:take]
            data = data[take:]
        self._tail += data
        excess = len(self._tail) - self._room
        if excess > 0:
            del self._tail[:excess]
            self._cut += excess

    @property
    def text(self) -> str:
        head, tail = bytes(self._head), bytes(self._tail)
        if self._cut:
            head += f"\n[... {self._cut} bytes cut ...]\n".encode()
        return (head + tail).decode("utf-8", "replace")


class _Group:
    """A started process, leader of its own group, and all that is needed to end and reap it."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.popen = popen
        self.pid = popen.pid
        self.pidfd = os.pidfd_open(popen.pid)
        self.started = time.monotonic()
        self.start_ticks = warden.start_time(popen.pid) or 0
        self.rusage: resource.struct_rusage | None = None
        self.leftovers: tuple[Seen, ...] = ()
        self._reaping = threading.Lock()

    @property
    def reaped(self) -> bool:
        return self.rusage is not None

    def wait(self, seconds: float) -> bool:
        """True once the leader has ended; it is not reaped, so its pid still names the group."""
        if self.reaped:
            return True
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000)) or self.reaped

    def end(self, patience: float = DEATH_PATIENCE_SECONDS, *, kill: bool = True) -> bool:
        """Reap the leader and leave nothing of the group alive; False if something will not die.

        With `kill` false the leader has already ended by itself; only what it left behind is killed.
        """
        until = time.monotonic() + patience
        if kill and not self.reaped:
            warden.kill_group(self.pid)
        if not self.wait(patience):
            return False
        self._reap()
        return self._end_leftovers(until)

    def _reap(self) -> None:
        with self._reaping:
            if self.rusage is not None:
                return
            _, status, self.rusage = os.wait4(self.pid, 0)
            self.popen.returncode = os.waitstatus_to_exitcode(status)
            os.close(self.pidfd)

    def _end_leftovers(self, until: float) -> bool:
        """One system call where nothing is left, which is nearly always."""
        pause = 0.001
        while True:
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return True
            except PermissionError:
                pass
            seen = look_at_group(self.pid)
            if not seen:
                return True  # zombies that init has yet to reap
            self.leftovers = self.leftovers or seen
            warden.kill_group(self.pid)
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    @property
    def exit_code(self) -> int | None:
        code = self.popen.returncode
        return code if code is not None and code >= 0 else None

    @property
    def signal(self) -> int | None:
        code = self.popen.returncode
        return -code if code is not None and code < 0 else None


class _WardenLink:
    """The pipe to the warden; a warden that died is replaced and told everything again."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._popen: subprocess.Popen[bytes] | None = None
        self._standing: dict[str, str] = {}

    def add(self, key: str, rest: str = "") -> None:
        self._standing[key] = f"+{key}{rest}\n"
        if self._popen is None:
            self._start()
        else:
            self._send(self._standing[key])

    def drop(self, key: str) -> None:
        if self._standing.pop(key, None) is not None:
            self._send(f"-{key}\n")

    def close(self) -> None:
        if self._popen is not None and self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()
            self._popen.wait(2 * DEATH_PATIENCE_SECONDS)
            self._popen = None

    def _start(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(warden.__file__)), self._token],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,
        )
        self._write("".join(self._standing.values()))

    def _send(self, line: str) -> None:
        try:
            self._write(line)
        except BrokenPipeError:
            self.close()
            self._start()

    def _write(self, text: str) -> None:
        assert self._popen is not None and self._popen.stdin is not None
        self._popen.stdin.write(text.encode("ascii"))


class Child:
    """A long-lived worker: lines in, lines out, standard error kept bounded.

    One thread at a time may talk to it. After any failure, `kill` it and start another.
    """

    def __init__(self, supervisor: Supervisor, group: _Group, max_output: int) -> None:
        self._supervisor = supervisor
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
            self._supervisor._forget(self._group)
        self._drain.join(DRAIN_SECONDS)
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()
        return dead

    def _await(self, fd: int, event: int, until: float) -> None:
        poll = select.poll()
        poll.register(fd, event)
        poll.register(self._supervisor._cancel_fd, select.POLLIN)
        ready = {number for number, _ in poll.poll(max(0.0, until - time.monotonic()) * 1000)}
        if self._supervisor._cancel_fd in ready:
            raise Cancelled("the run was cancelled")
        if fd not in ready:
            raise TimeoutError(f"process {self.pid} did not answer in time")

    def _drain_stderr(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._stderr:
            while data := os.read(self._stderr.fileno(), _CHUNK):
                self._errors.feed(data)


class Supervisor:
    """Starts, watches and kills processes; a context manager, safe to use from many threads.

    Leaving the context kills whatever still runs. Should the harness be killed, the warden does.
    """

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)
        self._lock = threading.RLock()
        self._groups: dict[int, _Group] = {}
        self._warden = _WardenLink(self._token)
        self._cancel_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._cancelled = False
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        deadline: float,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        max_output: int = 1 << 20,
        sample: bool = False,
    ) -> Finished:
        """Run to the end or to `deadline` (seconds from now), whichever comes first.

        `env` replaces the environment (None inherits it). `sample` records memory and CPU over
        time, from 0.5 s on. Raises `StartError` and `Cancelled`; nothing else the process can
        do raises.
        """
        group = self._start(argv, cwd, env, (), has_input=bool(stdin))
        return _Watch(self, group, argv, deadline, stdin, max_output, sample).finish()

    def spawn(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        max_output: int = 1 << 18,
    ) -> Child:
        """Start a long-lived worker with pipes for all three streams."""
        return Child(self, self._start(argv, cwd, env, pass_fds, has_input=True), max_output)

    @contextlib.contextmanager
    def scratch(self, prefix: str = "") -> Iterator[Path]:
        """A temporary directory, removed at the end; by the warden if the harness dies."""
        with self._lock:
            path = Path(tempfile.mkdtemp(prefix=f"tile-harness-{prefix}"))
            key = f"dir {os.fsencode(path).hex()}"
            self._warden.add(key)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            with self._lock:
                self._warden.drop(key)

    def cancel(self) -> None:
        """Kill every group; running and later calls raise `Cancelled`."""
        with self._lock:
            self._cancelled = True
            os.eventfd_write(self._cancel_fd, 1)
            for group in self._groups.values():
                if not group.reaped:
                    warden.kill_group(group.pid)

    def close(self) -> None:
        """Kill what still runs, and what escaped into a session of its own. Harmless when repeated."""
        if self._closed:
            return
        self.cancel()
        with self._lock:
            self._closed = True
            started = bool(self._groups) or self._warden._popen is not None
            for group in list(self._groups.values()):
                if group.end():
                    self._forget(group)
            if started:
                warden.kill_bearers(self._token)
            self._warden.close()

    def _start(
        self,
        argv: Sequence[str | Path],
        cwd: str | Path | None,
        env: Mapping[str, str] | None,
        pass_fds: Sequence[int],
        *,
        has_input: bool,
    ) -> _Group:
        words = [str(word) for word in argv]
        environment = {**(os.environ if env is None else env), warden.TOKEN_VARIABLE: self._token}
        with self._lock:
            if self._cancelled:
                raise Cancelled("the run was cancelled")
            try:
                popen = subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=cwd,
                    env=environment,
                    bufsize=0,
                    start_new_session=True,
                    pass_fds=tuple(pass_fds),
                )
            except OSError as error:
                raise StartError(f"cannot start {words[0]}: {error.strerror or error}") from error
            except ValueError as error:
                raise StartError(f"cannot start {words[0]}: {error}") from error
            group = _Group(popen)
            self._groups[group.pid] = group
            self._warden.add(str(group.pid), f" {group.start_ticks}")
        # No core files: a crashing compiler would write gigabytes. Best effort, it may have ended.
        with contextlib.suppress(OSError):
            resource.prlimit(group.pid, resource.RLIMIT_CORE, (0, 0))
        return group

    def _forget(self, group: _Group) -> None:
        with self._lock:
            if self._groups.pop(group.pid, None) is not None:
                self._warden.drop(str(group.pid))


class _Watch:
    """One `Supervisor.run` from start to end."""

    def __init__(
        self,
        supervisor: Supervisor,
        group: _Group,
        argv: Sequence[str | Path],
        deadline: float,
        stdin: bytes,
        max_output: int,
        sample: bool,
    ) -> None:
        self._supervisor = supervisor
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
        for fd in (group.pidfd, supervisor._cancel_fd, *self._outputs):
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
            if not unkillable:
                self._supervisor._forget(self._group)
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
            if self._supervisor._cancel_fd in ready:
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
        until = time.monotonic() + DRAIN_SECONDS
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
