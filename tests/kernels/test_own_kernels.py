"""A kernel of the reader's own, with nothing but the page about it: docs/kernels.md is what is tested."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.commands.new_kernel import write_kernel
from harness.execute.launches import launch_of, nothing_to_launch
from harness.execute.protocol import ArrayValue, ScalarValue, Timeouts
from harness.kernels import get
from harness.matrix import load_matrix
from harness.matrix.expand import is_own
from harness.matrix.words import DTYPES, VALUES
from harness.model import HINT_NAMES, Array, Constant, Inspection, ScalarParameter
from harness.plan import plan

PAGE = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()
KERNEL, MATRIX, FURTHER, DEVICE = re.findall(r"```(?:python|toml)\n(.*?)```", PAGE, re.DOTALL)
INSPECTION = Inspection("double", "sm_90", 32, 128, 0, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "double.py").write_text(KERNEL)
    (tmp_path / "matrix.toml").write_text(MATRIX)
    head, _, _ = MATRIX.partition("[[case]]")
    (tmp_path / "device.toml").write_text(head + DEVICE)
    return tmp_path


def test_the_page_counts_its_cells(folder: Path) -> None:
    cells = list(plan(load_matrix(folder / "matrix.toml")))
    assert len(cells) == 2**5
    assert {cell.case.hints.opt_level for cell in cells} == {None}
    assert len(MATRIX.splitlines()) < 20 and len(KERNEL.splitlines()) <= 10


def test_parameters_without_a_shape_assume_alignment_and_no_extents(folder: Path) -> None:
    cell = next(plan(load_matrix(folder / "matrix.toml")))
    assert get(cell.case.kernel, folder).specialise(cell.case).parameters == (
        Array("x", "float32", (None,), (1,), (1,), (1,)),
        Array("y", "float32", (None,), (1,), (1,), (1,)),
        ScalarParameter("n", "int32"),
        Constant("TILE", 128),
    )


def test_every_kind_of_parameter_is_shown(folder: Path) -> None:
    (folder / "k.py").write_text("import cuda.tile as ct\n\n@ct.kernel\ndef k(xs, pair, RELU, EPS): ...\n")
    head, _, _ = MATRIX.partition("[[case]]")
    (folder / "further.toml").write_text(f'{head}[[case]]\nkernel = "k.py:k"\ndtype = "float32"\n{FURTHER}')
    first, second = load_matrix(folder / "further.toml").cases
    assert [type(parameter).__name__ for parameter in first.parameters] == [
        "ArrayList",
        "TupleParameter",
        "Constant",
        "Constant",
    ]
    assert [case.knobs for case in (first, second)] == [(("EPS", 1e-5), ("RELU", r)) for r in (True, False)]


def test_the_page_names_every_word() -> None:
    whole = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (16, 32)]
    for word in (*DTYPES, *VALUES, *HINT_NAMES, "inout"):
        assert word in whole or re.search(rf"\b{word}\b", PAGE), word


def test_a_case_with_a_grid_is_launched_as_it_says(folder: Path) -> None:
    matrix = load_matrix(folder / "device.toml")
    cell = next(cell for cell in plan(matrix) if cell.device is not None)
    kernel = get(cell.case.kernel, folder)
    assert nothing_to_launch(cell.case, kernel, 132) is None
    launch = launch_of(cell, kernel, INSPECTION, folder / "a.cubin", "c" * 64, 132, Timeouts())
    assert launch.grid == (32, 1, 1)
    assert launch.reference is not None and launch.reference.expressions == (("y", "x + x"),)
    assert launch.relations == ()
    assert launch.arguments == (
        ArrayValue("x", "float32", (4096,), (1,), 0, "in", "normal"),
        ArrayValue("y", "float32", (4096,), (1,), 0, "out", "normal"),
        ScalarValue("n", "int32", 4096),
    )
    parameters = kernel.specialise(cell.case).parameters
    assert parameters[0] == Array("x", "float32", (None,), (16,), (1,), (1,))


def test_a_case_without_a_grid_says_that_it_has_none(folder: Path) -> None:
    cell = next(plan(load_matrix(folder / "matrix.toml")))
    told = nothing_to_launch(cell.case, get(cell.case.kernel, folder), 132)
    assert told == "kernel double.py:double does not say its launch grid"
    assert nothing_to_launch(cell.case, get(cell.case.kernel, folder), None) == told, "without a GPU, too"


def test_the_template_is_a_matrix_that_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert write_kernel("softmax", tmp_path) == 0
    matrix = load_matrix(tmp_path / "softmax" / "matrix.toml")
    assert all(is_own(case.kernel) and case.run is not None for case in matrix.cases)
    assert write_kernel("softmax", tmp_path) == 2
    assert "is there already" in capsys.readouterr().err
    assert write_kernel("class", tmp_path) == 2
    assert not (tmp_path / "class").exists()


@pytest.mark.toolchain
@pytest.mark.timeout(600)
def test_the_page_leads_from_nothing_to_verdicts(folder: Path) -> None:
    command = [sys.executable, "-m", "harness", "run", "matrix.toml"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "32 cells" in ended.stdout


@pytest.mark.toolchain
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("ct.load(", "line 7: tile = ct.lod("),
        ("import cuda.tile as ct", "line 1: import cuda.tiles as ct"),
        ("tile + tile)", "line 8"),
    ],
)
def test_an_error_shows_the_readers_line(folder: Path, broken: str, said: str) -> None:
    worse = {"ct.load(": "ct.lod(", "tile + tile)": "tile @@ tile)"}.get(broken, "import cuda.tiles as ct")
    (folder / "double.py").write_text(KERNEL.replace(broken, worse))
    command = [sys.executable, "-m", "harness", "run", "matrix.toml", "-q"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 1
    assert said in re.sub(r"\s+", " ", ended.stdout)
