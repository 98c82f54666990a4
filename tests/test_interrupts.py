"""A whole run on the real compilers: nothing planned is ever lost, whatever stops the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.plan import count

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]

_MATRIX = """
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = ["13.3.1", "13.4.3"]

[target]
arch = ["sm_90", "sm_120"]

[[device]]
name = "h200"
gpu = "H200"
arch = "sm_90"

[[case]]
kernel = "rmsnorm.static_persistent"
shape = [[16384, 512]]
dtype = "bfloat16"
occupancy = [2, 8, 12, 16, 24]
allow_tma = false
"""


def command(matrix: Path, out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "harness", "run", str(matrix), "--out", str(out), "-j", "1", *more]


def rows_of(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def planned(matrix: Path) -> int:
    from harness.matrix import load_matrix

    return count(load_matrix(matrix))


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    """A small matrix, and cubins that no other test has compiled: the latency is the test's own."""
    path = tmp_path / "matrix.toml"
    path.write_text(_MATRIX)
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's compilers, but a cubin cache of the test's own: linked tree, empty cache."""
    from harness.toolchain import open_store

    shared, own = open_store().root, tmp_path / "store"
    own.mkdir()
    for entry in shared.iterdir() if shared.is_dir() else ():
        if entry.name != "cache":
            (own / entry.name).symlink_to(entry)
    monkeypatch.setenv("HARNESS_STORE", str(own))


def children(token: str) -> list[str]:
    """Command lines of live processes that mention `token`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if token in line and int(pid) != os.getpid():
            found.append(line)
    return found


def wait_for_results(out: Path, at_least: int) -> None:
    import sqlite3

    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        try:
            with sqlite3.connect(f"file:{out / 'harness.sqlite'}?mode=ro", uri=True) as connection:
                if connection.execute("select count(*) from result").fetchone()[0] >= at_least:
                    return
        except sqlite3.Error:
            pass
        time.sleep(0.05)
    pytest.fail("no results were recorded in time")


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGINT, "interrupted"),
        (signal.SIGTERM, "stopped by SIGTERM"),
        (signal.SIGHUP, "stopped by SIGHUP"),
    ],
)
def test_a_signal_reports_every_planned_cell_and_the_next_run_goes_on(
    matrix: Path, tmp_path: Path, number: signal.Signals, said: str
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(matrix, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_results(out, 2)
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said in complaint
    rows = rows_of(out)
    assert len(rows) == planned(matrix)
    assert any(r["verdict"] == "not_run" for r in rows)
    assert any(r["verdict"] == "compiles" for r in rows)
    assert not children(str(tmp_path))

    again = subprocess.run(command(matrix, out), capture_output=True, text=True, timeout=500, check=False)
    assert again.returncode == 1
    assert "an earlier run was interrupted" in again.stdout
    rows = rows_of(out)
    assert len(rows) == planned(matrix)
    assert not any(r["verdict"] == "not_run" for r in rows)
    assert {r["verdict"] for r in rows} == {"compiles", "predicted_deadlock", "skipped"}


@pytest.mark.usefixtures("store")
def test_sigterm_lets_a_gate_report_that_it_cannot_tell(matrix: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--baseline", "13.3.1", "--candidate", "13.4.3", "--out", str(out), "-j", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "gate", str(matrix), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_results(out, 2)
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "stopped by SIGTERM" in complaint
    assert json.loads((out / "gate.json").read_text())["decision"] == "cannot tell"
    assert len(rows_of(out)) == planned(matrix)
    assert not children(str(tmp_path))


@pytest.mark.usefixtures("store")
def test_a_warm_store_needs_no_writing(matrix: Path, tmp_path: Path) -> None:
    """Compilers and cubins on a file system that is then mounted read-only, as in a container image."""
    from harness.toolchain import open_store

    shared, own = Path(os.environ["HARNESS_STORE"]), tmp_path / "image"
    own.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", own, own], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        for name in ("backends", "components", "frontends", "index", "locked"):
            (own / name).symlink_to((shared / name).resolve())
        cold = subprocess.run(
            command(matrix, tmp_path / "cold", "--store", str(own)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert cold.returncode == 1, cold.stderr
        subprocess.run(["mount", "-o", "remount,ro,bind", own], check=True)
        assert not open_store(own).writable
        warm = subprocess.run(
            command(matrix, tmp_path / "warm", "--store", str(own)),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        subprocess.run(["umount", own], check=True)
    assert warm.returncode == 1, warm.stderr
    verdicts = [[row["verdict"] for row in rows_of(tmp_path / name)] for name in ("cold", "warm")]
    assert verdicts[0] == verdicts[1]


@pytest.mark.usefixtures("store")
def test_sigkill_leaves_no_process_and_the_next_run_goes_on(matrix: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(command(matrix, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_results(out, 2)
    process.kill()
    process.wait(timeout=30)
    deadline = time.monotonic() + 20
    while children(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not children(str(tmp_path))

    again = subprocess.run(command(matrix, out), capture_output=True, text=True, timeout=500, check=False)
    assert again.returncode == 1, again.stderr
    assert "an earlier run was interrupted" in again.stdout
    assert len(rows_of(out)) == planned(matrix)
