"""The result store: what it keeps, what it survives, what it says when it cannot."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import Maker

from harness.command_line import scrub
from harness.judge import judge_not_run
from harness.model import Cell, CellResult, Judgement, Verdict
from harness.store import FILE_NAME, Store, StoreError
from harness.store_file import SCHEMA_VERSION


def not_run(cell: Cell) -> CellResult:
    return CellResult(cell, judge_not_run(cell, "interrupted"))


def test_keeps_results_whole_and_in_order(tmp_path: Path, make: Maker) -> None:
    cells = [make.cell(occupancy=k) for k in (None, 2, 16)]
    results = [make.answer(cell) for cell in cells]
    with Store.open(tmp_path) as store:
        run = store.start_run(
            "m", cells, argv=["run", "matrix.toml"], versions={"harness": "1"}, host={"os": "x"}
        )
        for result in reversed(results):
            store.record(run, result)
        store.finish_run(run)
    with Store.open(tmp_path) as store:
        assert store.results(run) == results
        assert store.planned_cells(run) == cells
        (kept,) = store.runs("m")
        assert (kept.argv, kept.versions, kept.host) == (
            ("run", "matrix.toml"),
            {"harness": "1"},
            {"os": "x"},
        )
        assert kept.finished is not None


def test_any_text_can_be_kept(tmp_path: Path, make: Maker) -> None:
    said = "half \ud800 a pair \x00 and \x1b[31m"
    cell = make.cell()
    judged = Judgement(Verdict.COMPILE_ERROR, said, said, said, {said: [said]})
    with Store.open(tmp_path) as store:
        run = store.start_run("m", [cell])
        store.record(run, CellResult(cell, judged, observation={"said": said}))
        (kept,) = store.results(run)
        store.sightings()
    assert kept.cell == cell
    shown = "half \\ud800 a pair \\x00 and \\x1b[31m"
    assert kept.judgement == Judgement(Verdict.COMPILE_ERROR, shown, shown, shown, {shown: [shown]})
    assert kept.observation == {"said": shown}


def test_a_result_that_cannot_be_written_down_is_an_infra_error(tmp_path: Path, make: Maker) -> None:
    cells = [make.cell(occupancy=k) for k in (2, 16)]
    odd = replace(make.answer(cells[0]), observation={"odd": object()})
    with Store.open(tmp_path) as store:
        run = store.start_run("m", cells)
        store.record(run, odd)
        store.record(run, make.answer(cells[1]))
        kept = store.results(run)
    assert [result.cell for result in kept] == cells
    assert kept[0].verdict is Verdict.INFRA_ERROR
    assert kept[0].judgement.summary.startswith(
        "the result of this cell cannot be recorded: TypeError: Object of type object"
    )


def test_planned_equals_reported(tmp_path: Path, make: Maker) -> None:
    cells = [make.cell(occupancy=k) for k in (None, 2, 16)]
    with Store.open(tmp_path) as store:
        run = store.start_run("m", cells)
        store.record(run, make.answer(cells[1]))
        assert store.missing_cells(run) == [cells[0], cells[2]]
        closed = store.close_run(run, not_run)
        assert [result.verdict for result in closed] == [Verdict.NOT_RUN] * 2
        assert [result.cell for result in store.results(run)] == cells
        assert store.missing_cells(run) == []


def test_an_interrupted_run_is_taken_up(tmp_path: Path, make: Maker) -> None:
    cells = [make.cell(occupancy=k) for k in (None, 2, 16)]
    with Store.open(tmp_path) as store:
        first = store.start_run("m", cells, versions={"harness": "1"})
        store.record(first, make.answer(cells[0]))
        second = store.start_run("m", cells, versions={"harness": "1"})
        store.record(second, make.answer(cells[2]))
        store.close_run(second, not_run)
        store.start_run("m", cells, versions={"harness": "1"})
        assert set(store.finished_cells("m", {"harness": "1"})) == {cells[0].id, cells[2].id}
        assert store.finished_cells("m", {"harness": "2"}) == {}
        assert store.finished_cells("other") == {}


def test_a_finished_run_is_not_taken_up(tmp_path: Path, make: Maker) -> None:
    cell = make.cell()
    with Store.open(tmp_path) as store:
        store.record(store.start_run("m", [cell]), make.answer(cell))
        done = store.start_run("m", [cell])
        store.record(done, make.answer(cell))
        store.finish_run(done)
        assert store.finished_cells("m") == {}


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from made_results import Maker
from harness.store import Store
make = Maker()
with Store.open(Path(sys.argv[1])) as store:
    cells = [make.cell(shape=(rows, 512)) for rows in range(1, int(sys.argv[3]))]
    run = store.start_run(sys.argv[4], cells)
    for cell in cells:
        store.record(run, make.answer(cell))
        print(run, flush=True)
    store.finish_run(run)
"""


def writer(out: Path, count: int, matrix: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(out), str(Path(__file__).parent), str(count), matrix],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_survives_kill_9(tmp_path: Path) -> None:
    process = writer(tmp_path, 2000, "m")
    assert process.stdout is not None
    seen = 0
    for line in process.stdout:
        run, seen = line.strip(), seen + 1
        if seen == 25:
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    with Store.open(tmp_path) as store:
        assert len(store.results(run)) >= 25
        assert len(store.finished_cells("m")) == len(store.results(run))
        assert store.missing_cells(run)


def test_two_processes_write_to_their_own_runs(tmp_path: Path) -> None:
    processes = [writer(tmp_path, 60, name) for name in ("one", "two")]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with Store.open(tmp_path) as store:
        for name in ("one", "two"):
            (run,) = store.runs(name)
            assert len(store.results(run.id)) == 59


def test_newer_schema_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError) as failure:
        Store.open(tmp_path)
    assert str(failure.value) == (
        f"The result store {tmp_path / FILE_NAME} was written by a newer harness "
        "(schema 2, this one knows 1): upgrade the harness or choose another directory with --out."
    )


def test_full_disk(tmp_path: Path, make: Maker) -> None:
    with Store.open(tmp_path) as store:
        run = store.start_run("m", [])
        store._connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StoreError) as failure:
            for rows in range(1, 100):
                store.record(run, make.answer(make.cell(shape=(rows, 512))))
    assert str(failure.value) == (
        f"The result store {tmp_path / FILE_NAME} cannot be written because the disk is full: "
        "free some space or choose another directory with --out."
    )


def test_without_write_permission(tmp_path: Path, make: Maker) -> None:
    with Store.open(tmp_path) as store:
        store._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreError) as failure:
            store.start_run("m", [])
    assert str(failure.value) == (
        f"The result store {tmp_path / FILE_NAME} cannot be written for lack of permission: "
        "allow it or choose another directory with --out."
    )


def test_out_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(StoreError, match=r"cannot be opened: choose another directory with --out\.$"):
        Store.open(tmp_path / "out")


def test_damaged_file(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not a database " * 100)
    with pytest.raises(StoreError, match=r"is damaged \(file is not a database\): move it away"):
        Store.open(tmp_path)


def test_command_lines_are_scrubbed() -> None:
    home = str(Path.home())
    words = ["run", f"{home}/m.toml", "--token", "abc", "--api-key=xyz", "ftp://u:p@host/x", "PASSWORD=1"]
    shown = "run ~/m.toml --token *** --api-key=*** ftp://***@host/x PASSWORD=***"
    assert scrub(words) == shown.split()
