"""A started process and its group: how it is waited for, ended and reaped."""

from __future__ import annotations

import os
import resource
import select
import subprocess
import threading
import time

from harness.process import warden
from harness.process.table import Seen, look_at_group

DEATH_PATIENCE_SECONDS = 5.0
"""How long a SIGKILLed group may take to vanish before it counts as unkillable."""


class Group:
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
