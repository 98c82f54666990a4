"""What is left of a run that something stops: its own reports, never those of an earlier one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.judge import judge_not_run
from harness.kernels import get
from harness.model import Cell, CellResult, Judgement, Verdict
from harness.pipeline import Counters
from harness.report.reports import REPORTS
from harness.toolchain import open_store

MATRIX = """
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = ["13.3.1", "13.4.3"]

[target]
arch = ["sm_90"]

[[case]]
kernel = "rmsnorm.static_persistent"
shape = [[16384, 512]]
dtype = "bfloat16"
occupancy = [2, 16]
"""
CELLS = 4

Fault = Callable[[Sequence[Cell], Callable[[CellResult], None]], None]
Command = Callable[..., Any]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Runs the matrix, or gates it, with a fault in place of compiling; no network and no compiler."""
    store = open_store(tmp_path / "store")
    for package, versions in {"cuda-tile": ["1.5.0"], "cuda-toolkit": ["13.3.1", "13.4.3"]}.items():
        store.write_json(
            store.directory("index") / f"{package}.json", {"versions": versions, "asked_at": time.time()}
        )
    (tmp_path / "matrix.toml").write_text(MATRIX)

    def invoke(fault: Fault, *words: str | Path, name: str = "run", out: Path = tmp_path / "out") -> Any:
        def run_cells(
            lab: object, cells: Sequence[Cell], report: Callable[[CellResult], None], **_: object
        ) -> Counters:
            fault(cells, report)
            return Counters(len(cells), 0, 0)

        monkeypatch.setattr("harness.commands.run.run_cells", run_cells)
        options = ["--store", str(store.root), "--out", str(out), "--offline"]
        return CliRunner().invoke(app, [name, str(tmp_path / "matrix.toml"), *options, *map(str, words)])

    yield invoke


def finish(cells: Sequence[Cell], report: Callable[[CellResult], None]) -> None:
    for cell in cells:
        report(CellResult(cell, judge_not_run(cell, "a test")))


def interrupt(cells: Sequence[Cell], report: Callable[[CellResult], None]) -> None:
    report(CellResult(cells[0], judge_not_run(cells[0], "a test")))
    raise KeyboardInterrupt


def test_an_interrupted_run_reports_every_planned_cell(command: Command, tmp_path: Path) -> None:
    done = command(interrupt)
    assert done.exit_code == 130
    rows = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in rows] == ["not_run"] * CELLS
    assert sum("the run was interrupted" in row["summary"] for row in rows) == CELLS - 1
    assert all((tmp_path / "out" / name).is_file() for name in REPORTS)


@pytest.mark.parametrize("edited", [False, True])
def test_what_an_interrupted_run_found_counts_only_for_the_same_source(
    command: Command, edited: bool
) -> None:
    asked: list[int] = []

    def first_alone(cells: Sequence[Cell], report: Callable[[CellResult], None]) -> None:
        asked.append(len(cells))
        source = get(cells[0].case.kernel).source().sha256
        found = CellResult(cells[0], Judgement(Verdict.COMPILES, None, "."))
        report(replace(found, kernel_sha256="0" * 64 if edited else source))
        raise KeyboardInterrupt

    for _ in range(2):
        assert command(first_alone).exit_code == 130
    assert asked == [CELLS, CELLS if edited else CELLS - 1]


def test_an_interrupted_gate_cannot_tell_and_reports(command: Command, tmp_path: Path) -> None:
    done = command(interrupt, "--baseline", "13.3.1", "--candidate", "13.4.3", name="gate")
    assert done.exit_code == 130
    decision = json.loads((tmp_path / "out" / "gate.json").read_text())
    assert decision["decision"] == "cannot tell"
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == CELLS


@pytest.mark.parametrize(
    "name_and_words", [("run",), ("gate", "--baseline", "13.3.1", "--candidate", "13.4.3")]
)
def test_earlier_reports_do_not_pass_for_those_of_a_run_that_dies(
    command: Command, tmp_path: Path, name_and_words: tuple[str, ...]
) -> None:
    name, *words = name_and_words
    out = tmp_path / "out"
    out.mkdir()
    (out / "junit.xml").write_text("earlier")
    seen: list[list[str]] = []

    def look(cells: Sequence[Cell], report: Callable[[CellResult], None]) -> None:
        seen.append(sorted(p.name for p in out.iterdir() if "harness.sqlite" not in p.name))
        finish(cells, report)

    command(look, *words, name=name)
    assert seen == [["junit.xml.previous"]]
    assert (out / "junit.xml").read_text() != "earlier"
    assert not (out / "junit.xml.previous").exists()


def test_a_shard_without_cells_says_so(command: Command, tmp_path: Path) -> None:
    done = command(finish, "--shard", "1/99999999999999")
    assert done.exit_code == 0
    told = " ".join(done.output.split())
    assert "shard 1/99999999999999 holds no cell of this matrix, so there is nothing to do" in told


@pytest.mark.parametrize("when", ["recording", "reporting"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_results_on_a_disk_that_fills_up(command: Command, tmp_path: Path, when: str) -> None:
    out = tmp_path / "small"
    out.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", out], check=False).returncode:
        pytest.skip("mounting is not allowed here")

    def fill(cells: Sequence[Cell], report: Callable[[CellResult], None]) -> None:
        if when == "reporting":
            finish(cells, report)
        with (out / "ballast").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"x" * 4096)
        for cell in cells if when == "recording" else ():
            report(CellResult(cell, judge_not_run(cell, "a test " * 1000)))

    try:
        done = command(fill, out=out)
    finally:
        subprocess.run(["umount", out], check=True)
    assert done.exit_code == 3
    assert str(out) in done.output
    assert "the disk is full" in done.output or "No space left on device" in done.output
