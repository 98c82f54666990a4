"""A bundle whose execution is stopped: every planned cell is reported all the same."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.bundle import Bundle, write_bundle
from harness.cli import app
from harness.matrix import Timeouts
from harness.model import CellResult
from harness.report.reports import REPORTS


def test_sigterm_reports_every_planned_cell(
    lab_run: list[CellResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("harness.commands.execute.run_on_devices", stop)
    results = (*lab_run[:3], lab_run[-1])
    write_bundle(tmp_path / "cells.bundle", Bundle("digest", Timeouts(), results), [])
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["execute", str(tmp_path / "cells.bundle"), "--out", str(out)])
    assert done.exit_code == 143
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [result.cell.id for result in results]
    assert rows[-1]["verdict"] == "not_run"
    assert all((out / name).is_file() for name in REPORTS)
