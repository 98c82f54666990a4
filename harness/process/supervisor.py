"""Starts processes and answers for all of them."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.process import warden
from harness.process.child import Child
from harness.process.errors import Cancelled, StartError
from harness.process.group import Group
from harness.process.warden_link import WardenLink
from harness.process.watch import Finished, Watch


class Supervisor:
    """Starts, watches and kills processes; a context manager, safe to use from many threads.

    Leaving the context kills whatever still runs. Should the harness be killed, the warden does.
    """

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)
        self._lock = threading.RLock()
        self._groups: dict[int, Group] = {}
        self._warden = WardenLink(self._token)
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
        try:
            return Watch(group, argv, deadline, stdin, max_output, sample, self._cancel_fd).finish()
        finally:
            self._forget(group)

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
        group = self._start(argv, cwd, env, pass_fds, has_input=True)
        return Child(group, max_output, self._cancel_fd, self._forget)

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
            started = bool(self._groups) or self._warden.started
            for group in list(self._groups.values()):
                group.end()
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
    ) -> Group:
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
            group = Group(popen)
            self._groups[group.pid] = group
            self._warden.add(str(group.pid), f" {group.start_ticks}")
        # No core files: a crashing compiler would write gigabytes. Best effort, it may have ended.
        with contextlib.suppress(OSError):
            resource.prlimit(group.pid, resource.RLIMIT_CORE, (0, 0))
        return group

    def _forget(self, group: Group) -> None:
        """Strike a group that has ended off the lists; one that would not die stays on them."""
        with self._lock:
            if group.reaped and self._groups.pop(group.pid, None) is not None:
                self._warden.drop(str(group.pid))
