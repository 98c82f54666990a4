"""Is one time really longer than another."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate.noise import Measured, measured, rank_test, shift

values = st.floats(1, 1000).map(lambda value: round(value, 1))
samples = st.lists(values, min_size=5, max_size=30)


def process(middle: float, spread: float = 2.0, seed: int | None = None) -> Measured:
    drawn = ()
    if seed is not None:
        noise = random.Random(seed)
        drawn = tuple(noise.gauss(middle, spread / 2.56) for _ in range(30))
    found = measured({"median_us": middle, "spread_us": spread, "samples_us": drawn})
    assert found is not None
    return found


def test_nothing_timed_is_nothing_measured() -> None:
    assert measured(None) is None
    assert measured({}) is None
    assert measured({"median_us": 0.0, "spread_us": 0.0}) is None


def test_the_slowdown_of_the_default_hints_is_clear() -> None:
    found = shift([process(35.9)], [process(44.3)])
    assert (found.clear, round(found.ratio, 2)) == (True, 1.23)
    assert shift([process(35.9, seed=1)], [process(44.3, seed=2)]).clear


def test_what_scatters_more_than_it_differs_is_not() -> None:
    assert not shift([process(33.2, 9.0)], [process(35.9, 9.0)]).clear
    assert not shift([process(33.2, 9.0, seed=1)], [process(33.9, 9.0, seed=2)]).clear


def test_processes_that_interleave_show_the_scatter_that_one_hides() -> None:
    """Each process alone is steady; the machine is not."""
    fast, slow = [process(27.7, 0.2), process(33.2, 0.2)], [process(28.3, 0.2), process(33.9, 0.2)]
    assert not shift(fast, slow).clear
    assert shift(fast, [process(40.0, 0.2), process(41.0, 0.2)]).clear


@given(samples, samples)
def test_a_shift_is_the_same_from_both_ends(one: list[float], other: list[float]) -> None:
    sides = [
        [measured({"median_us": sorted(side)[len(side) // 2], "samples_us": side})] for side in (one, other)
    ]
    there, back = shift(sides[0], sides[1]), shift(sides[1], sides[0])
    assert there.clear == back.clear
    assert there.ratio == pytest.approx(1 / back.ratio)


@given(samples, samples, st.floats(0.1, 10))
def test_ranks_do_not_care_for_units_or_order(one: list[float], other: list[float], factor: float) -> None:
    there = rank_test(one, other)
    assert 0 <= there <= 1
    assert there == pytest.approx(rank_test(other, one))
    assert there == pytest.approx(rank_test(sorted(one), other[::-1]))


@given(samples)
def test_equal_sides_differ_by_chance(one: list[float]) -> None:
    assert rank_test(one, one) > 0.5


def test_all_equal_values_prove_nothing() -> None:
    assert rank_test([5.0] * 10, [5.0] * 10) == 1.0


def test_it_comes_close_to_counting_every_arrangement() -> None:
    one, other = [1.0, 2, 3, 4, 9, 10], [5.0, 6, 7, 8, 11, 12, 13]
    everything = sorted(one + other)
    seen = sum(everything.index(value) + 1 for value in one)
    middle = len(one) * (len(everything) + 1) / 2
    chosen = [sum(chosen) for chosen in combinations(range(1, len(everything) + 1), len(one))]
    exact = sum(abs(ranks - middle) >= abs(seen - middle) for ranks in chosen) / len(chosen)
    assert rank_test(one, other) == pytest.approx(exact, abs=0.02)
