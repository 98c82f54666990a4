"""known_issues.toml, and every sentence about a wrong one."""

# ruff: noqa: E501
# A sentence stays on one line, so that it can be searched for.

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from harness.known_issues import Issue, load_known_issues
from harness.matrix import MatrixError
from harness.model import Verdict

SHIPPED = Path(__file__).parents[2] / "known_issues.toml"

ENTRY = """\
[[issue]]
id = "a"
title = "It never ends"
verdict = "predicted_deadlock"
component = "tileiras"
match = {{ kernel = "rmsnorm.static_persistent", {match} }}
{more}
"""


def entry(match: str = 'occupancy = ">=12"', more: str = "") -> str:
    return ENTRY.format(match=match, more=more)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[Issue, ...]]:
    monkeypatch.chdir(tmp_path)

    def read(text: str) -> tuple[Issue, ...]:
        Path("k.toml").write_text(text)
        return load_known_issues(Path("k.toml"))

    return read


Load = Callable[[str], tuple[Issue, ...]]


def test_the_shipped_file_is_right() -> None:
    issues = {issue.id: issue for issue in load_known_issues(SHIPPED)}
    deadlock = issues["pool-deadlock"]
    assert deadlock.verdicts == {Verdict.PREDICTED_DEADLOCK, Verdict.HANG}
    assert (deadlock.component, deadlock.fixed_in) == ("tileiras", "13.4.59")
    assert len(deadlock.workaround) == 2
    assert issues["dropped-occupancy-hint"].advice == "occupancy_missed"
    assert issues["endless-compile"].verdicts == {Verdict.COMPILE_TIMEOUT}


def test_everything_an_entry_may_say(load: Load) -> None:
    more = 'link = "https://example.org/1"\nexpires = 2027-06-30\nworkaround = [{ occupancy = "<=8" }]'
    (issue,) = load(entry('occupancy = [12, ">=16"], N = ">=512", tileiras = ">=13.2,<13.4"', more))
    assert (issue.link, issue.expires, issue.line) == ("https://example.org/1", date(2027, 6, 30), 1)
    assert issue.match["occupancy"].holds(12) and not issue.match["occupancy"].holds(13)
    (text,) = load(entry(more='expires = "2027-06-30"'))
    assert text.expires == date(2027, 6, 30)


def test_entries_for_own_kernels_may_name_their_constants(load: Load) -> None:
    text = entry().replace("rmsnorm.static_persistent", "k.py:copy").replace("occupancy", "BLOCK")
    (issue,) = load(text)
    assert issue.match["BLOCK"].holds(16)


