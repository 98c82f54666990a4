"""Progress of a run: a live bar on a terminal, a plain line every few seconds in a log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Self

from rich import progress as rich_progress
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from harness.model import CellResult, Verdict
from harness.report.words import LOOKS, plain

LOG_SECONDS = 5.0


class Progress:
    """Counts judged cells and names the last one. Use as a context manager; thread-safe.

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
        self._lock = Lock()
        self._started = self._logged = clock()
        self._live: rich_progress.Progress | None = None
        if console.is_terminal:
            self._live = rich_progress.Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[last]}", style="dim", markup=False),
                console=console,
                transient=True,
            )
            self._task = self._live.add_task("cells", total=total, last="")

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
                self._console.print(Text(plain(text, not self._is_utf()), style="dim"))

    def advance(self, result: CellResult) -> None:
        """A cell has its verdict."""
        cell = result.cell
        with self._lock:
            self._counts[result.verdict] += 1
            self._last = f"{cell.case.kernel} {cell.toolchain.name} {cell.arch}"
            self._show()

    def _show(self) -> None:
        if self._live is not None:
            self._live.update(
                self._task,
                completed=self._counts.total(),
                description=self._tally(),
                last=self._last,
            )
        elif not self._quiet and self._clock() - self._logged >= LOG_SECONDS:
            self._log()

    def _log(self) -> None:
        self._logged = self._clock()
        elapsed = self._logged - self._started
        line = f"{self._counts.total()}/{self._total} cells after {elapsed:.0f} s: {self._tally()}"
        if self._counts.total() < self._total:
            line += f", last {self._last}"
        self._console.print(Text(plain(line, not self._is_utf())))

    def _tally(self) -> str:
        findings = sum(count for verdict, count in self._counts.items() if verdict.is_finding)
        good = sum(count for verdict, count in self._counts.items() if verdict.is_good)
        others = self._counts.total() - findings - good
        finding = LOOKS[Verdict.HANG].symbol if self._is_utf() else LOOKS[Verdict.HANG].ascii
        fine = LOOKS[Verdict.PASS].symbol if self._is_utf() else LOOKS[Verdict.PASS].ascii
        return f"{fine} {good}  {finding} {findings}" + (f"  ? {others}" if others else "")

    def _is_utf(self) -> bool:
        return self._console.encoding.lower().startswith("utf")
