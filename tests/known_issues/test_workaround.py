"""What an advice makes of a cell, and whether it holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker
from typer.testing import CliRunner

from harness.cli import app
from harness.known_issues import load_known_issues
from harness.known_issues.conditions import Span, ranges, whole, words
from harness.known_issues.workaround import changed, changes, trials
from harness.model import CellResult, Device, Judgement, Verdict

ROOT = Path(__file__).parents[2]
(DEADLOCK,) = (i for i in load_known_issues(ROOT / "known_issues.toml") if i.id == "pool-deadlock")


def test_values_of_the_matrix_and_the_end_of_the_range(make: Maker) -> None:
    cases = [make.cell(occupancy=occupancy).case for occupancy in (None, 2, 4, 16)]
    assert changes({"occupancy": ranges(["<=8"], whole, Span(1, 32))}, cases) == (
        (("occupancy", 2),),
        (("occupancy", 4),),
        (("occupancy", 8),),
    )
    assert changes({"allow_tma": words([True])}, cases) == ((("allow_tma", True),),)
    assert changes({"occupancy": words(["default"])}, []) == ((("occupancy", None),),)
    both = changes({"occupancy": ranges([1], whole), "allow_tma": words([True])}, [])
    assert both == ((("occupancy", 1), ("allow_tma", True)),)


@given(st.sampled_from([None, 2, 8, 16]), st.booleans(), st.integers(1, 32), st.booleans())
def test_a_change_changes_what_it_names_and_nothing_else(
    occupancy: int | None, tma: bool, new: int, new_tma: bool
) -> None:
    cell = Maker().cell(occupancy=occupancy, allow_tma=tma)
    other = changed(cell, (("occupancy", new), ("allow_tma", new_tma)))
    assert other.case.settings == {**cell.case.settings, "occupancy": new, "allow_tma": new_tma}
    assert replace(other, case=cell.case) == cell
    assert changed(cell, (("occupancy", occupancy), ("allow_tma", tma))).id == cell.id


def answers(make: Maker, *others: CellResult) -> dict[str, CellResult]:
    cells = [
        make.cell(toolkit, occupancy=occupancy) for toolkit in ("13.3.1", "13.4.3") for occupancy in (8, 16)
    ]
    return {r.cell.id: r for r in [*map(make.answer, cells), *others]}


def test_a_trial_says_what_avoiding_costs_and_what_mending_would(make: Maker) -> None:
    device = Device("h200", "H200", "sm_90")
    ran = replace(
        make.answer(make.cell(occupancy=8)),
        cell=make.cell(occupancy=8, device=device),
        judgement=Judgement(Verdict.PASS, None, ""),
        observation={"timing": {"median_us": 64.0, "spread_us": 1.0}},
    )
    results = answers(make, ran)
    bad = results[make.cell().id]
    (trial,) = trials(DEADLOCK, [(("occupancy", 8),)], results, [bad])
    assert (trial.avoids, trial.verdict, trial.change) == (True, "compiles", "occupancy=8")
    assert (trial.cost.registers, trial.cost.device_us) == (32, 64.0)
    assert trial.mended_by == "tile1.5.0-ctk13.4.3"
    assert trial.mended is not None and trial.mended.registers == 32


@pytest.mark.parametrize(
    ("verdict", "avoids"),
    [(Verdict.PREDICTED_DEADLOCK, False), (Verdict.COMPILER_CRASH, False), (Verdict.SKIPPED, None)],
)
def test_advice_that_leads_into_another_fault_does_not_hold(
    make: Maker, verdict: Verdict, avoids: bool | None
) -> None:
    results = answers(make)
    other = make.cell(occupancy=8)
    results[other.id] = CellResult(other, Judgement(verdict, str(verdict), ""))
    (trial,) = trials(DEADLOCK, [(("occupancy", 8),)], results, [results[make.cell().id]])
    assert trial.avoids is avoids


def workaround(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["workaround", *map(str, arguments)], catch_exceptions=False)
    return done.exit_code, done.output


def test_a_wrong_request(tmp_path: Path) -> None:
    matrix = ROOT / "matrix.toml"
    code, said = workaround("pool-dedlock", matrix, "--out", tmp_path)
    assert (code, said) == (2, 'no known issue "pool-dedlock"; did you mean "pool-deadlock"?\n')
    code, said = workaround("dropped-occupancy-hint", matrix, "--out", tmp_path)
    assert code == 2
    assert said.startswith('known issue "dropped-occupancy-hint" names no workaround; pool-deadlock, ')


MATRIX = """
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = ["13.3.1", "13.4.3"]
[target]
arch = "sm_90"
[[case]]
kernel = "rmsnorm.static_persistent"
shape = [16384, 512]
dtype = "bfloat16"
occupancy = {occupancy}
allow_tma = false
latency = 10
"""
CLAIM = """
[[issue]]
id = "deadlock"
title = "never ends"
match = {{ kernel = "rmsnorm.static_persistent", occupancy = [12, 16] }}
verdict = "predicted_deadlock"
workaround = [{advice}]
"""


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("occupancy", "advice", "code", "says"),
    [
        (16, '{ occupancy = "<=8" }', 0, "✔ occupancy=8 avoids it (1 trial)"),
        (16, "{ occupancy = 24 }", 1, "✖ occupancy=24 does not avoid it: 1 of 1 trial failed"),
        (8, '{ occupancy = "<=8" }', 3, "no cell of this matrix shows it"),
    ],
)
def test_advice_is_tried_on_the_real_compilers(
    tmp_path: Path, occupancy: int, advice: str, code: int, says: str
) -> None:
    (tmp_path / "matrix.toml").write_text(MATRIX.format(occupancy=occupancy))
    (tmp_path / "known_issues.toml").write_text(CLAIM.format(advice=advice))
    answer, said = workaround("deadlock", tmp_path / "matrix.toml", "--out", tmp_path / "out")
    assert (answer, says in said) == (code, True), said
