"""The static verdict against what an H200 did: 90 cells, 8 of which never came back.

`resources/h200-rmsnorm-16384x512.csv` was measured on an H200, driver 580: bf16, 16384×512, grid 132.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_MATRIX = _HERE.parent / "ci/matrices/h200-rmsnorm-16384x512.toml"


def measured() -> dict[tuple[str, int | None, bool], dict[str, str]]:
    """Rows of the recording by toolkit, occupancy and TMA."""
    with (_HERE / "resources/h200-rmsnorm-16384x512.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        (
            r["cuda_toolkit"],
            int(r["occupancy"]) if r["occupancy"] else None,
            r["allow_tma_x"] == "true",
        ): r
        for r in rows
    }


@pytest.mark.toolchain
@pytest.mark.timeout(1200)
def test_the_static_verdict_is_what_the_gpu_did(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "compile", str(_MATRIX), "--out", str(tmp_path), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1100, check=False)
    assert done.returncode == 1, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    static = {
        (r["cuda_toolkit"], r["hints"]["occupancy"], r["hints"]["allow_tma"]): r
        for r in rows
        if r["device"] is None
    }
    recorded = measured()
    assert static.keys() == recorded.keys()
    assert len(recorded) == 90
    for key, row in recorded.items():
        verdict = "predicted_deadlock" if row["outcome"] == "hang" else "compiles"
        assert static[key]["verdict"] == verdict, key
        if row["registers"]:
            assert static[key]["resources"]["registers"] == int(row["registers"]), key
    assert sum(row["outcome"] == "hang" for row in recorded.values()) == 8
