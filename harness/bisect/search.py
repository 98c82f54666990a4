"""Bisection with three answers over an ordered list, apart from whatever is searched. Pure.

One position, `start`, is known to be bad. On either side of it an edge is sought: the nearest good
position, and the bad one next to it. The answers so far are the whole state, so a search that was
stopped goes on from its answers, and the order in which they came does not matter.

Strategy, per side: the far end first. A good end brackets an edge, and each further probe is the
median of the untested positions inside the bracket. A bad end closes the side: all that was tested
there is bad. An unknown end, as an old compiler that lacks the architecture gives, leaves the
bracket open; the same medians then push the bad frontier outwards until a good position closes it or
nothing untested is left. A side of n positions costs at most ⌈log2 n⌉ + 1 probes, and one more for
each that turns out unknown: every untested position next to an edge has to be tried, or a gap
could not be called one.

Positions between two bad ones are taken for bad without a test. What the answers themselves show
against that is told (`flips`); `exhaustive` leaves no position untested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from harness.model import Record
from harness.oracle import Answer

Answers = Mapping[int, Answer]


@dataclass(frozen=True)
class Step:
    """Where to look next. At most `left` probes remain, this one included, if none is unknown."""

    position: int
    left: int


class Ending(StrEnum):
    """How far one side of the start is known."""

    FOUND = "found"
    """A good position and a bad one, with nothing but unknown ones between them."""
    ALL_BAD = "all_bad"
    """Bad up to the last position."""
    UNKNOWN_BEYOND = "unknown_beyond"
    """No good position: whatever is beyond the last bad one could not be told."""
    NOTHING_THERE = "nothing_there"
    """The start is the last position on this side."""
    UNFINISHED = "unfinished"
    """The search was stopped."""


@dataclass(frozen=True)
class Edge(Record):
    """One side. `bad` is the bad position next to the edge, `good` the good one beyond it.

    `gap` are unknown positions between the two or, without a good one, beyond the bad one. `untested`
    are positions taken for bad because they lie between bad ones.
    """

    ending: Ending
    bad: int
    good: int | None = None
    gap: tuple[int, ...] = ()
    untested: tuple[int, ...] = ()


@dataclass(frozen=True)
class Conclusion(Record):
    """Both sides. `flips` are neighbours among the decided positions whose answers differ."""

    older: Edge
    newer: Edge
    flips: tuple[tuple[int, int], ...]

    @property
    def is_monotone(self) -> bool:
        """Whether the answers form one bad stretch around the start."""
        return len(self.flips) == sum(edge.good is not None for edge in (self.older, self.newer))


def next_step(count: int, start: int, answers: Answers, exhaustive: bool = False) -> Step | None:
    """The next position to probe out of `count`, or None when the search is at its end."""
    untested = [position for position in range(count) if position not in answers]
    if start in untested:
        return Step(start, 1 + sum(_most(side, answers) for side in _sides(count, start)))
    if exhaustive:
        return Step(untested[0], len(untested)) if untested else None
    sides = list(_sides(count, start))
    left = sum(_most(side, answers) for side in sides)
    ends = [side[-1] for side in sides if side and side[-1] not in answers]
    if ends:
        return Step(ends[0], left)
    for side in sides:
        candidates = _candidates(side, answers)
        if candidates:
            return Step(candidates[len(candidates) // 2], left)
    return None


def conclude(count: int, start: int, answers: Answers) -> Conclusion:
    """What the answers prove. ValueError unless the start is bad."""
    if answers.get(start) is not Answer.BAD:
        raise ValueError(f"position {start} is not known to be bad")
    older, newer = (_edge(side, start, answers) for side in _sides(count, start))
    decided = [
        position for position in range(count) if answers.get(position, Answer.UNKNOWN) != Answer.UNKNOWN
    ]
    flips = [pair for pair in pairwise(decided) if answers[pair[0]] != answers[pair[1]]]
    return Conclusion(older, newer, tuple(flips))


# --- one side ---------------------------------------------------------------------------------
# A side is its positions from the start's neighbour outwards; -1 stands for the start itself.


def _sides(count: int, start: int) -> Iterator[Sequence[int]]:
    yield range(start - 1, -1, -1)
    yield range(start + 1, count)


def _bracket(side: Sequence[int], answers: Answers) -> tuple[int, int | None]:
    """Places in `side` of the outermost bad position before the nearest good one, and of that one."""
    good = next((at for at, position in enumerate(side) if answers.get(position) is Answer.GOOD), None)
    inner = range(len(side) if good is None else good)
    return max((at for at in inner if answers.get(side[at]) is Answer.BAD), default=-1), good


def _candidates(side: Sequence[int], answers: Answers) -> Sequence[int]:
    """Untested positions that could move the edge."""
    bad, good = _bracket(side, answers)
    return [position for position in side[bad + 1 : good] if position not in answers]


def _most(side: Sequence[int], answers: Answers) -> int:
    """Probes this side can still need if none is unknown; halving n needs the bits of n."""
    if side and side[-1] not in answers:
        return 1 + (len(_candidates(side, answers)) - 1).bit_length()
    return len(_candidates(side, answers)).bit_length()


def _edge(side: Sequence[int], start: int, answers: Answers) -> Edge:
    at, good = _bracket(side, answers)
    bad = start if at < 0 else side[at]
    gap = tuple(position for position in side[at + 1 : good] if position in answers)
    untested = tuple(position for position in side[: max(at, 0)] if position not in answers)
    if not side:
        ending = Ending.NOTHING_THERE
    elif _candidates(side, answers):
        ending = Ending.UNFINISHED
    elif good is not None:
        ending = Ending.FOUND
    else:
        ending = Ending.UNKNOWN_BEYOND if gap else Ending.ALL_BAD
    return Edge(ending, bad, None if good is None else side[good], gap, untested)
