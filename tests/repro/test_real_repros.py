"""Repros made, verified and written up with the real compilers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.commands.repro import NewOptions, issue_command, new_command, verify_command
from harness.commands.run import Options, run_matrix
from harness.repro.spec import SPEC_FILE, Status, load, load_all

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(900)]

SHIPPED = Path(__file__).parents[2] / "repros"
QUICK = ("register-pool-deadlock", "carried-scalar", "fp8-negative-infinity-padding")

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
latency = 10
"""


@pytest.mark.parametrize("name", QUICK)
def test_a_shipped_repro_does_what_it_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_command((name,), SHIPPED, None, offline=False, as_json=True) == 0
    checks = json.loads(capsys.readouterr().out)
    assert {check["way"] for check in checks} >= {"kernel", "script"}
    assert all(check["held"] for check in checks)
    bad = [check for check in checks if check["way"] == "script" and check["claim"] == "bad"]
    assert bad and all(check["seen"].startswith("SYMPTOM: ") for check in bad)


@pytest.mark.parametrize(
    ("truth", "lie"),
    [
        ("[[good]]", "[[bad]]"),
        ("[[bad]]", "[[good]]"),
        ('verdict = "predicted_deadlock"', 'verdict = "compiler_crash"'),
        ('identity = "predicted_deadlock/', 'identity = "predicted_deadlock/never/'),
    ],
)
def test_a_repro_made_to_lie_fails(tmp_path: Path, truth: str, lie: str) -> None:
    folder = tmp_path / "register-pool-deadlock"
    shutil.copytree(SHIPPED / folder.name, folder)
    path = folder / SPEC_FILE
    text = path.read_text()
    assert truth in text
    first = text.index("[[good]]")
    swapped = text.replace(truth, lie, 1) if truth != "[[bad]]" else _last_bad_as_good(text, first)
    path.write_text(swapped)
    assert verify_command((), tmp_path, None, offline=False, as_json=False) == 1


def _last_bad_as_good(text: str, first_good: int) -> str:
    at = text.rindex("[[bad]]", 0, first_good)
    return text[:at] + "[[good]]" + text[at + len("[[bad]]") :]


def test_other_bytecode_than_claimed_fails(tmp_path: Path) -> None:
    folder = tmp_path / "register-pool-deadlock"
    shutil.copytree(SHIPPED / folder.name, folder)
    (folder / "kernel.sm_90.tileirbc").write_bytes(b"not bytecode")
    assert verify_command((), tmp_path, None, offline=False, as_json=False) == 1


def test_from_a_run_to_an_issue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "matrix.toml").write_text(MATRIX)
    out, repros = tmp_path / "out", tmp_path / "repros"
    assert run_matrix(tmp_path / "matrix.toml", Options(out=out, jobs=1, quiet=True)) == 1
    options = NewOptions(out=out, name="deadlock", repros=repros)
    assert new_command("13.3.1 sm_90", options) == 0
    (repro,) = load_all(repros)
    assert repro.status is Status.FIXED and repro.verdict == "predicted_deadlock"
    assert [place.toolchain.cuda_toolkit for place in repro.bad if place.toolchain] == ["13.3.1"]
    assert [place.toolchain.cuda_toolkit for place in repro.good if place.toolchain] == ["13.4.3"]
    assert {path.name for path in repro.bytecode} == {"kernel.sm_90.tileirbc", "kernel.sm_120.tileirbc"}
    assert "setmaxnreg" in (repro.folder / "kernel.ptx").read_text()
    assert load(repro.folder) == repro
    capsys.readouterr()

    again = NewOptions(out=out, name="another", repros=repros)
    assert new_command("13.3.1 sm_120", again) == 1
    assert "is about this finding already" in capsys.readouterr().err
    assert verify_command((), repros, None, offline=False, as_json=False) == 0
    capsys.readouterr()

    assert issue_command("deadlock", repros, None, None, offline=False) == 0
    said = capsys.readouterr()
    assert "SYMPTOM: sm_90: 24 registers" in said.out and "tileiras 13.3.36" in said.out
    assert "https://github.com/NVIDIA/cutile-python/issues/new?template=01-bug-report.yml" in said.err
    assert str(tmp_path) not in said.out
