"""Right answers with other bits: found, explained, and never a failure."""

from __future__ import annotations

import io
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker
from rich.console import Console

from harness.bits import BitReport, compare_bits, sentences
from harness.model import CellResult, Device, Judgement, Verdict
from harness.report.console import render_summary

H200 = Device("h200", "H200", "sm_90")


def ran(
    make: Maker,
    bits: str,
    toolkit: str = "13.3.1",
    occupancy: int | None = 2,
    tma: bool = True,
    data: str = "d",
    verdict: Verdict = Verdict.PASS,
) -> CellResult:
    cell = make.cell(toolkit, occupancy=occupancy, allow_tma=tma, device=H200)
    cell = replace(cell, case=replace(cell.case, seed=hash(data) % 1000))
    outputs = [{"name": "y", "sha256": bits}, {"name": "rstd", "sha256": "same"}]
    return CellResult(cell, Judgement(verdict, None, ""), observation={"data": data, "outputs": outputs})


def test_one_setting_that_decides_is_named(make: Maker) -> None:
    report = compare_bits(
        ran(make, "a" if tma else "b", toolkit, occupancy, tma)
        for toolkit in ("13.3.1", "13.4.3")
        for occupancy in (2, 4)
        for tma in (True, False)
    )
    (group,) = report.groups
    assert (report.compared, report.agreeing) == (2, 1)
    assert (group.output, group.told_by) == ("y", ("allow_tma",))
    assert [(v.sha256, len(v.cells)) for v in group.variants] == [("a", 4), ("b", 4)]
    assert sentences(report) == [
        "rmsnorm.static_persistent, y: more than one right answer on 1 set of data, told apart by allow_tma"
    ]


def test_two_settings_may_decide_together(make: Maker) -> None:
    report = compare_bits(
        ran(make, "b" if toolkit == "13.4.3" and not tma else "a", toolkit, 2, tma)
        for toolkit in ("13.3.1", "13.4.3")
        for tma in (True, False)
    )
    assert report.groups[0].told_by == ("cuda_toolkit", "allow_tma")


def test_only_what_passed_on_the_same_data_is_compared(make: Maker) -> None:
    report = compare_bits(
        [
            ran(make, "a"),
            ran(make, "b", occupancy=4, verdict=Verdict.WRONG_RESULT),
            ran(make, "c", data="other"),
            replace(ran(make, "e", occupancy=8), observation=None),
        ]
    )
    assert report == BitReport(0, 0, ())
    assert sentences(report) == []


def test_the_terminal_says_so_and_no_verdict_changes(make: Maker) -> None:
    text = io.StringIO()
    results = [ran(make, "a"), ran(make, "b", tma=False)]
    render_summary(results, [], Console(file=text, width=120))
    assert "Other bits within the error bound (fails nothing)" in text.getvalue()
    assert "1 of 2 outputs have the same bits in every cell" in text.getvalue()
    quiet = io.StringIO()
    render_summary(results, [], Console(file=quiet, width=120), quiet=True)
    assert "Other bits" not in quiet.getvalue()


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([1, 2, 4]), st.booleans(), st.sampled_from("xy"))
    )
)
def test_every_compared_output_is_counted_once(drawn: list[tuple[str, int, bool, str]]) -> None:
    make = Maker()
    results = [ran(make, bits, "13.3.1", occupancy, tma, data) for bits, occupancy, tma, data in drawn]
    report = compare_bits(results)
    assert report.compared == report.agreeing + len(report.groups)
    assert report == compare_bits(reversed(results))
    assert BitReport.from_json(report.to_json()) == report
    for group in report.groups:
        assert len(group.variants) > 1
