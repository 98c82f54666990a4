"""Constants that are infinite or no number: no JSON has them, and NaN equals nothing."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import Maker

from harness.bundle import Bundle, read_bundle, write_bundle
from harness.matrix import load_matrix
from harness.matrix.explain import toml
from harness.matrix.value import Timeouts
from harness.matrix.write import case_table
from harness.model import Case, Cell, CellResult, Constant, RunArgument, canonical_json
from harness.plan import describe
from harness.report.html import render_html
from harness.report.jsonl import read_results, result_of, write_results
from harness.report.junit import write_junit
from harness.report.table import grids
from harness.store import Store

MATRIX = """\
[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = "13.5.0"
[target]
arch = "sm_90"
[[case]]
kernel = "k.py:k"
parameters = [
    { name = "K", kind = "constant", value = [inf, -inf, nan] },
    { name = "t", kind = "tuple", items = [{ kind = "constant", value = -inf }] },
]
"""


@pytest.fixture
def cases(tmp_path: Path) -> tuple[Case, ...]:
    (tmp_path / "k.py").write_text("import cuda.tile as ct\n\n@ct.kernel\ndef k(K, t): ...\n")
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX)
    assert load_matrix(path).digest == load_matrix(path).digest
    return load_matrix(path).cases


@pytest.fixture
def results(cases: tuple[Case, ...], make: Maker) -> list[CellResult]:
    return [make.result(replace(make.cell(), case=case)) for case in cases]


def test_they_come_back_from_json_as_they_were(cases: tuple[Case, ...]) -> None:
    for case in cases:
        text = json.dumps(case.to_json(), allow_nan=False)
        back = Case.from_json(json.loads(text))
        assert back == case and hash(back) == hash(case) and back.digest == case.digest
    assert len({case.digest for case in cases}) == len(cases) == 3
    assert canonical_json(Constant("K", -math.inf).to_json()["value"]) == '{"float":"-inf"}'
    argument = RunArgument("n", value=math.inf)
    assert RunArgument.from_json(json.loads(json.dumps(argument.to_json(), allow_nan=False))) == argument


def test_a_matrix_can_be_written_of_them(cases: tuple[Case, ...]) -> None:
    written = toml(case_table(cases[1])["parameters"])
    assert "value = -inf" in written and "Infinity" not in written


def test_every_report_and_record_takes_them(results: list[CellResult], tmp_path: Path) -> None:
    (grid,) = grids(results)
    assert (grid.axes, grid.rows) == (("K",), (("inf",), ("-inf",), ("nan",)))
    assert " K=nan " in describe(results[2].cell)
    with Store.open(tmp_path) as store:
        run = store.start_run("m", [result.cell for result in results])
        for result in results:
            store.record(run, result)
        assert store.results(run) == results
        assert store.planned_cells(run) == [result.cell for result in results]
        assert len(store.sightings()) == 3
    write_results(results, tmp_path / "results.jsonl")
    for line in (tmp_path / "results.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    known = {result.cell.id: result.cell for result in results}
    back = [result_of(one, known) for one in read_results(tmp_path / "results.jsonl")]
    assert [result.cell for result in back] == [result.cell for result in results]
    write_junit(results, tmp_path / "junit.xml")
    assert " K=-inf " in (tmp_path / "junit.xml").read_text()
    assert "inf" in render_html(results, title="t", facts=None)


def test_a_bundle_takes_them(results: list[CellResult], tmp_path: Path) -> None:
    path = tmp_path / "cells.bundle"
    write_bundle(path, Bundle("m", Timeouts(), tuple(results)), [])
    assert [Cell.from_json(r.cell.to_json()) for r in read_bundle(path).results] == [r.cell for r in results]
