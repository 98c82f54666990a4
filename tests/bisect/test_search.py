"""The search, apart from any compiler: made-up lists of answers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.bisect.search import Conclusion, Ending, conclude, next_step
from harness.oracle import Answer

LETTERS = {"g": Answer.GOOD, "b": Answer.BAD, "?": Answer.UNKNOWN}


def search(truth: str, start: int, *, exhaustive: bool = False) -> tuple[Conclusion, list[int]]:
    """Ask `truth`, a letter a position, until nothing is left to ask."""
    answers: dict[int, Answer] = {}
    probed: list[int] = []
    while (step := next_step(len(truth), start, answers, exhaustive)) is not None:
        assert step.position not in answers
        probed.append(step.position)
        answers[step.position] = LETTERS[truth[step.position]]
    return conclude(len(truth), start, answers), probed


def halvings(count: int) -> int:
    """⌈log2 count⌉, and 0 for nothing."""
    return max(count - 1, 0).bit_length()


def budget(truth: str, start: int) -> int:
    sides = (start, len(truth) - 1 - start)
    return 1 + sum(halvings(side) + 1 for side in sides if side)


@st.composite
def lists(draw: st.DrawFn, alphabet: str = "gb?") -> tuple[str, int]:
    older = draw(st.text(alphabet, max_size=24))
    newer = draw(st.text(alphabet, max_size=24))
    return f"{older}b{newer}", len(older)


@st.composite
def stretches(draw: st.DrawFn) -> tuple[str, int]:
    """good* bad+ good*, with a start among the bad ones."""
    counts = [draw(st.integers(0, 40)), draw(st.integers(1, 40)), draw(st.integers(0, 40))]
    truth = "g" * counts[0] + "b" * counts[1] + "g" * counts[2]
    return truth, draw(st.integers(counts[0], counts[0] + counts[1] - 1))


@given(stretches())
@example(("b", 0))
@example(("gb", 1))
def test_a_single_stretch_is_found_exactly_and_within_the_budget(case: tuple[str, int]) -> None:
    truth, start = case
    found, probed = search(truth, start)
    assert len(probed) <= budget(truth, start)
    first, last = truth.index("b"), truth.rindex("b")
    assert (found.older.bad, found.newer.bad) == (first, last)
    assert found.older.good == (first - 1 if first else None)
    assert found.newer.good == (last + 1 if last + 1 < len(truth) else None)
    assert found.is_monotone
    assert not found.older.gap and not found.newer.gap


@given(stretches())
def test_steps_left_never_grow_and_are_never_too_few(case: tuple[str, int]) -> None:
    truth, start = case
    answers: dict[int, Answer] = {}
    left = []
    while (step := next_step(len(truth), start, answers)) is not None:
        left.append(step.left)
        answers[step.position] = LETTERS[truth[step.position]]
    assert all(after < before for before, after in pairwise(left))
    assert left[0] >= len(left)


@given(lists())
@example(("g?b?g", 2))
@example(("??b??", 2))
@example(("bgbgb", 2))
@example(("?gb", 2))
def test_whatever_the_list_the_edges_are_true_and_the_budget_holds(case: tuple[str, int]) -> None:
    truth, start = case
    found, probed = search(truth, start)
    unknown = sum(truth[position] == "?" for position in probed)
    assert len(probed) <= budget(truth, start) + unknown
    for edge, outward in ((found.older, -1), (found.newer, 1)):
        assert truth[edge.bad] == "b"
        assert all(truth[position] == "?" and position in probed for position in edge.gap)
        assert not set(edge.untested) & set(probed)
        last = 0 if outward < 0 else len(truth) - 1
        match edge.ending:
            case Ending.FOUND:
                assert edge.good is not None and truth[edge.good] == "g"
                between = range(edge.bad + outward, edge.good, outward)
                assert sorted(edge.gap) == sorted(between)
            case Ending.ALL_BAD:
                assert edge.bad == last != start
            case Ending.UNKNOWN_BEYOND:
                assert sorted(edge.gap) == sorted(range(edge.bad + outward, last + outward, outward))
            case Ending.NOTHING_THERE:
                assert start == last
            case _:
                pytest.fail(f"the search ended {edge.ending}")


@given(lists())
def test_probing_everything_tells_every_flip(case: tuple[str, int]) -> None:
    truth, start = case
    found, probed = search(truth, start, exhaustive=True)
    assert sorted(probed) == list(range(len(truth)))
    decided = [position for position, letter in enumerate(truth) if letter != "?"]
    pairs = pairwise(decided)
    assert list(found.flips) == [(a, b) for a, b in pairs if truth[a] != truth[b]]
    goods_before = [position for position in range(start) if truth[position] == "g"]
    assert found.older.good == max(goods_before, default=None)


@given(lists(), st.randoms(use_true_random=False))
def test_a_search_goes_on_from_the_answers_it_has(case: tuple[str, int], random: object) -> None:
    truth, start = case
    whole, probed = search(truth, start)
    keep = probed[: len(probed) // 2]
    random.shuffle(keep)  # type: ignore[attr-defined]
    answers = {position: LETTERS[truth[position]] for position in keep}
    again = []
    while (step := next_step(len(truth), start, answers)) is not None:
        again.append(step.position)
        answers[step.position] = LETTERS[truth[step.position]]
    assert [*probed[: len(probed) // 2], *again] == probed
    assert conclude(len(truth), start, answers) == whole


@pytest.mark.parametrize(
    ("truth", "start", "older", "newer", "monotone"),
    [
        ("ggbbbgg", 3, (Ending.FOUND, 2, 1), (Ending.FOUND, 4, 5), True),
        ("bbbbbgg", 3, (Ending.ALL_BAD, 0, None), (Ending.FOUND, 4, 5), True),
        ("ggbbbbb", 3, (Ending.FOUND, 2, 1), (Ending.ALL_BAD, 6, None), True),
        ("b", 0, (Ending.NOTHING_THERE, 0, None), (Ending.NOTHING_THERE, 0, None), True),
        ("?bbbg", 2, (Ending.UNKNOWN_BEYOND, 1, None), (Ending.FOUND, 3, 4), True),
        ("g??bg", 3, (Ending.FOUND, 3, 0), (Ending.FOUND, 3, 4), True),
    ],
)
def test_endings(
    truth: str,
    start: int,
    older: tuple[Ending, int, int | None],
    newer: tuple[Ending, int, int | None],
    monotone: bool,
) -> None:
    found, _ = search(truth, start)
    for edge, expected in ((found.older, older), (found.newer, newer)):
        assert (edge.ending, edge.bad, edge.good) == expected
    assert found.is_monotone is monotone


def test_a_fault_that_comes_and_goes_shows_once_everything_is_probed() -> None:
    truth = "bgbbgbg"
    assert search(truth, 3)[0].older.ending is Ending.ALL_BAD
    found, _ = search(truth, 3, exhaustive=True)
    assert (found.older.good, found.older.bad, found.newer.bad, found.newer.good) == (1, 2, 3, 4)
    assert not found.is_monotone
    assert len(found.flips) == 5


def test_a_stopped_search_says_so() -> None:
    found = conclude(9, 4, {4: Answer.BAD, 0: Answer.GOOD})
    assert found.older.ending is Ending.UNFINISHED
    assert found.newer.ending is Ending.UNFINISHED


def test_the_start_must_be_bad() -> None:
    with pytest.raises(ValueError, match="position 1 is not known to be bad"):
        conclude(3, 1, {1: Answer.GOOD})
