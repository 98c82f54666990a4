"""`num_worker_warps`, the hint that came after cells had ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from made_results import Maker

from harness.cases import draw
from harness.kernels import get
from harness.known_issues.entry import facts
from harness.matrix import load_matrix
from harness.matrix.write import case_table
from harness.model import Case, Cell, Hints, Toolchain
from harness.report.jsonl import result_of, row
from harness.report.table import grids
from harness.repro.kernel_text import kernel_text

HEAD = """\
[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = "13.5.0"
[target]
arch = "sm_90"
[[case]]
kernel = "rmsnorm.tiled"
"""


def test_it_is_an_axis(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(HEAD + 'shape = [1, 8]\ndtype = "float32"\nnum_worker_warps = ["default", 8]\n')
    plain, eight = load_matrix(path).cases
    assert (plain.hints, eight.hints) == (Hints(), Hints(num_worker_warps=8))
    assert "num_worker_warps" not in case_table(plain) and case_table(eight)["num_worker_warps"] == 8
    path.write_text(HEAD + "num_worker_warps = [4, 8]\ngenerate = {count = 12}\n")
    assert {case.hints.num_worker_warps for case in draw(load_matrix(path).generators[0])} <= {4, 8}


def test_a_cell_without_it_keeps_its_id() -> None:
    case = Case("rmsnorm.tiled", (1, 2), "int8", Hints(occupancy=4))
    assert Cell(Toolchain("a", "1", "2"), "sm_90", case).id == "d392c891cc66"
    assert "num_worker_warps" not in case.settings
    assert "num_worker_warps" not in get(case.kernel).specialise(case).to_json()["hints"]


def test_it_comes_back_and_is_told(make: Maker) -> None:
    plain = make.cell(occupancy=None)
    eight = replace(plain, case=replace(plain.case, hints=Hints(num_worker_warps=8)))
    assert Cell.from_json(eight.to_json()) == eight
    back = result_of(row(make.result(eight)), {}).cell.case
    assert (back.hints, back.knobs) == (eight.case.hints, eight.case.knobs)
    (grid,) = grids([make.result(plain), make.result(eight)])
    assert (grid.axes, grid.rows) == (("num_worker_warps",), (("default",), ("8",)))
    assert [facts(cell, {})["num_worker_warps"] for cell in (plain, eight)] == [(None,), (8,)]


def test_a_repro_has_it_in_its_decorator() -> None:
    text = "import cuda.tile as ct\n\n@ct.kernel(occupancy=2)\ndef k(x): ...\n"
    made, _ = kernel_text(text, "k", Hints(num_worker_warps=8))
    assert made.startswith("@ct.kernel(occupancy=2, num_worker_warps=8)\n")
