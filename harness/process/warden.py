"""The warden: a tiny process that cleans up should the harness itself be killed.

`Supervisor` starts it by path (`python -I -S warden.py TOKEN`), in its own session, and holds the
only write end of its standard input. Lines on it register what is alive:

    +PGID STARTTIME     a process group and the start time of its leader (clock ticks since boot)
    -PGID               that group is gone
    +dir HEXPATH        a scratch directory (the path's bytes in hex)
    -dir HEXPATH        it was removed

When the harness ends, even by SIGKILL, the kernel closes the pipe. At end of file the warden kills
every registered group, then every process whose environment carries TOKEN (one started in the very
moment the harness died, or one that made its own session), removes the directories, and exits.

Why not `prctl(PR_SET_PDEATHSIG)`: it fires when the *thread* that forked ends, not the process, so
a worker pool would kill healthy compiles; and it holds for the direct child alone, so it would end
tileiras but leave its ptxas child burning a core.

The warden imports nothing beyond os, signal, sys and time, so that it is up in about 20 ms.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TOKEN_VARIABLE = "TILE_HARNESS_RUN"
"""Environment variable that every child of one supervisor carries."""

_PATIENCE_SECONDS = 3.0


def stat_fields(pid: int) -> tuple[str, list[str]] | None:
    """(comm, fields from `state` on) of /proc/PID/stat, or None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    opening, closing = text.find("("), text.rfind(")")
    return text[opening + 1 : closing], text[closing + 2 :].split()


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which a process started: with its pid, its identity."""
    found = stat_fields(pid)
    return int(found[1][19]) if found else None


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def group_members(pgid: int) -> list[int]:
    """Live (not zombie) processes of a group, whether or not its leader still lives."""
    members = []
    for pid in all_pids():
        found = stat_fields(pid)
        if found and found[1][0] not in "ZX" and int(found[1][2]) == pgid:
            members.append(pid)
    return members


def kill_group(pgid: int) -> None:
    try:  # noqa: SIM105 - contextlib would cost the warden's start-up
        os.killpg(pgid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def bearers(token: str) -> list[int]:
    """Live processes, other than this one, whose environment carries the token."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    found = []
    for pid in all_pids():
        if pid == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            continue
    return found


def kill_bearers(token: str) -> list[int]:
    """SIGKILL every process that carries the token; returns their pids."""
    found = bearers(token)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def _read_registrations() -> tuple[dict[int, int], set[str]]:
    groups: dict[int, int] = {}
    directories: set[str] = set()
    for line in sys.stdin.buffer:
        words = line.decode("ascii", "replace").split()
        if words[0] == "+dir":
            directories.add(words[1])
        elif words[0] == "-dir":
            directories.discard(words[1])
        elif words[0].startswith("+"):
            groups[int(words[0][1:])] = int(words[1])
        else:
            groups.pop(int(words[0][1:]), None)
    return groups, directories


def _kill_all(groups: dict[int, int], token: str) -> None:
    for pgid, started in groups.items():
        # A leader with another start time means the number was reused, so the group had ended.
        if start_time(pgid) in (None, started):
            kill_group(pgid)
    until = time.monotonic() + _PATIENCE_SECONDS
    quiet = 0
    while quiet < 2 and time.monotonic() < until:
        # Twice quiet: a child caught between fork and exec shows its own environment only later.
        quiet = 0 if kill_bearers(token) else quiet + 1
        time.sleep(0.02)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups, directories = _read_registrations()
    _kill_all(groups, sys.argv[1])
    if directories:
        import shutil  # costs 10 ms that start-up need not pay

        for name in directories:
            shutil.rmtree(bytes.fromhex(name), ignore_errors=True)


if __name__ == "__main__":
    main()
