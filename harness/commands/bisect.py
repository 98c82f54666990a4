"""`harness bisect`: which version brought a fault, which one cured it, and which component is guilty."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from harness.bisect.check import bytecode_files, check_matrix, commands, device_commands, device_matrix
from harness.bisect.laboratory import world
from harness.bisect.result import RESULT_FILE, BisectResult, folder_of
from harness.bisect.run import Bisection, Request
from harness.bisect.show import Shown
from harness.bisect.versions import BisectError, check_over
from harness.commands.explain import find_result
from harness.lab import Deadlines, Lab
from harness.matrix import load_matrix
from harness.model import Cell, CellResult, Verdict
from harness.oracle import OracleError, check_oracle
from harness.plan import NoSuchCell, match, plan
from harness.report.files import write_atomically


@dataclass(frozen=True)
class Options:
    """How to bisect. `matrix` is where to pick the cell from instead of from the results in `out`."""

    out: Path
    store: Path | None = None
    matrix: Path | None = None
    over: str | None = None
    oracle: str = "signature"
    exhaustive: bool = False
    components: bool = True
    offline: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class _Picked:
    """The cell that is meant, what is known of it and of the rest of its run, where its kernel lies, and
    its deadlines."""

    cell: Cell
    original: CellResult | None
    base: Path | None
    deadlines: Deadlines
    recorded: tuple[CellResult, ...] = ()


def bisect_command(pattern: str, options: Options) -> int:
    """Bisect the cell that `pattern` means, printing every step.

    0 once the search is at its end, 1 if nothing but the cell's own version could be told, 2 for a
    cell or an oracle that makes no sense. What was found is kept below `out`/bisect, also when
    interrupted; the same command goes on from there, as every answer is remembered.
    """
    shown = Shown(Console(stderr=options.as_json, highlight=False))
    with Lab(options.store, offline=options.offline, progress=shown.note) as lab:
        try:
            check_oracle(options.oracle)
            if options.over is not None:
                check_over(options.over)
            picked = _pick(pattern, options, lab)
            lab.deadlines = picked.deadlines
            request = Request(options.oracle, options.over, options.exhaustive, options.components)
            surroundings = world(lab, picked.base, options.offline, shown.note, picked.recorded)
            bisection = Bisection(picked.cell, picked.original, request, surroundings, shown.step)
        except (NoSuchCell, OracleError, BisectError) as error:
            complain = Console(stderr=True, highlight=False, soft_wrap=True)
            complain.print(str(error), style="red", markup=False)
            return 2
        try:
            result = bisection.run()
        except KeyboardInterrupt:
            _finish(lab, bisection.result(), options, shown, picked.base)
            shown.note("stopped; the same command goes on from here")
            raise
        _finish(lab, result, options, shown, picked.base)
    return 0 if result.is_decided else 1


def _pick(pattern: str, options: Options, lab: Lab) -> _Picked:
    if options.matrix is not None:
        matrix = load_matrix(options.matrix, known_versions=lab.provisioner.versions)
        deadlines = Deadlines(trace=matrix.timeouts.trace, compile=matrix.timeouts.compile)
        return _Picked(match(plan(matrix), pattern), None, matrix.path.parent, deadlines)
    found = find_result(pattern, options.out)
    result = found.result
    deadline = result.compile.deadline_seconds if result.compile is not None else 0
    deadlines = Deadlines(compile=deadline) if deadline > 0 else Deadlines()
    return _Picked(result.cell, result, found.base, deadlines, found.results)


def _finish(lab: Lab, result: BisectResult, options: Options, shown: Shown, base: Path | None) -> None:
    """Keep the result, what it takes to check it, and say it."""
    folder = folder_of(options.out, result.cell.id, options.oracle, options.over)
    write_atomically(folder / RESULT_FILE, json.dumps(result.to_json(), indent=1) + "\n")
    write_atomically(folder / "check.toml", check_matrix(result, base))
    for name, sha256 in bytecode_files(result).items():
        bytecode = lab.cache.get(sha256)
        if bytecode is not None:
            (folder / name).write_bytes(bytecode)
    shown.result(result, commands(result, folder, options.store))
    if result.cell.device is not None and any(p.verdict is Verdict.SKIPPED for p in result.probes):
        write_atomically(folder / "versions.toml", device_matrix(result, base))
        shown.elsewhere(device_commands(folder, options.out))
    if options.as_json:
        print(json.dumps(result.to_json()))
