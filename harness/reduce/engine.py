"""The search: from something interesting to something smaller that still is. Knows nothing of kernels.

Meaning, whatever the number of jobs: passes are gone through in turn; a pass proposes variants of
the best so far; the first interesting one becomes the best and the pass goes on from the same place.
When a whole round of passes changes nothing, the search is over, and every variant any pass
proposes of the result is known to be dull. Further jobs test variants ahead of their turn, but
verdicts are taken in order, so that they change the time and nothing else.

Every step makes `cost` strictly smaller, so the search ends.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Cost = tuple[Any, ...]

_LOOKAHEAD = 2
"""Variants kept in flight per job: most are answered at once, and a slow one should not idle the rest."""

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Pass(Generic[T]):
    """A way to make something smaller: variants of its argument, best first, always in the same order."""

    name: str
    variants: Callable[[T], Iterator[T]]


@dataclass(frozen=True)
class Problem(Generic[T]):
    """What to search. `interesting` is pure and safe to call from many threads; `key` names equal values."""

    interesting: Callable[[T], bool]
    cost: Callable[[T], Cost]
    key: Callable[[T], str]


class End(StrEnum):
    """Why a search stopped."""

    COMPLETE = "complete"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Step(Generic[T]):
    """Where a search stands: reported after every verdict."""

    best: T
    tried: int
    kept: int
    pass_name: str
    improved: bool


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """The best found, all that were best on the way (the start first), and how many were tested."""

    best: T
    history: tuple[T, ...]
    tried: int
    end: End


class _BudgetSpent(Exception):
    """The deadline struck while a verdict was awaited."""


def minimise(
    start: T,
    passes: Sequence[Pass[T]],
    problem: Problem[T],
    *,
    jobs: int = 1,
    deadline: float | None = None,
    report: Callable[[Step[T]], None] = lambda step: None,
) -> Outcome[T]:
    """Search from `start`, which must be interesting, until nothing helps, `deadline` or Ctrl-C.

    `deadline` is a `time.monotonic()` value. What is still being tested at the end is left to itself.
    Whatever `interesting` raises is raised here, when its turn comes.
    """
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="reduce")
    search = _Search(start, problem, pool, jobs * _LOOKAHEAD if jobs > 1 else 1, deadline, report)
    end = End.COMPLETE
    try:
        search.run(passes)
    except _BudgetSpent:
        end = End.BUDGET
    except KeyboardInterrupt:
        end = End.INTERRUPTED
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return Outcome(search.history[-1], tuple(search.history), search.tried, end)


class _Search(Generic[T]):
    def __init__(
        self,
        start: T,
        problem: Problem[T],
        pool: ThreadPoolExecutor,
        window: int,
        deadline: float | None,
        report: Callable[[Step[T]], None],
    ) -> None:
        self.history = [start]
        self.tried = 0
        self._problem = problem
        self._pool = pool
        self._window = window
        self._deadline = deadline
        self._report = report
        self._dull: set[str] = set()

    def run(self, passes: Sequence[Pass[T]]) -> None:
        while True:
            before = len(self.history)
            for each in passes:
                self._exhaust(each)
            if len(self.history) == before:
                return

    def _exhaust(self, each: Pass[T]) -> None:
        position: int | None = 0
        while position is not None:
            position = self._advance(each, position)

    def _advance(self, each: Pass[T], position: int) -> int | None:
        """Take the first interesting variant from `position` on; its position, or None if there is none."""
        waiting: deque[tuple[int, T, Future[bool]]] = deque()
        proposals = self._proposals(each, position)
        try:
            while True:
                for at, variant in islice(proposals, self._window - len(waiting)):
                    waiting.append((at, variant, self._pool.submit(self._problem.interesting, variant)))
                if not waiting:
                    return None
                at, variant, verdict = waiting.popleft()
                improved = self._await(verdict)
                self.tried += 1
                if improved:
                    self.history.append(variant)
                else:
                    self._dull.add(self._problem.key(variant))
                kept = len(self.history) - 1
                self._report(Step(self.history[-1], self.tried, kept, each.name, improved))
                if improved:
                    return at
        finally:
            for _, _, verdict in waiting:
                verdict.cancel()

    def _proposals(self, each: Pass[T], position: int) -> Iterator[tuple[int, T]]:
        """Smaller variants of the best that have not been found dull, each once, from `position` on."""
        best = self.history[-1]
        limit = self._problem.cost(best)
        seen: set[str] = set()
        for at, variant in enumerate(each.variants(best)):
            if at < position:
                continue
            key = self._problem.key(variant)
            if key not in seen and key not in self._dull and self._problem.cost(variant) < limit:
                seen.add(key)
                yield at, variant

    def _await(self, verdict: Future[bool]) -> bool:
        """Wait in short steps, so that Ctrl-C and the deadline are heard."""
        while True:
            if self._deadline is not None and time.monotonic() >= self._deadline:
                raise _BudgetSpent
            done, _ = wait([verdict], timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            if done:
                return verdict.result()
