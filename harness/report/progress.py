"""Progress of a run: a live bar on a terminal, a plain line every few seconds in a log.

A run goes through stages (install, trace, compile, execute), each with a count of its own; cells get their
verdicts in several of them. The live display shows the stage with the time it is likely to
take yet, and what is running; new findings are printed above it as they appear.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Self

from rich import progress as rich_progress
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from harness.model import CellResult, Verdict
from harness.report.words import LOOKS, is_ascii, plain

LOG_SECONDS = 5.0
SHOWN_RUNNING = 4
"""Running cells that are named; more are counted."""


class Progress:
    """Counts judged cells, shows what runs, tells new findings. Use as a context manager; thread-safe.

    `quiet` leaves only the live bar, which is gone when the run ends, and in a log nothing.
    """

    def __init__(
        self,
        total: int,
        console: Console,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._quiet = quiet
        self._total = total
        self._console = console
        self._clock = clock
        self._counts: Counter[Verdict] = Counter()
        self._last = ""
        self._stage = ""
        self._told: set[str] = set()
        self._running: dict[int, str] = {}
        self._serial = 0
        self._lock = Lock()
        self._started = self._logged = clock()
        self._live: Live | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._bars = rich_progress.Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}", style="dim", markup=False),
                TimeRemainingColumn(compact=True),
                console=console,
            )
            self._cells = self._bars.add_task("cells", total=total, left="")
            self._step: rich_progress.TaskID | None = None
            self._live = Live(
                console=console, get_renderable=self._render, transient=True, refresh_per_second=4
            )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._counts and not self._quiet:
            self._log()

    def note(self, text: str) -> None:
        """A line about the run itself, such as a toolchain being installed."""
        if not self._quiet:
            with self._lock:
                self._print(text, "dim")

    def stage(self, name: str, total: int) -> None:
        """The run goes on to its next stage, of `total` steps."""
        with self._lock:
            self._stage = name
            if self._live is not None:
                if self._step is not None:
                    self._bars.remove_task(self._step)
                self._step = self._bars.add_task(name, total=total, left="about")

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Name what is being worked on, for as long as it is; one step of the stage."""
        with self._lock:
            self._serial += 1
            number = self._serial
            self._running[number] = what
        try:
            yield
        finally:
            with self._lock:
                del self._running[number]
            self.step()

    def step(self) -> None:
        """One step of the stage is done."""
        with self._lock:
            if self._live is not None and self._step is not None:
                self._bars.advance(self._step)

    def advance(self, result: CellResult) -> None:
        """A cell has its verdict."""
        cell = result.cell
        with self._lock:
            self._counts[result.verdict] += 1
            self._last = f"{cell.case.kernel} {cell.toolchain.name} {cell.arch}"
            self._tell_new(result)
            if self._live is not None:
                self._bars.update(self._cells, completed=self._counts.total(), description=self._tally())
            elif not self._quiet and self._clock() - self._logged >= LOG_SECONDS:
                self._log()

    def _tell_new(self, result: CellResult) -> None:
        """A finding nobody has seen yet in this run, on one line."""
        signature = result.judgement.signature or str(result.verdict)
        if self._quiet or not result.verdict.is_finding or signature in self._told:
            return
        self._told.add(signature)
        look = LOOKS[result.verdict]
        symbol = look.ascii if is_ascii(self._console) else look.symbol
        self._print(f"{symbol} {result.verdict} at {self._last}: {result.judgement.summary}", look.style)

    def _print(self, text: str, style: str = "") -> None:
        line = Text(plain(text, is_ascii(self._console)), style=style)
        if self._console.is_terminal:
            line.truncate(self._console.width, overflow="ellipsis")
        self._console.print(line, soft_wrap=True)

    def _render(self) -> Group:
        running = list(self._running.values())
        lines = [f"  {name}" for name in running[:SHOWN_RUNNING]]
        if len(running) > SHOWN_RUNNING:
            lines.append(f"  and {len(running) - SHOWN_RUNNING} more")
        shown = [
            Text(plain(line, is_ascii(self._console)), style="dim", overflow="ellipsis", no_wrap=True)
            for line in lines
        ]
        return Group(self._bars, *shown)

    def _log(self) -> None:
        self._logged = self._clock()
        elapsed = self._logged - self._started
        done = self._counts.total()
        line = f"{done}/{self._total} cells after {elapsed:.0f} s: {self._tally()}"
        if done < self._total:
            line += f", {self._stage}" * bool(self._stage) + f", last {self._last}"
        self._print(line)

    def _tally(self) -> str:
        findings = sum(count for verdict, count in self._counts.items() if verdict.is_finding)
        good = sum(count for verdict, count in self._counts.items() if verdict.is_good)
        others = self._counts.total() - findings - good
        ascii_only = is_ascii(self._console)
        finding = LOOKS[Verdict.HANG].ascii if ascii_only else LOOKS[Verdict.HANG].symbol
        fine = LOOKS[Verdict.PASS].ascii if ascii_only else LOOKS[Verdict.PASS].symbol
        return f"{fine} {good}  {finding} {findings}" + (f"  ? {others}" if others else "")
