"""`harness run`: from a matrix file to verdicts, reports and an exit code."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from harness import __version__
from harness.bundle import Bundle, write_bundle
from harness.command_text import Place, command
from harness.device_stage import Report, run_on_devices
from harness.execute import PoolOptions
from harness.execute.jit import JitTree
from harness.judge import judge_not_run, judge_skipped
from harness.kernels import get
from harness.known_issues import FILE_NAME as KNOWN_ISSUES
from harness.known_issues import NOTHING_KNOWN, Assessment, Issue, assess, load_known_issues
from harness.lab import Deadlines, Lab
from harness.matrix import Matrix, load_matrix
from harness.model import Case, Cell, CellResult, Verdict
from harness.pipeline import Counters, run_cells
from harness.plan import plan
from harness.process.signals import finishing
from harness.report.console import Progress, render_summary
from harness.report.files import set_aside, write_atomically
from harness.report.jsonl import row
from harness.report.reports import REPORTS, write_reports
from harness.report.words import count_text
from harness.shards import read_durations, shard_cells
from harness.store import KERNELS_FOLDER, Store


@dataclass(frozen=True)
class Options:
    """How a run is to be done; nothing here changes what is asked."""

    out: Path
    store: Path | None = None
    jobs: int | None = None
    shard: tuple[int, int] | None = None
    durations: Path | None = None
    offline: bool = False
    quiet: bool = False
    as_json: bool = False
    execute: bool = True
    bundle: Path | None = None
    pool: PoolOptions = field(default_factory=PoolOptions)
    timed: bool = False
    patience: float = 0.0
    known_issues: Path | None = None

    @property
    def place(self) -> Place:
        """Where the run leaves what later commands need."""
        return Place(self.out, self.store)


def run_matrix(path: Path, options: Options) -> int:
    """Run the matrix and write every report; 0 without findings, 1 with."""
    started = time.monotonic()
    console = Console(stderr=options.as_json, highlight=False)
    with Lab(options.store, offline=options.offline, progress=None) as lab:
        matrix = load_matrix(path, known_versions=lab.provisioner.versions)
        for note in matrix.notes:
            console.print(f"note: {note}", markup=False, soft_wrap=True)
        issues = known_issues_beside(path, options.known_issues)
        durations = read_durations(options.durations) if options.durations else None
        lab.deadlines = Deadlines(matrix.timeouts.trace, matrix.timeouts.compile, options.patience)
        with Store.open(options.out) as results:
            planned = plan(with_drawn_cases(matrix, options.out))
            cells = tuple(shard_cells(planned, options.shard, durations))
            if options.shard and not cells:
                part, whole = options.shard
                console.print(f"shard {part}/{whole} holds no cell of this matrix, so there is nothing to do")
            set_aside(options.out, REPORTS)
            run_id = results.start_run(
                matrix.digest,
                cells,
                argv=sys.argv[1:],
                versions={"harness": __version__},
                host={KERNELS_FOLDER: str(matrix.path.parent.absolute())},
            )
            interrupted, counters = judge_all(lab, matrix, cells, results, run_id, options, console)
            with finishing():
                judged = results.results(run_id)
                if not interrupted:
                    results.finish_run(run_id)
                facts = _facts(lab, counters, judged, time.monotonic() - started)
                write_atomically(
                    options.out / "toolchains.lock.json",
                    json.dumps(lab.provisioner.lock_report(), indent=2) + "\n",
                )
                known = assess(judged, issues, date.today(), matrix.path.parent)
                paths = write_reports(judged, facts, options.place, known)
        if options.bundle is not None and not interrupted:
            _bundle(lab, matrix, judged, options.bundle, console)
    if options.as_json:
        print(
            json.dumps(
                {**facts, "known_issues": known.to_json(), "cells": [row(result) for result in judged]}
            )
        )
    render_summary(
        judged,
        paths,
        console,
        seconds=facts["wall_seconds"],
        quiet=options.quiet,
        known=known,
        place=options.place,
    )
    if interrupted:
        raise KeyboardInterrupt
    return exit_code(judged, known)


def exit_code(results: list[CellResult], known: Assessment = NOTHING_KNOWN) -> int:
    """3 if the machine failed at a cell, else 1 if anything was found that is not expected, or is gone
    although it was, else 0."""
    if any(r.verdict is Verdict.INFRA_ERROR for r in results):
        return 3
    faults = [r for r in results if r.verdict.is_finding or r.verdict is Verdict.TOOLCHAIN_BROKEN]
    return 1 if known.fixed or any(r.cell.id not in known.expected for r in faults) else 0


def known_issues_beside(matrix: Path, given: Path | None) -> tuple[Issue, ...]:
    """The issues of the file that was named, else of the one beside the matrix, if there is one.
    Raises MatrixError."""
    path = given or matrix.parent / KNOWN_ISSUES
    return load_known_issues(path) if given is not None or path.is_file() else ()


def _bundle(lab: Lab, matrix: Matrix, results: list[CellResult], path: Path, console: Console) -> None:
    """Put everything a GPU host needs into one file."""
    needed = {r.compile.cubin_sha256 for r in results if r.compile and r.compile.cubin_sha256}
    found = ((sha256, lab.cache.get(sha256)) for sha256 in sorted(needed))
    cubins = ((sha256, cubin) for sha256, cubin in found if cubin is not None)
    size = write_bundle(path, Bundle(matrix.digest, matrix.timeouts, tuple(results)), cubins)
    runs = sum(1 for r in results if r.cell.device is not None)
    console.print(
        f"{path}: {count_text(runs, 'cell')} to run, {count_text(len(needed), 'cubin')}, "
        f"{size / 2**20:.1f} MiB; on the GPU host: {command('execute', path)}",
        markup=False,
        soft_wrap=True,
    )


def judge_all(
    lab: Lab,
    matrix: Matrix,
    cells: tuple[Cell, ...],
    results: Store,
    run_id: str,
    options: Options,
    console: Console,
    recorded: Mapping[str, CellResult] | None = None,
) -> tuple[bool, Counters | None]:
    """Judge and record, but for cells whose answer was `recorded` elsewhere; True if an interrupt cut
    it short."""
    finished = results.finished_cells(matrix.digest, {"harness": __version__})
    resumed = {i: result for i, result in finished.items() if is_current(result, matrix.path.parent)}
    known = {**resumed, **(recorded or {})}
    try:
        with Progress(len(cells), console, quiet=options.quiet) as progress:

            def record(result: CellResult) -> None:
                results.record(run_id, result)
                progress.advance(result)

            for cell in cells:
                if cell.id in known:
                    record(replace(known[cell.id], cell=cell))
            if resumed:
                progress.note(
                    f"an earlier run was interrupted: {len(resumed)} of {len(cells)} cells are taken from it"
                )
            todo = [cell for cell in cells if cell.id not in known]
            static = {cell.id: known[cell.id] for cell in cells if cell.id in known}

            def record_static(result: CellResult) -> None:
                static[result.cell.id] = result
                record(result)

            counters = run_cells(
                lab,
                [cell for cell in todo if cell.device is None],
                record_static,
                jobs=options.jobs or matrix.jobs or _cores(),
                base=matrix.path.parent,
                announce=progress.note,
                watch=progress,
            )
            on_devices = [cell for cell in todo if cell.device]
            progress.stage("execute", len(on_devices))

            def record_run(result: CellResult) -> None:
                record(result)
                progress.step()

            _execute(lab, matrix, on_devices, static, record_run, options)
    except KeyboardInterrupt:
        results.close_run(
            run_id, lambda cell: CellResult(cell, judge_not_run(cell, "the run was interrupted"))
        )
        return True, None
    return False, counters


def is_current(result: CellResult, base: Path) -> bool:
    """Whether the kernel's file is still the one that this was found with, as far as that was recorded."""
    return result.kernel_sha256 in (None, get(result.cell.case.kernel, base).source().sha256)


