"""What earlier runs recorded, from stores and from results files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gate_sides import Sides

from harness.gate.compare import compare
from harness.gate.evidence import read_evidence, side
from harness.matrix import GateRules
from harness.model import CellResult, Verdict
from harness.report.jsonl import ResultsError, read_results, result_of, row, write_results
from harness.store import Store


def record(out: Path, results: list[CellResult]) -> None:
    with Store.open(out) as store:
        run = store.start_run("m", [r.cell for r in results])
        for result in results:
            store.record(run, result)
        store.finish_run(run)


def test_a_results_file_compares_as_a_store_does(
    tmp_path: Path, sides: Sides, lab_run: list[CellResult]
) -> None:
    results = [*lab_run, sides.ran("13.3.1", 35.9), sides.ran("13.4.3", 44.3, bits="1")]
    record(tmp_path / "store", results)
    (tmp_path / "files").mkdir()
    write_results(results, tmp_path / "files" / "results.jsonl")
    cells = [result.cell for result in results]
    made = []
    for place in ("store", "files"):
        evidence = read_evidence([tmp_path / place], cells)
        assert evidence.results.keys() == {cell.id for cell in cells}
        names = [
            {
                r.cell.toolchain.name: r.cell.toolchain.cuda_tile
                for r in results
                if version in r.cell.toolchain.name
            }
            for version in ("ctk13.3.1", "ctk13.4.3")
        ]
        pairs = compare(*(side(evidence, named) for named in names), GateRules())
        made.append([(pair.change, pair.differences) for pair in pairs])
    assert made[0] == made[1]
    assert any(d.quantity == "device_time" for _, differences in made[0] for d in differences)


def test_a_row_without_its_cell_tells_all_but_the_device(sides: Sides) -> None:
    result = sides.ran("13.3.1", occupancy=None)
    revived = result_of(row(result), {})
    assert revived.cell.case == result.cell.case
    assert revived.cell.toolchain == result.cell.toolchain
    assert revived.cell.device is not None and revived.cell.device.name == "h200"
    assert row(revived) == row(result) | {"id": revived.cell.id} | {
        key: row(revived)[key] for key in ("bytecode_sha256", "bytecode_version")
    }


def test_the_newest_telling_answer_counts_and_every_time(tmp_path: Path, sides: Sides) -> None:
    first, second = sides.ran("13.3.1", 30.0), sides.ran("13.3.1", 40.0)
    skipped = replace(first, judgement=sides.said(Verdict.SKIPPED, "1").judgement, observation=None)
    for result in (first, second, skipped):
        record(tmp_path, [result])
    evidence = read_evidence([tmp_path], [])
    (kept,) = evidence.results.values()
    assert (kept.verdict, kept.observation["timing"]["median_us"]) == (Verdict.PASS, 40.0)
    assert [time.median for time in evidence.timings[kept.cell.id]] == [30.0]


def test_several_directories(tmp_path: Path, sides: Sides) -> None:
    write_results([sides.ran("13.3.1")], tmp_path / "a.jsonl")
    record(tmp_path / "store", [sides.ran("13.4.3")])
    assert len(read_evidence([tmp_path / "a.jsonl", tmp_path / "store"], []).results) == 2


def test_a_directory_without_results(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"holds no results; name a directory that --out wrote, or one"):
        read_evidence([tmp_path], [])


@pytest.mark.parametrize("change", [{"verdict": "fine"}, {"components": 3}, {"resources": {"x": 1}}])
def test_a_row_of_something_else(tmp_path: Path, sides: Sides, change: dict[str, object]) -> None:
    path = tmp_path / "results.jsonl"
    write_results([sides.ran("13.3.1")], path)
    path.write_text(json.dumps(read_results(path)[0] | change))
    with pytest.raises(ResultsError, match=r"results.jsonl, row 1: not a result this harness can read"):
        read_evidence([tmp_path], [])


def test_rows_cut_down_for_keeping(tmp_path: Path, sides: Sides) -> None:
    """They name their cell by id, and keep of a run its outputs and its median."""
    result = sides.ran("13.3.1", 35.9)
    kept = {"verdict": "pass", "signature": None, "summary": "s", "components": {}, "cubin_sha256": "c"}
    kept |= {"median_us": 35.9, "spread_us": 1.0, "outputs": [{"name": "y", "sha256": "0"}]}
    rows = [{"id": result.cell.id, **kept}, {"id": "0" * 12, **kept}]
    (tmp_path / "kept.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evidence = read_evidence([tmp_path], [result.cell])
    (found,) = evidence.results.values()
    assert found.cell == result.cell
    assert found.observation == {
        "outputs": [{"name": "y", "sha256": "0"}],
        "timing": {"median_us": 35.9, "spread_us": 1.0, "samples_us": None},
    }
