from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from harness.toolchain import versions

TOOLKITS = [
    *("13.1.0", "13.1.1", "13.1.2.0", "13.2.0", "13.2.1", "13.2.2"),
    *("13.3.0", "13.3.1", "13.4.1.0", "13.4.2", "13.4.3", "13.5.0"),
]
releases = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("13.3.1", "13.3.1"),
        ("13.3.0", "13.3.0"),
        ("13.3", "13.3.1"),
        ("13.1", "13.1.2.0"),
        ("13.4.1", "13.4.1.0"),
        ("13.4", "13.4.3"),
        ("13", "13.5.0"),
        ("13.6", None),
        ("13.3.2", None),
        ("13.3.1.0", None),
        ("latest", None),
        ("", None),
        ("../13.3", None),
        ("13.3.1; rm -rf ~", None),
    ],
)
def test_what_a_user_means(wanted: str, meant: str | None) -> None:
    assert versions.match(wanted, TOOLKITS) == meant


def test_a_series_is_made_of_numbers_not_of_characters() -> None:
    assert versions.match("1.5", ["1.5.0", "1.50.0"]) == "1.5.0"
    assert versions.match("1.5", ["1.50.0"]) is None


def test_a_pre_release_must_be_asked_for() -> None:
    assert versions.match("1.8", ["1.8.0rc1", "1.8.0"]) == "1.8.0"
    assert versions.match("1.8", ["1.8.0rc1"]) is None
    assert versions.match("1.8.0rc1", ["1.8.0rc1"]) == "1.8.0rc1"


@given(st.lists(releases, min_size=1), st.data())
def test_an_existing_version_means_itself(existing: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(existing))
    assert versions.match(chosen, existing) == chosen


@given(releases, st.lists(releases))
def test_a_series_gives_its_newest(series: str, existing: list[str]) -> None:
    chosen = versions.match(series, existing)
    members = [v for v in existing if v.startswith(series + ".")]
    if series in existing:
        assert chosen == series
    elif not members:
        assert chosen is None
    else:
        assert chosen is not None and Version(chosen) == max(map(Version, members))


@given(st.text(max_size=12), st.lists(releases))
def test_any_text_gets_a_neighbour_that_exists(wanted: str, existing: list[str]) -> None:
    guess = versions.nearest(wanted, existing)
    assert guess in existing if existing else guess is None


@given(st.lists(st.text(max_size=8) | releases))
def test_in_order_is_sorted_and_keeps_only_versions(texts: list[str]) -> None:
    ordered = versions.in_order(texts)
    assert list(ordered) == sorted(ordered, key=Version)
    assert set(ordered) == {t for t in texts if versions.parse(t)}


@pytest.mark.parametrize(
    ("wanted", "guess"),
    [("13.6.0", "13.5.0"), ("13.31", "13.3.1"), ("13.3.2", "13.3.1"), ("13.4.9", "13.4.3")],
)
def test_the_nearest_is_what_was_meant(wanted: str, guess: str) -> None:
    assert versions.nearest(wanted, TOOLKITS) == guess


def test_an_unknown_version_lists_what_exists() -> None:
    assert versions.unknown("cuda-tile", "1.8.0", ["1.6.0", "1.7.0"]) == (
        'unknown cuda-tile version "1.8.0": did you mean 1.7.0? It can be one of 1.6.0, 1.7.0.'
    )
