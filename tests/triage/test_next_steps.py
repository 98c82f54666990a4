"""The matrix and the commands that a triage hands over."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.arrays import aligned
from harness.matrix import load_matrix
from harness.model import Case, Cell, Constant, Hints, RunSettings, ScalarParameter, Toolchain
from harness.plan import plan
from harness.triage.look import FoundKernel, FoundLaunch, FoundParameter
from harness.triage.next_steps import launch_settings, matrix_text, renamed, run_command
from harness.triage.signatures import Signature
from harness.triage.usage import Usage

ARRAY = {"kind": "array", "dtype": "float16", "shape": [256, 64], "strides": [64, 1], "offset": 0}
NUMBER = {"kind": "scalar", "dtype": "int32", "value": 7}
PARAMETERS = (
    aligned("x", "float16", 2),
    aligned("y", "float16", 2),
    ScalarParameter("n", "int32"),
    Constant("T", 7),
)
USED = {"x": Usage(read=True), "y": Usage(written=True)}


def signature(*arguments: dict[str, object], grid: tuple[int, ...] = (8, 2)) -> Signature:
    names = tuple(FoundParameter(p.name, "") for p in PARAMETERS)
    return Signature(FoundKernel("k", "k", 1, names), PARAMETERS, "launch", FoundLaunch(grid, arguments))


def test_a_launch_becomes_a_matrix_that_runs_it(tmp_path: Path) -> None:
    run = launch_settings(signature(ARRAY, ARRAY, NUMBER, NUMBER), USED)
    assert isinstance(run, RunSettings)
    assert run.grid == (8, 2, 1)
    assert [(a.name, a.shape, a.role) for a in run.arguments] == [
        ("x", (256, 64), "in"),
        ("y", (256, 64), "out"),
        ("n", (), "inout"),
    ]
    case = Case("elsewhere.py:k", (), "float16", Hints(occupancy=4), (("T", 7),), parameters=PARAMETERS)
    cell = renamed(Cell(Toolchain("t", "1.7.0", "13.5.0"), "sm_90", case), "k.py", run)
    (tmp_path / "k.py").write_text("")
    (tmp_path / "matrix.toml").write_text(matrix_text("k", [cell], 15.0, on_device=True))
    loaded = list(plan(load_matrix(tmp_path / "matrix.toml")))
    assert any(other.device is not None for other in loaded)
    for other in loaded:
        assert other.case.parameters == cell.case.parameters
        assert other.case.run == run
        assert other.case.hints == cell.case.hints


def test_the_cell_in_the_commands_is_one_of_the_matrix(tmp_path: Path) -> None:
    run = launch_settings(signature(ARRAY, ARRAY, NUMBER, NUMBER), USED)
    case = Case("elsewhere.py:k", (), "float16", Hints(), (("T", 7),), parameters=PARAMETERS)
    chain = Toolchain("tile1.7.0-ctk13.5.0", "1.7.0", "13.5.0")
    cell = renamed(Cell(chain, "sm_90", case), "k.py", run)
    (tmp_path / "k.py").write_text("")
    (tmp_path / "matrix.toml").write_text(matrix_text("k", [cell], 15.0))
    assert [other.id for other in plan(load_matrix(tmp_path / "matrix.toml"))] == [cell.id]


def test_what_no_matrix_can_tell_is_left_out() -> None:
    sliced = {**ARRAY, "strides": [128, 1]}
    assert launch_settings(signature(sliced, ARRAY, NUMBER, NUMBER), USED) is None
    assert launch_settings(signature(ARRAY, {**ARRAY, "offset": 1}, NUMBER, NUMBER), USED) is None


def test_commands_work_from_anywhere() -> None:
    command = run_command(Path("results/triage/k"), Path("store"))
    here = Path.cwd()
    assert f"run {here}/results/triage/k/matrix.toml" in command
    assert command.endswith(f"--store {here}/store")
