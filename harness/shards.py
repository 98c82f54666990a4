"""Which part of a run does a cell belong to. Pure but for reading durations.

Without durations a hash decides, so that a cell's shard depends on nothing but the cell. With the
durations of an earlier run the longest cells are dealt out first, each to the shard with least to do:
parts take about equally long, and every machine that has the same file deals the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median

from harness.model import Cell
from harness.plan import Shard, in_shard
from harness.report.jsonl import read_results

_NEVER_TIMED = 1.0
"""Seconds for every cell where no cell of the plan was ever timed."""


def compiled_id(cell: Cell) -> str:
    """The id of the compile a cell needs: what stays together in one shard."""
    return cell.id if cell.device is None else replace(cell, device=None).id


def read_durations(path: Path) -> dict[str, float]:
    """Seconds by cell id, from a results file or the directory that holds one. Raises ResultsError."""
    rows = read_results(path / "results.jsonl" if path.is_dir() else path)
    return {str(row["id"]): _seconds(row.get("seconds")) for row in rows}


def _seconds(stages: object) -> float:
    """Wall time of all stages; CPU seconds are another view of the same."""
    told = stages.items() if isinstance(stages, dict) else ()
    return float(
        sum(value for name, value in told if isinstance(value, int | float) and not name.endswith("_cpu"))
    )


def shard_cells(
    cells: Iterable[Cell], shard: Shard | None, durations: Mapping[str, float] | None = None
) -> list[Cell]:
    """The cells of part i of n, in their order; all of them without a shard.

    ValueError unless 1 <= i <= n.
    """
    every = list(cells)
    if shard is None:
        return every
    if durations is None:
        return [cell for cell in every if in_shard(cell, shard)]
    index, parts = shard
    if not 1 <= index <= parts:
        raise ValueError(f"there is no shard {index} of {parts}; write i/n with 1 <= i <= n, such as 2/4")
    dealt = _deal(every, parts, durations)
    return [cell for cell in every if dealt[compiled_id(cell)] == index]


def _deal(cells: Iterable[Cell], parts: int, durations: Mapping[str, float]) -> dict[str, int]:
    """The shard of each compile. A cell that was never timed takes as long as the median one."""
    usual = median([seconds for seconds in durations.values() if seconds > 0] or [_NEVER_TIMED])
    loads: dict[str, float] = defaultdict(float)
    for cell in cells:
        loads[compiled_id(cell)] += durations.get(cell.id) or usual
    totals = [0.0] * parts
    dealt: dict[str, int] = {}
    for name, seconds in sorted(loads.items(), key=lambda item: (-item[1], item[0])):
        lightest = min(range(parts), key=lambda part: (totals[part], part))
        totals[lightest] += seconds
        dealt[name] = lightest + 1
    return dealt
