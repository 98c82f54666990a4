"""Spans and words: membership, meeting, and how they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from harness.known_issues.conditions import (
    Condition,
    NoCondition,
    Span,
    number,
    ranges,
    version,
    whole,
    words,
)

ends = st.one_of(st.none(), st.integers(0, 12))
spans = st.builds(Span, ends, ends, st.booleans(), st.booleans())
conditions = st.builds(
    Condition, st.lists(spans, max_size=3).map(tuple), st.frozensets(st.sampled_from("ab"), max_size=2)
)
EVERY = [*(n / 2 for n in range(-2, 28)), "a", "b"]


@given(conditions, conditions)
def test_what_two_have_in_common_is_what_both_hold_of(one: Condition, other: Condition) -> None:
    both = one & other
    for value in EVERY:
        assert both.holds(value) == (one.holds(value) and other.holds(value))


@given(conditions)
def test_empty_is_what_holds_of_nothing(one: Condition) -> None:
    assert one.is_empty == (not any(one.holds(value) for value in EVERY))


@pytest.mark.parametrize(
    ("written", "holds", "fails"),
    [
        ([16], [16], [15, 17, None]),
        ([">=12"], [12, 32], [11, None]),
        ([">=8,<=16"], [8, 16], [7, 17]),
        ([">8,<16"], [9, 15], [8, 16]),
        (["==4"], [4], [5]),
        (["default", "<=2"], [None, 1], [3]),
    ],
)
def test_whole_numbers(written: list[object], holds: list[object], fails: list[object]) -> None:
    condition = ranges(written, whole, Span(1, 32))
    assert [condition.holds(value) for value in holds] == [True] * len(holds)
    assert [condition.holds(value) for value in fails] == [False] * len(fails)


def test_no_whole_number_lies_between_neighbours() -> None:
    assert ranges([">12,<13"], whole).is_empty
    assert not ranges([">12,<13"], number).is_empty
    assert ranges([">=33"], whole, Span(1, 32)).is_empty


def test_versions_are_ordered_as_versions() -> None:
    condition = ranges([">=13.2.51,<13.10"], version)
    assert condition.holds(Version("13.4.59"))
    assert not condition.holds(Version("13.10.0"))
    assert not condition.holds(None)


def test_flags_are_no_numbers() -> None:
    assert words([True]).holds(True)
    assert not words([True]).holds(False)
    assert not ranges([1], whole).holds(True)


@pytest.mark.parametrize("text", ["", ">=", ">= 1 2", "=>1", "about 3", ">=1;<3", "nan", "1..2", "~=13.3"])
def test_what_is_no_condition(text: str) -> None:
    for parse in (whole, number, version):
        with pytest.raises(NoCondition):
            ranges([text], parse)
