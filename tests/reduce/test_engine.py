"""The search, apart from any compiler: over sets of numbers, strings of them and faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.reduce.engine import End, Outcome, Pass, Problem, Step, minimise

Items = tuple[int, ...]


def runs(length: int) -> Pass[Items]:
    def variants(items: Items) -> Iterator[Items]:
        for end in range(len(items), length - 1, -1):
            yield items[: end - length] + items[end:]

    return Pass(f"drop {length}", variants)


def pairs() -> Pass[Items]:
    def variants(items: Items) -> Iterator[Items]:
        for late in range(len(items)):
            for early in range(late):
                yield tuple(item for at, item in enumerate(items) if at not in (late, early))

    return Pass("drop pairs", variants)


def smaller_items() -> Pass[Items]:
    def variants(items: Items) -> Iterator[Items]:
        for at, item in enumerate(items):
            for less in range(item):
                yield (*items[:at], less, *items[at + 1 :])

    return Pass("smaller items", variants)


PASSES = (runs(4), runs(2), runs(1), smaller_items())


def search(
    start: Items,
    interesting: Callable[[Items], bool],
    passes: tuple[Pass[Items], ...] = PASSES,
    jobs: int = 1,
    deadline: float | None = None,
    report: Callable[[Step[Items]], None] = lambda step: None,
) -> Outcome[Items]:
    problem = Problem(interesting, lambda items: (len(items), sum(items)), repr)
    return minimise(start, passes, problem, jobs=jobs, deadline=deadline, report=report)


starts = st.lists(st.integers(0, 5), max_size=10).map(tuple)


@st.composite
def predicates(draw: st.DrawFn, start: Items) -> Callable[[Items], bool]:
    """Interesting is what holds some items of the start and, by an arbitrary rule, some other things."""
    kept = draw(st.lists(st.sampled_from(start), max_size=3)) if start else []
    salt, share = draw(st.integers(0, 1000)), draw(st.integers(1, 4))

    def interesting(items: Items) -> bool:
        if items == start:
            return True
        return all(item in items for item in kept) and hash((salt, items)) % share == 0

    return interesting


@given(st.data(), starts)
@settings(max_examples=25)
def test_the_outcome_does_not_depend_on_the_number_of_jobs(data: st.DataObject, start: Items) -> None:
    interesting = data.draw(predicates(start))
    delays = data.draw(st.lists(st.sampled_from([0.0, 0.0002, 0.001]), min_size=1, max_size=5))

    def dawdling(items: Items) -> bool:
        time.sleep(delays[len(repr(items)) % len(delays)])
        return interesting(items)

    alone = search(start, interesting)
    assert search(start, dawdling, jobs=2) == alone
    assert search(start, dawdling, jobs=5) == alone


@given(st.data(), starts)
def test_the_result_is_interesting_and_no_variant_of_it_is(data: st.DataObject, start: Items) -> None:
    interesting = data.draw(predicates(start))
    outcome = search(start, interesting)
    assert outcome.end is End.COMPLETE
    assert interesting(outcome.best)
    for each in PASSES:
        for variant in each.variants(outcome.best):
            assert not interesting(variant)


@given(st.data(), starts)
@settings(max_examples=25)
def test_every_best_on_the_way_is_interesting_and_smaller_than_the_last(
    data: st.DataObject, start: Items
) -> None:
    interesting = data.draw(predicates(start))
    outcome = search(start, interesting, jobs=2)
    assert outcome.history[0] == start and outcome.history[-1] == outcome.best
    assert all(map(interesting, outcome.history))
    costs = [(len(items), sum(items)) for items in outcome.history]
    assert costs == sorted(set(costs), reverse=True)


def test_what_can_only_go_together_needs_a_pass_that_drops_both() -> None:
    def both_or_none(items: Items) -> bool:
        return 9 in items and (1 in items) == (2 in items)

    start = (1, 5, 9, 2)
    assert search(start, both_or_none, (runs(1),)).best == (1, 9, 2)
    assert search(start, both_or_none, (runs(1), pairs())).best == (9,)


def test_the_same_thing_is_tested_once() -> None:
    seen: list[Items] = []

    def interesting(items: Items) -> bool:
        seen.append(items)
        return len(items) >= 3

    search((1, 1, 1, 1, 2), interesting, (runs(1), runs(1)))
    assert len(seen) == len(set(seen))


def test_a_larger_variant_is_not_even_tested() -> None:
    grow = Pass[Items]("grow", lambda items: iter([(*items, 1)]))
    outcome = search((1,), lambda items: True, (grow,))
    assert outcome == Outcome((1,), ((1,),), 0, End.COMPLETE)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_budget_ends_a_search_whose_candidates_do_not(jobs: int) -> None:
    release = threading.Event()

    def interesting(items: Items) -> bool:
        if len(items) == 3:
            release.wait(20)
        return True

    begun = time.monotonic()
    try:
        outcome = search((1, 2, 3, 4, 5), interesting, (runs(1),), jobs=jobs, deadline=begun + 0.3)
    finally:
        release.set()
    assert time.monotonic() - begun < 5
    assert outcome.end is End.BUDGET
    assert outcome.best == (1, 2, 3, 4)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_the_best_so_far(jobs: int) -> None:
    def report(step: Step[Items]) -> None:
        if step.kept == 2:
            raise KeyboardInterrupt

    outcome = search((1, 2, 3, 4), lambda items: True, (runs(1),), jobs=jobs, report=report)
    assert outcome.end is End.INTERRUPTED
    assert outcome.best == (1, 2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_of_the_machine_is_raised_in_its_turn(jobs: int) -> None:
    def interesting(items: Items) -> bool:
        if len(items) == 2:
            raise OSError("disk full")
        return True

    kept: list[int] = []
    with pytest.raises(OSError, match="disk full"):
        search((1, 2, 3, 4), interesting, (runs(1),), jobs=jobs, report=lambda step: kept.append(step.kept))
    assert kept == [1]


def test_steps_count_what_was_tested_and_kept() -> None:
    steps: list[Step[Items]] = []
    outcome = search((3, 1), lambda items: 3 in items, (runs(1),), report=steps.append)
    assert [(s.best, s.tried, s.kept, s.improved) for s in steps] == [((3,), 1, 1, True), ((3,), 2, 1, False)]
    assert outcome.tried == 2
