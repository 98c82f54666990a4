"""Shrinking finds the least case that fails alike, within its budget, and only tries what can run."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_results import Maker
from rich.console import Console

from harness.bundle import Bundle
from harness.bundle_cases import BundleCases, spelled_out
from harness.commands.shrink import Laboratory, shrink_findings
from harness.matrix.value import Timeouts
from harness.model import Case, Cell, CellResult, Device, Hints, Judgement, Verdict
from harness.plan import NoSuchCell
from harness.shrink import Search, shrink

KERNEL = "rmsnorm.static_persistent"
H200 = Device("h200", "H200", "sm_90")


def case_of(rows: int, columns: int, occupancy: int | None = 16, **changes: Any) -> Case:
    knobs = (("allow_tma", False), ("latency", 10))
    return replace(Case(KERNEL, (rows, columns), "bfloat16", Hints(occupancy), knobs), **changes)


@settings(max_examples=6, suppress_health_check=[HealthCheck.nested_given])
@given(
    rows=st.integers(0, 300),
    columns=st.integers(1, 300),
    least=st.tuples(st.integers(0, 300), st.integers(1, 300)),
    seed=st.integers(0, 2**16),
)
def test_the_least_shape_is_found_and_the_data_is_plain(
    rows: int, columns: int, least: tuple[int, int], seed: int
) -> None:
    least = (min(least[0], rows), min(least[1], columns))
    failing = case_of(rows, columns, seed=seed, values="wide", layout="sliced")

    def fails(case: Case) -> bool:
        return case.shape[0] >= least[0] and case.shape[1] >= least[1]

    search = Search(lambda case: True, fails, most=500)
    found = shrink(failing, [failing, case_of(8, 8, None)], search)
    assert fails(found)
    assert found.shape == least
    assert (found.values, found.layout, found.seed) == ("normal", "contiguous", 0)
    assert found.hints.occupancy is None


def test_only_what_can_run_is_run_and_never_more_than_the_budget() -> None:
    tried = []

    def fails(case: Case) -> bool:
        tried.append(case)
        return case.values == "nan" and case.shape[0] % 16 == 0

    failing = case_of(4096, 512, values="nan", seed=99)
    search = Search(lambda case: case.shape[1] == 512, fails, most=30)
    found = shrink(failing, [failing], search)
    assert len(tried) == search.runs <= 30
    assert len({case.digest for case in tried}) == len(tried)
    assert {case.shape[1] for case in tried} == {512}
    assert found.values == "nan"
    assert found.shape[0] == 0


def test_a_failure_that_cannot_be_made_smaller_stays() -> None:
    failing = case_of(4096, 512, seed=99)
    assert shrink(failing, [failing], Search(lambda case: True, lambda case: False)) == failing


# --- on a bundle --------------------------------------------------------------------------------


def bundle_of(make: Maker, *cases: Case, toolkits: tuple[str, ...] = ("13.3.1",)) -> Bundle:
    results = []
    for toolkit in toolkits:
        for case in cases:
            cell = replace(make.cell(toolkit), case=case)
            static = make.result(cell)
            results += [static, replace(static, cell=replace(cell, device=H200))]
    return Bundle("m", Timeouts(), tuple(results))


def test_a_cubin_serves_every_case_of_its_specialisation(make: Maker) -> None:
    cases = BundleCases(bundle_of(make, case_of(64, 512)))
    listed = cases.listed[0]
    for other in (case_of(32, 512, seed=7), case_of(4096, 272, values="nan")):
        static = cases.static(replace(listed, case=other))
        assert static is not None
        assert static.cell == replace(listed, case=other, device=None)
        assert static.inspection is not None
    for other in (
        case_of(33, 512),
        case_of(64, 1024),
        case_of(64, 512, 8),
        case_of(64, 512, layout="sliced"),
    ):
        assert cases.static(replace(listed, case=other)) is None
    assert cases.static(replace(listed, case=case_of(1, 1, kernel="gone.py:gone"))) is None


def test_a_case_is_asked_for_by_id_by_words_or_as_json(make: Maker) -> None:
    cases = BundleCases(bundle_of(make, case_of(64, 512), case_of(64, 512, 8), toolkits=("13.3.1", "13.4.3")))
    listed = cases.listed[0]
    assert cases.resolve(listed.id) == [listed]
    wanted = replace(listed, case=case_of(32, 272, seed=3, values="zero_rows"))
    assert cases.resolve(spelled_out(wanted)) == [wanted]
    words = "13.3.1 occupancy=16 32x272 values=zero_rows seed=3"
    assert cases.resolve(words) == [wanted]
    both = cases.resolve(json.dumps(wanted.case.to_json()))
    assert [c.toolchain.cuda_toolkit for c in both] == ["13.3.1", "13.4.3"]
    only = cases.only(both)
    assert [r.cell.device for r in only.results] == [None, H200] * 2
    assert len({r.cell.id for r in only.results}) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("33x512", 'no cell fits "33x512"'),
        ("occupancy=16 layout=odd", "layout=odd"),
        ("seed=three", "seed=three"),
        ("32x272", 'no cell fits "32x272"'),
        ("{", "this JSON is no case"),
        ("{}", "this JSON is no case"),
        ('{"kernel": 7, "shape": 3, "dtype": {}}', "no case"),
        (json.dumps(case_of(33, 512).to_json()), "the bundle has no cubin for this case"),
    ],
)
def test_what_cannot_be_meant_is_said(make: Maker, text: str, words: str) -> None:
    cases = BundleCases(bundle_of(make, case_of(64, 512), case_of(64, 512, 8)))
    with pytest.raises(NoSuchCell, match=words):
        cases.resolve(text)


def test_each_signature_is_shrunk_to_a_command_that_runs_again(make: Maker, tmp_path: Path) -> None:
    bundle = bundle_of(make, case_of(4096, 512, seed=5, values="wide"), case_of(64, 512), case_of(64, 512, 8))
    cases = BundleCases(bundle)
    ran: list[Cell] = []

    class Played(Laboratory):
        def run(self, cell: Cell) -> CellResult | None:
            ran.append(cell)
            wrong = cell.case.shape[0] >= 48
            return result_of(cell, "wrong_result: y" if wrong else None)

    def result_of(cell: Cell, signature: str | None) -> CellResult:
        verdict = Verdict.WRONG_RESULT if signature else Verdict.PASS
        return CellResult(cell, Judgement(verdict, signature, ""), observation={})

    judged = [result_of(cell, "wrong_result: y") for cell in cases.listed]
    text = io.StringIO()
    laboratory = Played(Path("b.bundle"), cases, {}, None, Timeouts())  # type: ignore[arg-type]
    shrink_findings(judged, laboratory, tmp_path, Console(file=text, width=400))
    (written,) = json.loads((tmp_path / "shrunk.json").read_text())
    small = Cell.from_json(written["cell"])
    assert small.case.shape == (48, 272)
    assert small.case.hints.occupancy == 8
    command = shlex.split(written["command"])
    assert command[:6] == ["python", "-m", "harness", "execute", "b.bundle", "--case"]
    assert cases.resolve(command[6]) == [small]
    assert written["command"] in text.getvalue()
    assert len(ran) == written["runs"] <= 60
