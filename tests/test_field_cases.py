"""Small kernels after public reports, through one matrix file alone, on the real compilers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.kernels import get
from harness.lab import Deadlines, Lab, Question
from harness.model import Case, Cell, CellResult, Toolchain
from harness.pipeline import judged

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(1800)]

FIELD = Path(__file__).parent / "resources" / "field"
TOOLKITS = ("13.1.0", "13.2.0", "13.2.2", "13.3.1", "13.4.3", "13.5.0")
OLDER_PTXAS = "older-ptxas"


class Answers:
    """The rows of a run; a question names what matters, and gets the verdicts by toolkit."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def select(self, kernel: str, **wanted: Any) -> list[dict[str, Any]]:
        found = [
            row
            for row in self.rows
            if row["kernel"].endswith(kernel)
            and row["toolchain"] != OLDER_PTXAS
            and all(row.get(key, row["hints"].get(key)) == value for key, value in wanted.items())
        ]
        assert found, f"no cell of {kernel} with {wanted}"
        return found

    def by_toolkit(self, kernel: str, **wanted: Any) -> dict[str, set[str]]:
        answers: dict[str, set[str]] = {}
        for row in self.select(kernel, **wanted):
            answers.setdefault(row["cuda_toolkit"], set()).add(row["verdict"])
        return answers


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    out = tmp_path_factory.mktemp("field")
    command = [sys.executable, "-m", "harness", "run", str(FIELD / "matrix.toml"), "--out", str(out), "-q"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return Answers([json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()])


def test_a_crash_changes_its_signature_from_release_to_release(answers: Answers) -> None:
    for arch in ("sm_90", "sm_120"):
        found = {row["cuda_toolkit"]: row for row in answers.select("in_place", arch=arch)}
        for toolkit in ("13.1.0", "13.2.0", "13.2.2"):
            assert found[toolkit]["verdict"] == "unsupported"
            assert "load_advanced_indexing requires tileiras 13.3" in found[toolkit]["summary"]
        assert "SIGSEGV, without a word" in found["13.3.1"]["summary"]
        for toolkit in ("13.4.3", "13.5.0"):
            assert found[toolkit]["verdict"] == "compiler_crash"
            assert "exit code 5" in found[toolkit]["summary"]
            assert "ptxas was never called" in found[toolkit]["summary"]
        control = answers.by_toolkit("apart", arch=arch)
        assert {control[toolkit] == {"compiles"} for toolkit in ("13.3.1", "13.4.3", "13.5.0")} == {True}


def test_an_internal_error_of_the_frontend_hangs_on_the_frontend_alone(answers: Answers) -> None:
    for row in answers.select("countdown"):
        if row["cuda_tile"] in ("1.3.0", "1.4.0", "1.5.0"):
            assert row["verdict"] == "frontend_error"
            assert row["signature"].startswith("frontend_error/cuda-tile/internal: KeyError")
        else:
            assert row["verdict"] == "compiles" or "Cannot find option named" in row["summary"]


def test_a_mended_regression_hangs_on_architecture_and_level(answers: Answers) -> None:
    for level in (0, 1, 3):
        found = answers.by_toolkit("indirect", opt_level=level, arch="sm_120")
        bad = {"compiler_crash"} if level else {"compiles"}
        assert found == {
            toolkit: bad if toolkit.startswith("13.2.") else {"compiles"} for toolkit in TOOLKITS
        }
        elsewhere = answers.by_toolkit("indirect", opt_level=level, arch="sm_100")
        assert set.union(*elsewhere.values()) == {"compiles"}


def test_a_fault_hangs_on_what_the_signature_assumes(answers: Answers) -> None:
    for level in (0, 1, 3):
        found = answers.by_toolkit("clear", opt_level=level)
        affected = {"compiles", "compiler_crash"} if level else {"compiles"}
        assert found["13.2.0"] == found["13.2.2"] == affected
        assert found["13.3.1"] == found["13.4.3"] == found["13.5.0"] == {"compiles"}


def test_a_fault_hangs_on_the_element_type(answers: Answers) -> None:
    later = TOOLKITS[1:]
    found = answers.by_toolkit("minus_infinity", dtype="float8_e4m3fn")
    assert {toolkit: found[toolkit] for toolkit in later} == {key: {"compiler_crash"} for key in later}
    for kernel in ("minus_infinity", "nothing"):
        for dtype in ("float8_e5m2", "bfloat16"):
            fine = answers.by_toolkit(kernel, dtype=dtype)
            assert {toolkit: fine[toolkit] for toolkit in later} == {key: {"compiles"} for key in later}
    fine = answers.by_toolkit("nothing", dtype="float8_e4m3fn")
    assert {toolkit: fine[toolkit] for toolkit in later} == {key: {"compiles"} for key in later}


def test_an_architecture_is_refused_in_three_ways_and_none_is_a_fault(answers: Answers) -> None:
    first = {"sm_75": None, "sm_86": "13.2.0", "sm_90": "13.3.1", "sm_107": "13.4.3", "sm_120": "13.1.0"}
    for arch, since in first.items():
        supported = TOOLKITS[TOOLKITS.index(since) :] if since else ()
        assert answers.by_toolkit("vector_sum", arch=arch) == {
            toolkit: {"compiles"} if toolkit in supported else {"unsupported"} for toolkit in TOOLKITS
        }
    suffixed = answers.select("vector_sum", arch="sm_121a")
    assert {row["verdict"] for row in suffixed} == {"unsupported"}
    assert {row["evidence"]["error_type"] for row in suffixed} == {"ValueError"}
    assert all("sm_121a" in row["summary"] for row in suffixed)


def test_a_compile_without_end_begins_at_a_tile_of_four_rows(answers: Answers) -> None:
    for tile, toolkit, verdict in (
        (2, "13.2.0", "compiles"),
        (2, "13.3.1", "compiles"),
        (4, "13.2.0", "compile_timeout"),
        (4, "13.3.1", "compile_timeout"),
        (16, "13.2.0", "compile_timeout"),
        (16, "13.3.1", "compile_timeout"),
        (4, "13.4.3", "compiles"),
        (16, "13.4.3", "compiles"),
    ):
        (row,) = answers.select("static_persistent", tile_m=tile, cuda_toolkit=toolkit)
        assert row["verdict"] == verdict, (tile, toolkit)
        if verdict == "compile_timeout":
            assert row["component"] == "tileiras"
            assert "tileiras held the CPU for" in row["summary"]
            assert "memory" in row["summary"]


def test_an_older_ptxas_breaks_the_toolchain_and_no_kernel_is_blamed(answers: Answers) -> None:
    rows = [row for row in answers.rows if row["toolchain"] == OLDER_PTXAS]
    broken = [row for row in rows if row["verdict"] != "unsupported"]
    assert {row["verdict"] for row in broken} == {"toolchain_broken"}
    assert {row["kernel"] for row in broken} == {row["kernel"] for row in rows}
    assert {row["component"] for row in broken} == {"ptxas"}
    for row in broken:
        assert "mixes tileiras 13.4.92, nvvm 13.4.92, ptxas 13.2.51" in row["summary"]
    assert len({row["signature"] for row in broken if row["arch"] != "sm_107"}) == 1


def test_no_summary_names_a_directory_of_one_run(answers: Answers) -> None:
    assert not [row["summary"] for row in answers.rows if "tile-harness-" in row["summary"]]


# --- a broken tree ----------------------------------------------------------------------------


CHAIN = Toolchain("broken", "1.7.0", "13.4.3")
KERNELS = ("vector_sum.py:vector_sum", "countdown.py:countdown")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(deadlines=Deadlines(compile=60)) as lab:
        yield lab


def examine(lab: Lab, kernel: str, arch: str = "sm_90") -> CellResult:
    from harness.matrix import load_matrix

    cases: tuple[Case, ...] = load_matrix(FIELD / "matrix.toml").cases
    case = next(case for case in cases if case.kernel == kernel)
    question = Question(CHAIN, arch, get(kernel, FIELD).specialise(case))
    components = lab.provisioner.backend(CHAIN).components
    return judged(Cell(CHAIN, arch, case), lab.examine(question), components)


@pytest.mark.parametrize(
    ("piece", "said"),
    [("bin/ptxas", "its ptxas is missing"), ("lib/libnvvm.so.4", "its libnvvm is missing")],
)
def test_a_missing_piece_breaks_the_toolchain_for_every_kernel(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: str, said: str
) -> None:
    whole = lab.provisioner.backend(CHAIN)
    tree = tmp_path / "tree"
    shutil.copytree(whole.root, tree, copy_function=os.link)
    for name in (piece, "nvvm/lib64/libnvvm.so") if "libnvvm" in piece else (piece,):
        (tree / name).unlink(missing_ok=True)
    tileiras = replace(whole.tileiras, sha256=f"without {piece}")
    broken = replace(whole, root=str(tree), tileiras=tileiras)
    monkeypatch.setattr(lab.provisioner, "backend", lambda toolchain: broken)
    results = [examine(lab, kernel) for kernel in KERNELS]
    assert {str(result.verdict) for result in results} == {"toolchain_broken"}
    assert len({result.judgement.signature for result in results}) == 1
    assert all(said in result.judgement.summary for result in results)
