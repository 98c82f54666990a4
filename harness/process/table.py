"""What the processes of a group use, read from /proc.

CPU seconds come in clock ticks (usually 10 ms). A scan of /proc costs a millisecond or two, so
`Sampler` spaces its samples to stay below one percent of a core, whatever the machine runs.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from harness.model import ProcessUsage
from harness.process.warden import group_members, stat_fields

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_COMM_LIMIT = 15
_SHARE_OF_A_CORE = 0.01


@dataclass(frozen=True)
class Seen:
    """One process at one moment. `reaped_cpu_seconds` is of children that it has waited for."""

    pid: int
    started_ticks: int
    name: str
    cpu_seconds: float
    reaped_cpu_seconds: float
    rss_bytes: int
    peak_rss_bytes: int


def look_at(pid: int) -> Seen | None:
    """A process as /proc shows it, or None where it is gone."""
    found = stat_fields(pid)
    if found is None:
        return None
    name, fields = found
    if len(name) == _COMM_LIMIT:
        name = _executable_name(pid, name)
    rss = int(fields[21]) * _PAGE_BYTES
    return Seen(
        pid=pid,
        started_ticks=int(fields[19]),
        name=name,
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND,
        reaped_cpu_seconds=(int(fields[13]) + int(fields[14])) / _TICKS_PER_SECOND,
        rss_bytes=rss,
        peak_rss_bytes=max(rss, _peak_rss(pid)),
    )


def look_at_group(pgid: int) -> tuple[Seen, ...]:
    return tuple(seen for pid in group_members(pgid) if (seen := look_at(pid)))


def _executable_name(pid: int, comm: str) -> str:
    """comm is cut at 15 characters; the executable's name is not, where it continues comm."""
    try:
        name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return comm
    return name if name.startswith(comm) else comm


def _peak_rss(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


@dataclass
class Sampler:
    """Samples of one process group over its life."""

    pgid: int
    interval: float
    """Wanted seconds between samples; stretched where /proc is slow to read."""
    started: float = field(default_factory=time.monotonic)
    rss_over_time: list[tuple[float, int]] = field(default_factory=list)
    cpu_over_time: list[tuple[float, float]] = field(default_factory=list)
    last: tuple[Seen, ...] = ()
    _before: dict[int, float] = field(default_factory=dict)
    _most: dict[int, Seen] = field(default_factory=dict)

    def take(self) -> float:
        """Take a sample; returns the monotonic time at which the next one is due."""
        begun = time.monotonic()
        self._before = {seen.pid: seen.cpu_seconds for seen in self.last}
        self.last = look_at_group(self.pgid)
        for seen in self.last:
            self._most[seen.pid] = seen
        elapsed = begun - self.started
        self.rss_over_time.append((elapsed, sum(seen.rss_bytes for seen in self.last)))
        cpu = sum(seen.cpu_seconds + seen.reaped_cpu_seconds for seen in self.last)
        self.cpu_over_time.append((elapsed, cpu))
        ended = time.monotonic()
        return ended + max(self.interval, (ended - begun) / _SHARE_OF_A_CORE)

    @property
    def holder(self) -> str | None:
        """Name of the process whose CPU time grew most over the last interval.

        Where none grew, the youngest process: in a compiler driver the others wait for it.
        """
        if not self.last:
            return None
        return max(
            self.last,
            key=lambda seen: (
                seen.cpu_seconds - self._before.get(seen.pid, 0.0),
                seen.started_ticks,
                seen.pid,
            ),
        ).name

    def unreaped_cpu_seconds(self, leader: int) -> float:
        """CPU that the leader's own rusage cannot tell: of processes alive at the last sample."""
        return sum(s.cpu_seconds + s.reaped_cpu_seconds for s in self.last if s.pid != leader)

    @property
    def peak_rss_bytes(self) -> int:
        return max((size for _, size in self.rss_over_time), default=0)

    @property
    def usage(self) -> tuple[ProcessUsage, ...]:
        """One entry per process name, in order of first appearance."""
        cpu: dict[str, float] = {}
        rss: dict[str, int] = {}
        for seen in self._most.values():
            cpu[seen.name] = cpu.get(seen.name, 0.0) + seen.cpu_seconds
            rss[seen.name] = max(rss.get(seen.name, 0), seen.peak_rss_bytes)
        return tuple(ProcessUsage(name, cpu[name], rss[name]) for name in cpu)
