"""Shards are disjoint and together everything, and with durations about equally long."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker

from harness.model import Cell, Device
from harness.report.jsonl import ResultsError, write_results
from harness.shards import compiled_id, read_durations, shard_cells

MAKE = Maker()
CELLS = [cell for row in range(1, 30) for cell in [MAKE.cell(shape=(row, 64))]]
CELLS += [replace(cell, device=Device("h200", "H200", "sm_90")) for cell in CELLS[::3]]

seconds = st.one_of(st.floats(0, 1e6), st.just(float("0")))
known = st.dictionaries(st.sampled_from([cell.id for cell in CELLS]), seconds)


def parts_of(cells: list[Cell], parts: int, durations: dict[str, float] | None) -> list[list[Cell]]:
    return [shard_cells(cells, (index, parts), durations) for index in range(1, parts + 1)]


@given(st.lists(st.sampled_from(CELLS), unique=True), st.integers(1, 9), st.one_of(st.none(), known))
def test_the_union_of_shards_is_exactly_the_whole(
    cells: list[Cell], parts: int, durations: dict[str, float] | None
) -> None:
    shards = parts_of(cells, parts, durations)
    assert sorted(cell.id for shard in shards for cell in shard) == sorted(cell.id for cell in cells)
    homes: dict[str, set[int]] = {}
    for at, shard in enumerate(shards):
        assert shard == [cell for cell in cells if cell in shard]
        for cell in shard:
            homes.setdefault(compiled_id(cell), set()).add(at)
    assert all(len(shard) == 1 for shard in homes.values())


@given(st.lists(st.sampled_from(CELLS), unique=True, min_size=1), st.integers(1, 9), known)
def test_no_shard_is_longer_than_the_shortest_by_more_than_one_compile(
    cells: list[Cell], parts: int, durations: dict[str, float]
) -> None:
    timed = {cell.id: durations.get(cell.id) or 1.0 for cell in cells}
    shards = parts_of(cells, parts, timed)
    totals = [sum(timed[cell.id] for cell in shard) for shard in shards]
    together: dict[str, float] = {}
    for cell in cells:
        together[compiled_id(cell)] = together.get(compiled_id(cell), 0.0) + timed[cell.id]
    assert max(totals) - min(totals) <= max(together.values()) * (1 + 1e-9)


@given(st.permutations(CELLS), known)
def test_every_machine_deals_the_same_way(cells: list[Cell], durations: dict[str, float]) -> None:
    here = {cell.id for cell in shard_cells(CELLS, (2, 3), durations)}
    assert {cell.id for cell in shard_cells(cells, (2, 3), durations)} == here


def test_without_a_shard_it_is_everything() -> None:
    assert shard_cells(CELLS, None, {}) == CELLS


@pytest.mark.parametrize("durations", [None, {}])
def test_a_shard_that_is_none(durations: dict[str, float] | None) -> None:
    with pytest.raises(ValueError, match="there is no shard 4 of 3; write i/n"):
        shard_cells(CELLS, (4, 3), durations)


def test_durations_are_those_of_an_earlier_run(tmp_path: Path) -> None:
    result = MAKE.answer(CELLS[0])
    write_results([result], tmp_path / "results.jsonl")
    durations = read_durations(tmp_path)
    assert durations == read_durations(tmp_path / "results.jsonl")
    assert durations[CELLS[0].id] == pytest.approx(0.58)
    (tmp_path / "results.jsonl").write_text(json.dumps({"id": "a", "verdict": "pass", "seconds": None}))
    assert read_durations(tmp_path) == {"a": 0.0}
    with pytest.raises(ResultsError, match="cannot be read"):
        read_durations(tmp_path / "absent")
