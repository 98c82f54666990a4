"""What earlier runs recorded: a directory that `--out` wrote, or one with results files (*.jsonl).

A result store keeps everything; a results file keeps what scripts need, which is enough to compare.
Where a directory holds several answers to one cell, the newest telling one counts, and the device times
of all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.gate.compare import Key, Side, question
from harness.gate.noise import Measured, measured
from harness.model import Cell, CellResult, Verdict
from harness.report.jsonl import ResultsError, read_results, result_of
from harness.store import FILE_NAME, Store

SAYS_LEAST = (Verdict.NOT_RUN, Verdict.SKIPPED, Verdict.TAINTED, Verdict.INFRA_ERROR)
"""Verdicts another answer to the same cell replaces, least telling first."""


@dataclass
class Evidence:
    """Results by cell id, and the device times of those that are not the kept ones."""

    results: dict[str, CellResult] = field(default_factory=dict)
    timings: dict[str, list[Measured]] = field(default_factory=lambda: defaultdict(list))

    def add(self, result: CellResult) -> None:
        """Take one more answer; of equally telling ones the first stays."""
        kept = self.results.get(result.cell.id)
        replaces = kept is None or telling(result) > telling(kept)
        if replaces:
            self.results[result.cell.id] = result
        spare = kept if replaces else result
        time = measured((spare.observation or {}).get("timing")) if spare is not None else None
        if time is not None:
            self.timings[result.cell.id].append(time)


def telling(result: CellResult) -> int:
    """How much an answer says about its cell."""
    return SAYS_LEAST.index(result.verdict) if result.verdict in SAYS_LEAST else len(SAYS_LEAST)


def is_conclusive(result: CellResult) -> bool:
    """Whether no other answer to the same cell would say more."""
    return result.verdict not in SAYS_LEAST


def read_evidence(directories: Sequence[Path], known: Iterable[Cell]) -> Evidence:
    """All that these directories hold. `known` are cells of the matrix, which a results file names by id
    alone. Raises ResultsError and StoreError."""
    cells = {cell.id: cell for cell in known}
    evidence = Evidence()
    for directory in directories:
        for result in _read(directory, cells):
            evidence.add(result)
    return evidence


def side(
    evidence: Evidence, names: Mapping[str, str] | None = None, devices: Mapping[str, str] | None = None
) -> Side:
    """One side of a comparison. `names` maps the toolchains that belong to it to what they are paired by,
    without it each to its own name; `devices` renames devices."""
    results: dict[Key, CellResult] = {}
    timings: dict[Key, Sequence[Measured]] = {}
    for id_, result in evidence.results.items():
        chain, device = result.cell.toolchain.name, result.cell.device
        name = names.get(chain) if names is not None else chain
        if name is not None:
            key = question(result.cell, name, (devices or {}).get(device.name) if device else None)
            results[key] = result
            timings[key] = evidence.timings.get(id_, ())
    return Side(results, timings)


def _read(directory: Path, cells: Mapping[str, Cell]) -> Iterable[CellResult]:
    if (directory / FILE_NAME).is_file():
        with Store.open(directory) as store:
            for run in store.runs():
                yield from store.results(run.id)
        return
    files = [directory] if directory.is_file() else sorted(directory.glob("*.jsonl"))
    if not files:
        raise ResultsError(
            f"{directory} holds no results; name a directory that --out wrote, or one with *.jsonl files."
        )
    for path in files:
        for number, row in enumerate(read_results(path), 1):
            if "toolchain" not in row and str(row["id"]) not in cells:
                continue  # cut down for keeping: such a row names its cell by id alone
            try:
                yield result_of(row, cells)
            except (KeyError, TypeError, ValueError) as error:
                raise ResultsError(
                    f"{path}, row {number}: not a result this harness can read ({error!r}); "
                    "run the matrix again."
                ) from error
