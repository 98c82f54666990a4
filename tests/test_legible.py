"""Texts fit to be kept: whatever a compiler or a kernel says."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.legible import legible, legible_json

ANY = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain × text\n\tof two lines", "plain × text\n\tof two lines"),
        ("half \ud800 a pair", "half \\ud800 a pair"),
        ("\x1b[31mred\x07\x00\x9b", "\\x1b[31mred\\x07\\x00\\x9b"),
        ("one\r\ntwo\rthree", "one\ntwo\\x0dthree"),
    ],
)
def test_what_no_reader_can_see_is_spelled_out(text: str, kept: str) -> None:
    assert legible(text) == kept


@given(ANY)
def test_any_text_can_be_written_and_stays_as_it_then_is(text: str) -> None:
    kept = legible(text)
    kept.encode("utf-8")
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") for c in kept)
    assert legible(kept) == kept


def test_values_of_json_are_made_legible_all_the_way_down() -> None:
    assert legible_json({"a\x00": ["\ud800", (1, None, 2.5), {"b": "\x1b"}]}) == {
        "a\\x00": ["\\ud800", [1, None, 2.5], {"b": "\\x1b"}]
    }
