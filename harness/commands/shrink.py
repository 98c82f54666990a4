"""`harness execute --shrink`: for each finding of a run, the smallest case that still shows it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from harness.bundle_cases import BundleCases, spelled_out
from harness.command_text import command
from harness.device_stage import run_on_devices, static_key
from harness.execute import PoolOptions
from harness.matrix.value import Timeouts
from harness.model import Case, Cell, CellResult
from harness.process import Supervisor
from harness.report.files import write_atomically
from harness.shrink import Search, shrink

FILE_NAME = "shrunk.json"
MOST_FINDINGS = 6
MOST_SECONDS = 90.0
"""Per finding. A case that hangs costs a launch deadline, which is cut to `LAUNCH_SECONDS` here."""

LAUNCH_SECONDS = 2.0
_ALONE = PoolOptions(workers=1, waiting=0, spares=0, confirm=False)


@dataclass(frozen=True)
class Laboratory:
    """What it takes to run one case of a bundle."""

    bundle: Path
    cases: BundleCases
    cubins: Mapping[str, Path]
    supervisor: Supervisor
    timeouts: Timeouts

    def run(self, cell: Cell) -> CellResult | None:
        """One fresh process, no confirmation; None where there is no cubin."""
        static = self.cases.static(cell)
        if static is None:
            return None
        found: list[CellResult] = []
        run_on_devices(
            self.supervisor,
            [cell],
            {static_key(cell): static},
            self.cubins.get,
            found.append,
            timeouts=replace(self.timeouts, launch=min(self.timeouts.launch, LAUNCH_SECONDS)),
            options=_ALONE,
        )
        return found[0]

    def command(self, cell: Cell) -> str:
        """What runs the cell again."""
        return command("execute", self.bundle, "--case", spelled_out(cell))


def shrink_findings(
    results: Sequence[CellResult], laboratory: Laboratory, out: Path, console: Console
) -> None:
    """Shrink one case per signature, print how to run each again, and write `shrunk.json`."""
    written = []
    for result in _one_per_signature(results)[:MOST_FINDINGS]:
        small, runs = _shrink(result, laboratory)
        command = laboratory.command(small)
        written.append(
            {
                "signature": result.judgement.signature,
                "from": result.cell.id,
                "cell": small.to_json(),
                "runs": runs,
                "command": command,
            }
        )
        console.print(f"\n{result.judgement.signature}", style="bold", markup=False)
        console.print(f"  smallest of {runs} tried: {spelled_out(small)}", markup=False, soft_wrap=True)
        console.print(f"  {command}", markup=False, soft_wrap=True)
    write_atomically(out / FILE_NAME, json.dumps(written, indent=2) + "\n")


def _one_per_signature(results: Iterable[CellResult]) -> list[CellResult]:
    """The smallest failing device cell of each signature that came of running it."""
    found: dict[str, CellResult] = {}
    for result in results:
        signature = result.judgement.signature
        if signature is None or result.observation is None or not result.verdict.is_finding:
            continue
        kept = found.get(signature)
        if kept is None or math.prod(result.cell.case.shape) < math.prod(kept.cell.case.shape):
            found[signature] = result
    return list(found.values())


def _shrink(result: CellResult, laboratory: Laboratory) -> tuple[Cell, int]:
    cell, until = result.cell, time.monotonic() + MOST_SECONDS

    def with_case(case: Case) -> Cell:
        return replace(cell, case=case)

    def fails(case: Case) -> bool:
        if time.monotonic() > until:
            return False
        tried = laboratory.run(with_case(case))
        return tried is not None and tried.judgement.signature == result.judgement.signature

    search = Search(can_run=lambda case: laboratory.cases.static(with_case(case)) is not None, fails=fails)
    templates = [listed.case for listed in laboratory.cases.listed if listed.toolchain == cell.toolchain]
    return with_case(shrink(cell.case, templates, search)), search.runs
