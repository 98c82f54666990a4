"""What many runs say of one cell: when its verdict turned and with what, how flaky it is. Pure.

Answers in which nothing was learnt (skipped, interrupted) are left out. A verdict that turns while nothing
that was recorded did is a flake: whatever made the difference is not in the toolchain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.model import Record, Verdict
from harness.store import Sighting

_NOTHING_LEARNT = (Verdict.SKIPPED, Verdict.NOT_RUN, Verdict.TAINTED, Verdict.INFRA_ERROR)


@dataclass(frozen=True)
class Turn(Record):
    """A cell's answer changed. `causes` are what else changed, empty for a flake; times in seconds since
    the epoch."""

    cell: str
    recorded: float
    run: str
    before: Verdict
    after: Verdict
    signature: str | None
    causes: tuple[str, ...]


@dataclass(frozen=True)
class Flakiness(Record):
    """How often a cell's answer changed while nothing else did: `flakes` of `repeats`.

    A cell that was judged `flaky` within a run is a repeat that changed.
    """

    cell: str
    flakes: int
    repeats: int

    @property
    def rate(self) -> float:
        return self.flakes / self.repeats


@dataclass(frozen=True)
class Compile(Record):
    """The longest compile of a cell, in CPU seconds where they are known."""

    cell: str
    seconds: float


def learnt(sightings: Iterable[Sighting]) -> dict[str, list[Sighting]]:
    """Telling sightings by cell, oldest first."""
    cells: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        if sighting.verdict not in _NOTHING_LEARNT:
            cells[sighting.cell].append(sighting)
    return cells


def turns(sightings: Sequence[Sighting]) -> tuple[Turn, ...]:
    """Every change of an answer, newest first."""
    found = [
        Turn(cell, now.recorded, now.run, old.verdict, now.verdict, now.signature, causes(old, now))
        for cell, seen in learnt(sightings).items()
        for old, now in pairwise(seen)
        if _answer(old) != _answer(now)
    ]
    return tuple(sorted(found, key=lambda turn: -turn.recorded))


def causes(old: Sighting, now: Sighting) -> tuple[str, ...]:
    """What was recorded to differ between two sightings of one cell, the deepest cause first."""
    names = dict.fromkeys([*old.made_with, *now.made_with])
    found = [
        f"{name} {old.made_with.get(name, '?')} → {now.made_with.get(name, '?')}"
        for name in names
        if old.made_with.get(name) != now.made_with.get(name)
    ]
    for text, before, after in (
        ("the kernel's source changed", old.kernel, now.kernel),
        ("other bytecode", old.bytecode, now.bytecode),
        ("other machine code", old.cubin, now.cubin),
    ):
        if before and after and before != after:
            found.append(text)
    return tuple(found)


def flakiness(sightings: Sequence[Sighting]) -> tuple[Flakiness, ...]:
    """Cells that flaked, the flakiest first."""
    found = []
    for cell, seen in learnt(sightings).items():
        repeats = [(old, now) for old, now in pairwise(seen) if not causes(old, now)]
        flaky = sum(sighting.verdict is Verdict.FLAKY for sighting in seen)
        flips = sum(
            _answer(old) != _answer(now) and Verdict.FLAKY not in (old.verdict, now.verdict)
            for old, now in repeats
        )
        if flaky + flips:
            found.append(Flakiness(cell, flaky + flips, len(repeats) + flaky))
    return tuple(sorted(found, key=lambda flake: (-flake.rate, -flake.repeats, flake.cell)))


def slowest_compiles(sightings: Iterable[Sighting], count: int) -> tuple[Compile, ...]:
    """The cells whose compiles took longest, a compile that several cells share once."""
    longest: dict[str, Compile] = {}
    for sighting in sightings:
        seconds = sighting.compile_seconds
        shared = sighting.cubin or sighting.cell
        if seconds and (shared not in longest or seconds > longest[shared].seconds):
            longest[shared] = Compile(sighting.cell, seconds)
    return tuple(sorted(longest.values(), key=lambda one: (-one.seconds, one.cell))[:count])


def _answer(sighting: Sighting) -> tuple[Verdict, str | None]:
    return sighting.verdict, sighting.signature
