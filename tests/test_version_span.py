"""Affected and good versions in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.version_span import AFFECTED, GOOD, OTHER, RANKING, UNKNOWN, VersionSpan, version_key


def sentence(*states: str) -> str:
    return span(*states).sentence


def span(*states: str) -> VersionSpan:
    return VersionSpan("tileiras", tuple((f"13.{at}.0", state) for at, state in enumerate(states, 1)))


def test_fixed() -> None:
    assert sentence(AFFECTED, AFFECTED, GOOD, GOOD) == (
        "tileiras 13.1.0 to 13.2.0 affected; good from 13.3.0, the next version tested; "
        "no older version was tested"
    )


def test_regression_still_there() -> None:
    assert sentence(GOOD, AFFECTED) == (
        "tileiras 13.2.0 affected; no newer version was tested; good before, up to 13.1.0"
    )


def test_every_version() -> None:
    assert sentence(AFFECTED) == "tileiras 13.1.0 affected; no other version was tested"


def test_comes_and_goes() -> None:
    assert "it comes and goes: 13.2.0 in between good" in sentence(AFFECTED, GOOD, AFFECTED, GOOD)


def test_gaps_are_said() -> None:
    text = sentence(UNKNOWN, AFFECTED, UNKNOWN, GOOD)
    assert "good from 13.4.0;" in text
    assert "no older version is known to be good" in text
    assert text.endswith("no answer from 13.1.0 and 13.3.0")
    assert sentence(AFFECTED, OTHER).endswith("another finding with 13.2.0")


def test_nothing_known() -> None:
    assert VersionSpan("ptxas", ()).sentence == "ptxas: the affected version is not known"


def test_versions_sort_as_versions() -> None:
    assert sorted(["13.10.1", "13.9.0", "odd", "13.9.0.1"], key=version_key) == [
        "odd",
        "13.9.0",
        "13.9.0.1",
        "13.10.1",
    ]


@given(st.lists(st.sampled_from(RANKING), max_size=8))
def test_only_tested_versions_are_named_and_good_ones_are_good(states: list[str]) -> None:
    made = span(*states)
    known = dict(made.states)
    for version in (made.good_before, made.good_from):
        assert version is None or known[version] == GOOD
    if made.first_affected and made.last_affected:
        order = [version for version, _ in made.states]
        assert order.index(made.first_affected) <= order.index(made.last_affected)
        assert made.good_from is None or order.index(made.good_from) > order.index(made.last_affected)
        assert made.good_before is None or order.index(made.good_before) < order.index(made.first_affected)
    assert made.sentence
