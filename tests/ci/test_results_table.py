"""The README shows what the results files say."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results_table", ROOT / "ci" / "results_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_shows_the_kept_results(script: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text()
    if script.BEGIN not in readme:
        pytest.skip("the README has no place for the table")
    assert script.updated(readme, script.render()) == readme, "run: python3 ci/results_table.py"


def test_the_header_counts_the_rows(script: ModuleType) -> None:
    header = json.loads((script.RESULTS / f"{script.NAME}.json").read_text())
    rows = [json.loads(line) for line in (script.RESULTS / f"{script.NAME}.jsonl").read_text().splitlines()]
    assert header["cells"] == len(rows) == 90
    assert header["verdicts"] == {
        verdict: sum(row["verdict"] == verdict for row in rows) for verdict in header["verdicts"]
    }
    assert header["prediction_agrees"] == sum(row["prediction_agrees"] for row in rows)


def test_a_run_is_kept_and_rendered(script: ModuleType, tmp_path: Path) -> None:
    run, results = tmp_path / "run", tmp_path / "results"
    run.mkdir()
    with sqlite3.connect(run / "harness.sqlite") as store:
        store.execute("CREATE TABLE run (started REAL)")
        store.execute("INSERT INTO run VALUES (1796100845.2)")
    gpu = {"name": "NVIDIA Fake", "arch": "sm_90", "driver": "580.1"}
    lines = []
    for toolkit, verdict, predicted, timing in (
        ("13.10.0", "pass", "compiles", {"median_us": 30.0, "spread_us": 1.0, "samples_us": [30.0]}),
        ("13.9.0", "hang", "predicted_deadlock", None),
        ("13.9.1", "pass", "predicted_deadlock", {"median_us": 9.0, "spread_us": 1.0}),
    ):
        row = {
            "id": toolkit,
            "kernel": "k",
            "shape": [4, 2],
            "dtype": "float32",
            "hints": {"occupancy": None, "allow_tma": True},
            "layout": "contiguous",
            "values": "normal",
            "seed": 0,
            "toolchain": toolkit,
            "arch": "sm_90",
            "cuda_tile": "1.5.0",
            "cuda_toolkit": toolkit,
            "components": {},
            "resources": {"registers": 32, "threads": 256},
            "cubin_sha256": "c",
            "signature": None,
            "summary": "",
            "evidence": {},
        }
        lines += [
            {**row, "device": None, "verdict": predicted, "observation": None},
            {
                **row,
                "device": "d",
                "verdict": verdict,
                "observation": {"gpu": gpu, "outputs": [], "timing": timing},
            },
        ]
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    script.keep(run, "fake", results)
    kept = [json.loads(line) for line in (results / "fake.jsonl").read_text().splitlines()]
    assert [row["median_us"] for row in kept] == [30.0, None, None]
    assert [row["prediction_agrees"] for row in kept] == [True, True, False]
    assert script.render("fake", results).splitlines() == [
        "NVIDIA Fake, driver 580.1, 2026-12-01; `k`, 4×2, float32, cuda-tile 1.5.0: 3 cells, 1 hang, 2 pass. "
        "What the machine code foretold is what happened in 2 of them. "
        "Numbers are registers a thread; columns are cuda-toolkit.",
        "",
        "| occupancy | TMA | 13.9.0 | 13.9.1 | 13.10.0 |",
        "| --- | --- | --- | --- | --- |",
        "| default | yes | ✖ hang 32 | ✔ 32 | ✔ 32 |",
    ]


def test_a_readme_without_markers_is_refused(script: ModuleType) -> None:
    assert script.updated(f"a\n{script.BEGIN}\nold\n{script.END}\nb", "new") == (
        f"a\n{script.BEGIN}\n\nnew\n\n{script.END}\nb"
    )
    with pytest.raises(ValueError, match="needs the lines"):
        script.updated("nothing", "new")
