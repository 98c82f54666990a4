"""`harness merge`: the results of several hosts in one report, so that drivers and GPUs can be compared."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import date
from pathlib import Path

from rich.console import Console

from harness import __version__
from harness.command_text import Place
from harness.commands.explain import NothingToExplain
from harness.commands.run import exit_code
from harness.gate.evidence import telling
from harness.known_issues import assess, load_known_issues
from harness.model import CellResult, digest_of
from harness.report.console import render_summary
from harness.report.reports import write_reports
from harness.store import KERNELS_FOLDER, Store


def merge_results(directories: list[Path], out: Path, quiet: bool, known_issues: Path | None = None) -> int:
    """Join the newest run of each directory into `out`. A cell that several hosts answered keeps the
    first telling answer; one that no host could run stays skipped, with the reason."""
    issues = load_known_issues(known_issues) if known_issues is not None else ()
    merged: dict[str, CellResult] = {}
    folders: list[str] = []
    for directory in directories:
        if not (directory / "harness.sqlite").is_file():
            raise NothingToExplain(f"{directory} holds no results; name directories that --out wrote")
        with Store.open(directory) as store:
            runs = store.runs()
            folders += [run.host[KERNELS_FOLDER] for run in runs[:1] if KERNELS_FOLDER in run.host]
            for result in store.results(runs[0].id) if runs else []:
                kept = merged.get(result.cell.id)
                if kept is None or telling(result) > telling(kept):
                    merged[result.cell.id] = result
    judged = list(merged.values())
    with Store.open(out) as store:
        cells = [r.cell for r in judged]
        run_id = store.start_run(
            digest_of(sorted(merged)),
            cells,
            argv=sys.argv[1:],
            versions={"harness": __version__},
            host={KERNELS_FOLDER: folders[0]} if folders else {},
        )
        for result in judged:
            store.record(run_id, result)
        store.finish_run(run_id)
    facts = {
        "harness": __version__,
        "cells": len(judged),
        "merged": [str(directory) for directory in directories],
        "verdicts": dict(Counter(str(r.verdict) for r in judged)),
    }
    known = assess(judged, issues, date.today())
    place = Place(out)
    paths = write_reports(judged, facts, place, known)
    render_summary(judged, paths, Console(highlight=False), quiet=quiet, known=known, place=place)
    return exit_code(judged, known)