def test_nothing_is_a_file_without_issues(load: Load) -> None:
    assert load("") == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[issues]\n", "k.toml:1: [issues]: unknown table or key; an entry is [[issue]]"),
        ("[issue]\n", "k.toml:1: [issue]: must be a list of tables; write [[issue]], with two brackets"),
        (
            entry(more='expire = "2027-01-01"'),
            'k.toml:7: [[issue]] #1, key "expire": unknown key; did you mean "expires"?',
        ),
        (
            entry().replace('title = "It never ends"\n', ""),
            'k.toml:1: [[issue]] #1, key "title": is missing; add it, for example '
            'title = "The kernel never ends"',
        ),
        (
            entry(more='expires = "soon"'),
            'k.toml:7: [[issue]] #1, key "expires": "soon" is not a day; write one such as 2027-06-30',
        ),
        (
            entry(more='link = "javascript:alert(1)"'),
            'k.toml:7: [[issue]] #1, key "link": "javascript:alert(1)" is not a link; use http:// or https:// '
            "and no blanks, at most 500 characters",
        ),
        (
            entry().replace("predicted_deadlock", "compiles"),
            'k.toml:4: [[issue]] #1, key "verdict": unknown finding "compiles"; did you mean '
            '"compiler_crash"?',
        ),
        (
            entry("occupncy = 12"),
            'k.toml:6: [[issue]] #1, key "match", key "occupncy": unknown property; did you mean "occupancy"?',
        ),
        (
            entry('occupancy = "about 12"'),
            'k.toml:6: [[issue]] #1, key "match", key "occupancy": "about 12" is neither a value nor a range; '
            'write ">=12", ">=8,<=16", 16 or "default", say',
        ),
        (
            entry('tileiras = "~=13.2"'),
            'k.toml:6: [[issue]] #1, key "match", key "tileiras": "~=13.2" is neither a value nor a range; '
            'write ">=13.2.51,<13.4.59" or "13.3.36", say',
        ),
        (
            entry('arch = "sm_9"'),
            'k.toml:6: [[issue]] #1, key "match", key "arch": unknown arch "sm_9"; did you mean "sm_90" or "sm_90a"?',
        ),
        (
            entry('allow_tma = "yes"'),
            'k.toml:6: [[issue]] #1, key "match", key "allow_tma": expected true, false or "default"',
        ),
        (
            entry("occupancy = {}"),
            'k.toml:6: [[issue]] #1, key "match", key "occupancy": expected a value, a range or a list of '
            "them, found a table",
        ),
        # what can never match
        (
            entry('occupancy = ">=12,<8"'),
            'k.toml:6: [[issue]] #1, key "match", key "occupancy": no value can meet it; widen the range',
        ),
        (
            entry('occupancy = ">=33"'),
            'k.toml:6: [[issue]] #1, key "match", key "occupancy": no value can meet it; widen the range',
        ),
        (
            entry().replace("rmsnorm.static_persistent", "rmsnorm.static_persistant"),
            'k.toml:6: [[issue]] #1, key "match", key "kernel": unknown kernel "rmsnorm.static_persistant"; '
            'did you mean "rmsnorm.static_persistent"?',
        ),
        (
            entry("tile_m = 4", "").replace("static_persistent", "multi_wave_reload"),
            'k.toml:6: [[issue]] #1, key "match", key "tile_m": unknown property; did you mean "tile_n"?',
        ),
        (
            entry('tileiras = ">=13.4.59"', 'fixed_in = "13.4.59"'),
            "k.toml:1: [[issue]] #1: can never match: all versions it speaks of have the fix of 13.4.59; "
            "remove the entry",
        ),
        (
            entry(more='first_seen = "13.4"\nfixed_in = "13.2"'),
            'k.toml:7: [[issue]] #1, key "first_seen": is not older than fixed_in "13.2"; correct one of them',
        ),
        (
            entry(more='fixed_in = "13.4"').replace('component = "tileiras"\n', ""),
            'k.toml:1: [[issue]] #1: names versions of no component; add component = "tileiras", say',
        ),
        (
            entry(more='advice = "spills"'),
            "k.toml:1: [[issue]] #1: says what to expect in verdict or in advice; write one of them",
        ),
        (
            entry(more='workaround = [{ occupancy = ">=8" }]'),
            'k.toml:7: [[issue]] #1, key "workaround", item 1: leaves the cell among those that match; '
            "change a setting that match names",
        ),
        (
            entry(more="workaround = [{}]"),
            'k.toml:7: [[issue]] #1, key "workaround", item 1: says nothing; write {occupancy = ">=12"}, say',
        ),
        # overlaps
        (
            entry() + entry().replace('"a"', '"b"').replace(">=12", "<=12"),
            'k.toml:8: [[issue]] #2: overlaps with "a" in line 1: a cell may be both; narrow one',
        ),
        (
            entry() + entry("occupancy = 1"),
            'k.toml:9: [[issue]] #2, key "id": "a" is the id of the entry in line 1 already; choose another',
        ),
    ],
)
def test_sentences(load: Load, text: str, sentence: str) -> None:
    with pytest.raises(MatrixError) as error:
        load(text)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    "apart",
    [
        lambda text: text.replace(">=12", "<12"),
        lambda text: text.replace("predicted_deadlock", "hang"),
        lambda text: text.replace('">=12"', '">=12", arch = "sm_120", tileiras = ">=13.5"').replace(
            'title = "It', 'fixed_in = "13.6"\ntitle = "It'
        ),
    ],
)
def test_entries_that_no_cell_can_share_do_not_overlap(load: Load, apart: Callable[[str], str]) -> None:
    first = entry(more='fixed_in = "13.4.59"')
    assert len(load(first + apart(entry().replace('"a"', '"b"')))) == 2
