"""results.jsonl: the fields scripts rely on, whole files or none."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import Maker, Unreadable

from harness.model import CellResult
from harness.report.files import write_atomically
from harness.report.jsonl import ResultsError, read_results, result_of, row, write_results


def test_a_row_has_what_scripts_need(make: Maker) -> None:
    item = row(make.answer(make.cell(occupancy=16, allow_tma=True)))
    assert item["hints"] == {
        "occupancy": 16,
        "num_ctas": None,
        "opt_level": 3,
        "allow_tma": True,
        "latency": 10,
    }
    assert (item["kernel"], item["shape"], item["dtype"]) == (
        "rmsnorm.static_persistent",
        [16384, 512],
        "bfloat16",
    )
    assert (item["cuda_tile"], item["cuda_toolkit"], item["toolchain"]) == (
        "1.5.0",
        "13.3.1",
        "tile1.5.0-ctk13.3.1",
    )
    assert item["components"] == {"tileiras": "13.3.36", "nvvm": "13.3.36", "ptxas": "13.3.36"}
    assert (item["arch"], item["device"], item["verdict"], item["signature"]) == (
        "sm_90",
        None,
        "compiles",
        None,
    )
    assert item["advice"] == [
        {"kind": "occupancy_missed", "text": "asked for 16 CTAs per SM, 255 registers allow 1"}
    ]
    resources = item["resources"]
    assert {name: resources[name] for name in ("registers", "threads", "stack_bytes", "shared_bytes")} == {
        "registers": 255,
        "threads": 256,
        "stack_bytes": 0,
        "shared_bytes": 6224,
    }
    assert resources["ctas_per_sm"] == 1
    assert item["seconds"] == {"trace": 0.08, "compile": 0.5, "compile_cpu": 0.5}
    assert (item["bytecode_sha256"], item["cubin_sha256"]) == ("b" * 64, "c" * 64)


def test_a_cell_that_never_compiled(make: Maker) -> None:
    item = row(make.answer(make.cell("13.2.2")))
    assert (item["verdict"], item["resources"], item["cubin_sha256"]) == ("unsupported", None, None)


def test_one_line_a_cell_and_back(tmp_path: Path, lab_run: list[CellResult]) -> None:
    path = tmp_path / "deep" / "results.jsonl"
    write_results(lab_run, path)
    assert len(path.read_text().splitlines()) == len(lab_run)
    rows = read_results(path)
    assert [item["id"] for item in rows] == [result.cell.id for result in lab_run]
    assert rows == [json.loads(json.dumps(row(result))) for result in lab_run]


def test_not_a_number_stays_valid_json(tmp_path: Path, make: Maker) -> None:
    result = make.answer(make.cell())
    result = replace(result, observation={"error": float("nan"), "worst": [float("inf")]})
    write_results([result], tmp_path / "r.jsonl")
    assert read_results(tmp_path / "r.jsonl")[0]["observation"] == {"error": "nan", "worst": ["inf"]}


def test_broken_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with pytest.raises(ResultsError, match=r"r\.jsonl cannot be read .*: name a file that a run wrote\.$"):
        read_results(path)
    path.write_text('{"id": "a", "verdict": "pass"}\n{"id": \n')
    with pytest.raises(ResultsError, match=r"r\.jsonl, line 2: not JSON"):
        read_results(path)
    path.write_text("[1]\n")
    with pytest.raises(ResultsError, match=r"line 1: not a result of a cell"):
        read_results(path)


def test_any_text_can_be_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / "t", "half \ud800 a pair\n")
    assert (tmp_path / "t").read_text() == "half \\ud800 a pair\n"


def test_rows_hold_texts_that_every_reader_takes(tmp_path: Path, make: Maker) -> None:
    said = "\x1b[31m\x00\ud800"
    result = make.result(make.cell(kernel=f"{said}.py:k"), compile=make.failed(5, f"error: {said}"))
    write_results([replace(result, observation={said: [said]})], tmp_path / "r.jsonl")
    assert not re.search(r"(?<!\\)\\u(00[01]|d[89a-f])", (tmp_path / "r.jsonl").read_text())
    (item,) = read_results(tmp_path / "r.jsonl")
    assert item["observation"] == {"\\x1b[31m\\x00\\ud800": ["\\x1b[31m\\x00\\ud800"]}


def test_an_odd_result_costs_only_its_own_row(tmp_path: Path, make: Maker) -> None:
    odd = replace(make.result(), observation={"k": Unreadable()})
    write_results([odd, make.answer(make.cell("13.4.3"))], tmp_path / "r.jsonl")
    rows = read_results(tmp_path / "r.jsonl")
    assert [item["verdict"] for item in rows] == ["infra_error", "compiles"]
    assert rows[0]["id"] == odd.cell.id
    assert rows[0]["summary"].startswith("the result of this cell cannot be reported: ")


def test_a_series_of_versions_tells_which_was_chosen(make: Maker) -> None:
    result = make.result(make.cell("13.3"))
    assert row(result)["cuda_toolkit_resolved"] is None
    result = replace(result, resolved={"cuda_tile": "1.5.0", "cuda_toolkit": "13.3.1"})
    item = row(result)
    assert (item["cuda_toolkit"], item["cuda_toolkit_resolved"]) == ("13.3", "13.3.1")
    assert result_of(item, {}).resolved == result.resolved


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    write_atomically(path, "old\n")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.jsonl"]
