"""Results against known issues: expected, fixed, returned, expired, stale."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker

from harness.commands.run import exit_code
from harness.known_issues import Issue, assess, load_known_issues
from harness.model import CellResult, Device, Judgement, Verdict
from harness.report.junit import write_junit

TODAY = date(2026, 12, 1)
SHIPPED = load_known_issues(Path(__file__).parents[2] / "known_issues.toml")
(DEADLOCK,) = (issue for issue in SHIPPED if issue.id == "pool-deadlock")
(HINT,) = (issue for issue in SHIPPED if issue.id == "dropped-occupancy-hint")


def test_a_run_in_which_all_is_known_is_a_good_run(lab_run: list[CellResult]) -> None:
    known = assess(lab_run, [DEADLOCK], TODAY)
    assert len(known.expected) == 10
    assert set(known.expected.values()) == {"pool-deadlock"}
    assert (known.loud, known.stale) == ((), ())
    assert (exit_code(lab_run), exit_code(lab_run, known)) == (1, 0)


def test_anything_else_is_news(lab_run: list[CellResult], make: Maker) -> None:
    crash = Judgement(Verdict.COMPILER_CRASH, "compiler_crash/x/y", "crashed")
    results = [*lab_run, CellResult(make.cell(shape=(1, 512)), crash)]
    assert exit_code(results, assess(results, [DEADLOCK], TODAY)) == 1


def test_gone_is_as_loud_as_a_failure(lab_run: list[CellResult], make: Maker) -> None:
    """One cell of the old version is suddenly good."""
    results = [
        make.result(r.cell) if r.verdict is Verdict.PREDICTED_DEADLOCK and n == 29 else r
        for n, r in enumerate(sorted(lab_run, key=lambda r: r.verdict is not Verdict.PREDICTED_DEADLOCK), 20)
    ]
    known = assess(results, [DEADLOCK], TODAY)
    (seen,) = known.fixed
    assert len(seen.cells) == 1
    assert "known issue pool-deadlock is gone: set its fixed_in (good with tileiras 13." in seen.text
    assert exit_code(results, known) == 1


def test_what_was_fixed_may_come_back(lab_run: list[CellResult], make: Maker) -> None:
    back = make.result(make.cell("13.5.0"), make.deadlocked())
    known = assess([*lab_run, back], [DEADLOCK], TODAY)
    (seen,) = known.returned
    assert seen.text == "known issue pool-deadlock is back, though fixed in tileiras 13.4.59"
    assert seen.cells == (back.cell.id,)
    assert exit_code([back], known) == 1


def test_an_expired_entry_excuses_nothing(lab_run: list[CellResult]) -> None:
    due = replace(DEADLOCK, expires=TODAY)
    assert exit_code(lab_run, assess(lab_run, [due], TODAY)) == 0
    over = replace(DEADLOCK, expires=date(2026, 11, 30))
    known = assess(lab_run, [over], TODAY)
    assert known.expired[0].text.startswith("known issue pool-deadlock expired on 2026-11-30: check it")
    assert exit_code(lab_run, known) == 1


def test_an_entry_nobody_asks_about_is_stale(make: Maker) -> None:
    results = [make.answer(make.cell("13.4.3"))]
    known = assess(results, [DEADLOCK], TODAY)
    assert (known.stale, known.loud) == (("pool-deadlock",), ())
    assert exit_code(results, known) == 0


def test_no_answer_is_neither_good_nor_gone(make: Maker) -> None:
    skipped = CellResult(make.cell(), Judgement(Verdict.SKIPPED, None, "no device"))
    known = assess([skipped], [DEADLOCK], TODAY)
    assert (known.expected, known.fixed, known.stale) == ({}, (), ("pool-deadlock",))


def test_advice_is_expected_too(lab_run: list[CellResult], make: Maker) -> None:
    known = assess(lab_run, [HINT], TODAY)
    assert (known.expected, known.loud, known.stale) == ({}, (), ())
    better = make.result(make.cell(allow_tma=True), make.inspection(32, 8, limited_by="warps"))
    (seen,) = assess([better], [HINT], TODAY).fixed
    assert seen.issue == "dropped-occupancy-hint"


def test_compile_time_near_the_limit_is_no_news(make: Maker) -> None:
    slow = Issue("slow", "", advice="slow_compile")

    def took(seconds: float) -> CellResult:
        return make.result(compile=make.compiled(cpu_seconds=seconds))

    assert assess([took(4.0)], [slow], TODAY).fixed == ()
    assert len(assess([took(1.0)], [slow], TODAY).fixed) == 1


def test_a_setting_the_kernel_chose_counts_as_set(make: Maker) -> None:
    from harness.known_issues.conditions import ranges, whole, words

    (cell,) = [make.cell(shape=(64, 16384))]
    result = CellResult(cell, Judgement(Verdict.COMPILE_TIMEOUT, "x", "x"))
    for match in (
        {"tile_n": ranges([16384], whole)},
        {"tile_n": words(["default"])},
        {"N": ranges([">=16384"], whole)},
    ):
        assert Issue("i", "", match=match, verdicts=frozenset({Verdict.COMPILE_TIMEOUT})).speaks_of(result)


@given(st.lists(st.sampled_from(Verdict), max_size=8))
def test_every_cell_is_excused_or_counts(verdicts: list[Verdict]) -> None:
    make = Maker()
    results = [
        CellResult(
            make.cell(shape=(rows, 512)), Judgement(verdict, str(verdict), ""), {"tileiras": "13.3.36"}
        )
        for rows, verdict in enumerate(verdicts, 1)
    ]
    known = assess(results, [DEADLOCK], TODAY)
    assert known.expected.keys() == {
        r.cell.id for r in results if r.verdict in (Verdict.PREDICTED_DEADLOCK, Verdict.HANG)
    }
    others = [v for v in verdicts if v.is_finding and v not in DEADLOCK.verdicts]
    if Verdict.INFRA_ERROR not in verdicts and (others or any(v.is_good for v in verdicts)):
        assert exit_code(results, known) == 1


@pytest.mark.parametrize("good", [False, True])
def test_ci_servers_see_an_expected_failure_as_skipped_and_its_end_as_a_failure(
    tmp_path: Path, make: Maker, good: bool
) -> None:
    result = make.result(make.cell(), make.inspection(32, 8)) if good else make.answer(make.cell())
    write_junit([result], tmp_path / "junit.xml", assess([result], [DEADLOCK], TODAY))
    text = (tmp_path / "junit.xml").read_text()
    if good:
        assert '<failure message="known issue pool-deadlock is gone' in text and 'type="fixed"' in text
    else:
        assert '<skipped message="known issue pool-deadlock: Can never finish' in text
        assert "<failure" not in text


def test_compiling_says_nothing_of_what_only_a_gpu_shows(make: Maker) -> None:
    issue = replace(DEADLOCK, verdicts=frozenset({Verdict.WRONG_RESULT}))
    compiled = [make.result(r) for r in make.cells() if issue.speaks_of(make.result(r))]
    assert compiled and assess(compiled, [issue], TODAY).fixed == ()
    on_device = [
        replace(r, cell=replace(r.cell, device=Device("h200", "H200", r.cell.arch, ""))) for r in compiled
    ]
    assert assess(on_device, [issue], TODAY).fixed != ()
