"""The deadlock, reduced on the real compilers without a GPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.commands.reduce import Options, reduce_command
from harness.commands.run import Options as RunOptions
from harness.commands.run import run_matrix
from harness.model import CellResult, Hints, Verdict
from harness.reduce.engine import End
from harness.reduce.reduced import Reduced
from harness.store import Store
from harness.toolchain import open_store

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(900)]

MATRIX = """
[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = ["13.3.1", "13.4.3"]

[target]
arch = ["sm_90", "sm_120"]

[[case]]
kernel = "rmsnorm.static_persistent"
shape = [[16384, 512]]
dtype = "bfloat16"
occupancy = 16
allow_tma = false
"""
INSTALLED = ("components", "frontends", "backends", "locked", "index")


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX)
    return path


@pytest.fixture
def cold_cubins(tmp_path: Path) -> Path:
    """A store whose toolchains are installed and that remembers no compile."""
    shared, own = open_store().root, tmp_path / "store"
    own.mkdir()
    for name in INSTALLED:
        if (shared / name).exists():
            (own / name).symlink_to(shared / name, target_is_directory=True)
    return own


def record(folder: Path) -> Reduced:
    return Reduced.from_json(json.loads((folder / "reduced.json").read_text()))


def judged_again(folder: Path) -> dict[str, CellResult]:
    """Verdicts of the matrix that lies beside the reduced kernel, by cuda-toolkit."""
    out = folder / "check"
    run_matrix(folder / "matrix.toml", RunOptions(out=out, quiet=True))
    with Store.open(out) as results:
        return {r.cell.toolchain.cuda_toolkit: r for r in results.results(results.runs()[0].id)}


def test_the_deadlock_within_ten_minutes_and_to_at_most_eight_statements(
    tmp_path: Path, matrix: Path, cold_cubins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On two jobs, nothing remembered; the good toolchain is found in the results of the run."""
    out, to = tmp_path / "out", tmp_path / "reduced"
    assert run_matrix(matrix, RunOptions(out=out, quiet=True)) == 1
    begun = time.monotonic()
    options = Options(out, to, cold_cubins, jobs=2)
    assert reduce_command("13.3.1 sm_120", options) == 0
    assert time.monotonic() - begun < 600
    reduced = record(to)
    assert reduced.end is End.COMPLETE
    assert reduced.statements <= 8
    assert (reduced.verdict, reduced.toolchain.cuda_toolkit) == ("predicted_deadlock", "13.3.1")
    assert reduced.good is not None and reduced.good.cuda_toolkit == "13.4.3"
    seen = judged_again(to)
    assert seen["13.3.1"].verdict is Verdict.PREDICTED_DEADLOCK
    assert seen["13.3.1"].judgement.signature == reduced.signature
    assert seen["13.4.3"].verdict is Verdict.COMPILES
    said = capsys.readouterr().out
    assert "every candidate must also be good on" in said and reduced.text in said
    assert [array.name for array in reduced.arrays] == [p.name for p in reduced.parameters]


def test_one_job_and_two_come_to_the_same(tmp_path: Path, matrix: Path) -> None:
    """On a shared store: the second search asks what the first did, and is told from memory."""
    found = []
    for jobs in (1, 2):
        to = tmp_path / f"jobs{jobs}"
        assert (
            reduce_command("13.3.1 sm_90", Options(tmp_path, to, matrix=matrix, jobs=jobs, good="13.4.3"))
            == 0
        )
        found.append(replace(record(to), seconds=0))
    assert found[0] == found[1]


def test_another_fault_can_be_named(tmp_path: Path, matrix: Path) -> None:
    """Spilled registers rather than the deadlock: what is left still has them, by the oracle's word."""
    to = tmp_path / "spills"
    options = Options(
        tmp_path, to, matrix=matrix, oracle="spill_instructions>=8", budget=120, no_good=True, jobs=2
    )
    assert reduce_command("13.4.3 sm_90", options) == 0
    reduced = record(to)
    assert reduced.oracle == "spill_instructions>=8" and reduced.good is None
    spilled = judged_again(to)["13.4.3"].inspection
    assert spilled is not None and (spilled.spill_instructions or 0) >= 8


def test_ctrl_c_keeps_the_best_so_far_and_leaves_no_process(
    tmp_path: Path, matrix: Path, cold_cubins: Path
) -> None:
    to = tmp_path / "reduced"
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from harness.cli.leave import leave
        from harness.commands.reduce import Options, reduce_command
        options = Options(Path({str(tmp_path)!r}), Path({str(to)!r}), Path({str(cold_cubins)!r}),
                          matrix=Path({str(matrix)!r}), good="13.4.3", jobs=2)
        leave(lambda: reduce_command("13.3.1 sm_90", options))
        """
    )
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdout is not None
    for line in child.stdout:
        if "source: write constants out" in line:
            break
    os.kill(child.pid, signal.SIGINT)
    said = child.communicate(timeout=60)[0]
    assert child.returncode == 130
    assert "interrupted" in said
    reduced = record(to)
    assert reduced.end is End.INTERRUPTED and reduced.verdict == "predicted_deadlock"
    assert reduced.hints != Hints()
    assert (to / "kernel.py").read_text() == reduced.text
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
    assert judged_again(to)["13.3.1"].verdict is Verdict.PREDICTED_DEADLOCK


def test_a_cell_without_a_fault_is_refused_in_one_sentence(
    tmp_path: Path, matrix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reduce_command("13.4.3 sm_90", Options(tmp_path, matrix=matrix)) == 2
    assert "shows no fault" in capsys.readouterr().err
