"""`harness execute`: run a bundle's cells on the GPUs of this host. No compiler, no network."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from pathlib import Path

from rich.console import Console

from harness import __version__
from harness.bundle import Bundle, read_bundle, unpack_cubins
from harness.bundle_cases import BundleCases
from harness.commands.explain import NothingToExplain
from harness.commands.run import Options, exit_code
from harness.commands.shrink import Laboratory, shrink_findings
from harness.compile.cache import Cache
from harness.device_stage import run_on_devices
from harness.execute.jit import carried_trees, no_trees
from harness.inspect import Disassembler
from harness.judge import judge_not_run
from harness.known_issues import assess, load_known_issues
from harness.model import CellResult, digest_of
from harness.plan import NoSuchCell
from harness.process import Supervisor
from harness.process.signals import finishing
from harness.report.console import Progress, render_summary
from harness.report.files import set_aside
from harness.report.reports import REPORTS, write_reports
from harness.store import Store


def execute_bundle(
    path: Path,
    options: Options,
    case: str | None = None,
    *,
    shrink: bool = False,
    jit_root: Path | None = None,
) -> int:
    """Run all device cells of the bundle, or those that `case` means; write every report.

    With `shrink`, what failed is then made small, and a command printed for each minimal case. Below
    `jit_root` lie the toolchains of cases that cuda.tile launches itself.
    """
    started = time.monotonic()
    issues = load_known_issues(options.known_issues) if options.known_issues else ()
    whole = bundle = read_bundle(path)
    if case is not None:
        bundle = _only(bundle, case)
    static = {r.cell.id: r for r in bundle.results if r.cell.device is None}
    cells = [r.cell for r in bundle.results if r.cell.device is not None]
    console = Console(stderr=options.as_json, highlight=False)
    with (
        tempfile.TemporaryDirectory(prefix="tile-harness-bundle-") as scratch,
        Supervisor() as supervisor,
        Store.open(options.out) as results,
    ):
        cubins = unpack_cubins(path, Path(scratch) / "cubins")
        planned = [*(r.cell for r in static.values()), *cells]
        set_aside(options.out, REPORTS)
        run_id = results.start_run(
            digest_of([bundle.matrix_digest, case]),
            planned,
            argv=sys.argv[1:],
            versions={"harness": __version__},
        )
        interrupted = False
        try:
            with Progress(len(planned), console, quiet=options.quiet) as progress:

                def record(result: CellResult) -> None:
                    results.record(run_id, result)
                    progress.advance(result)

                for result in static.values():
                    record(result)
                run_on_devices(
                    supervisor,
                    cells,
                    static,
                    cubins.get,
                    record,
                    timeouts=bundle.timeouts,
                    options=options.pool,
                    timed=options.timed,
                    disassembler=Disassembler(supervisor, Cache(Path(scratch) / "cache")),
                    jit=no_trees if jit_root is None else carried_trees(jit_root),
                )
        except KeyboardInterrupt:
            interrupted = True
        with finishing():
            results.close_run(
                run_id, lambda cell: CellResult(cell, judge_not_run(cell, "the run was interrupted"))
            )
            judged = results.results(run_id)
            if not interrupted:
                results.finish_run(run_id)
            wall = time.monotonic() - started
            facts = {
                "harness": __version__,
                "cells": len(judged),
                "verdicts": dict(Counter(str(r.verdict) for r in judged)),
                "wall_seconds": round(wall, 3),
            }
            known = assess(judged, issues, date.today())
            paths = write_reports(judged, facts, options.place, known)
        if shrink and not interrupted:
            laboratory = Laboratory(path, BundleCases(whole), cubins, supervisor, whole.timeouts)
            shrink_findings(judged, laboratory, options.out, console)
    if options.as_json:
        print(json.dumps(facts))
    render_summary(
        judged, paths, console, seconds=wall, quiet=options.quiet, known=known, place=options.place
    )
    if interrupted:
        raise KeyboardInterrupt
    return exit_code(judged, known)


def _only(bundle: Bundle, pattern: str) -> Bundle:
    """The bundle with the device cells left that the pattern means, and the compiles they stand on."""
    cases = BundleCases(bundle)
    try:
        return cases.only(cases.resolve(pattern))
    except NoSuchCell as error:
        raise NothingToExplain(str(error)) from None