def _execute(
    lab: Lab,
    matrix: Matrix,
    cells: list[Cell],
    static: dict[str, CellResult],
    record: Report,
    options: Options,
) -> None:
    """Run the device cells here, or say why not."""
    if not options.execute:
        for cell in cells:
            why = "compiled only; harness execute runs it from a bundle"
            record(CellResult(cell, judge_skipped(cell, why)))
        return
    run_on_devices(
        lab.supervisor,
        cells,
        static,
        lab.cache.intact,
        record,
        timeouts=matrix.timeouts,
        options=options.pool,
        timed=options.timed,
        base=matrix.path.parent,
        disassembler=lab.disassembler,
        jit=lambda toolchain: JitTree(
            lab.provisioner.frontend(toolchain.cuda_tile).root, lab.provisioner.backend(toolchain).root
        ),
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def with_drawn_cases(matrix: Matrix, out: Path) -> Matrix:
    """The matrix with its generated cases drawn; a list once drawn in `out` is kept, so that every run
    of the same matrix there runs the same cases."""
    if not matrix.generators:
        return matrix
    from harness.cases import draw

    path = out / "cases.json"
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        kept = {}
    if kept.get("matrix") != matrix.digest:
        drawn = [case for generator in matrix.generators for case in draw(generator)]
        kept = {"matrix": matrix.digest, "cases": [case.to_json() for case in drawn]}
        write_atomically(path, json.dumps(kept))
    cases = tuple(Case.from_json(case) for case in kept["cases"])
    return replace(matrix, cases=(*matrix.cases, *cases), generators=())


def _facts(lab: Lab, counters: Counters | None, results: list[CellResult], wall: float) -> dict[str, Any]:
    """Figures about the run itself: CPU seconds of this process and of all it started."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "harness": __version__,
        "cells": len(results),
        "questions": counters.questions if counters else None,
        "compiles": counters.compiles if counters else None,
        "verdicts": dict(Counter(str(r.verdict) for r in results)),
        "wall_seconds": round(wall, 3),
        "cpu_seconds": {
            "harness": round(own.ru_utime + own.ru_stime, 3),
            "children": round(children.ru_utime + children.ru_stime, 3),
            "compilers": round(lab.compiler_cpu_seconds, 3),
            "tracers": round(lab.tracer_cpu_seconds, 3),
        },
    }
