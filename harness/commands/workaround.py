"""`harness workaround`: check on the current matrix that advice against a known issue holds, and its cost."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness import __version__
from harness.cluster import arch_key
from harness.commands.run import Options as RunOptions
from harness.commands.run import judge_all, known_issues_beside, with_drawn_cases
from harness.gate.evidence import Evidence, is_conclusive, read_evidence
from harness.known_issues.entry import COMPONENTS, Issue, fits
from harness.known_issues.workaround import Change, Cost, Trial, change_text, changed, changes, trials
from harness.lab import Deadlines, Lab
from harness.matrix import Matrix, load_matrix
from harness.matrix.problems import listing, quote, suggestion
from harness.model import Cell, CellResult
from harness.plan import plan
from harness.report.words import count_text, is_ascii, plain
from harness.store import Store


class NoWorkaround(ValueError):
    """There is no such issue, or it has no advice to check; the text says what there is."""


@dataclass(frozen=True)
class Options:
    """How to run, and where device times were recorded."""

    run: RunOptions
    results: tuple[Path, ...] = ()


def workaround_command(issue_id: str, path: Path, options: Options) -> int:
    """Try every advice of the issue. 0 if all avoid the fault, 1 if one does not, 3 if nobody can say."""
    issue = _issue(issue_id, path, options.run)
    console = Console(stderr=options.run.as_json, highlight=False)
    with Lab(options.run.store, offline=options.run.offline, progress=None) as lab:
        matrix = load_matrix(path, known_versions=lab.provisioner.versions)
        lab.deadlines = Deadlines(trace=matrix.timeouts.trace, compile=matrix.timeouts.compile)
        drawn = with_drawn_cases(matrix, options.run.out)
        concerned = [cell for cell in plan(drawn) if _may_show(issue, cell, path.parent)]
        tried = [changes(advice, drawn.cases) for advice in issue.workaround]
        results = _run(lab, drawn, list(_cells(concerned, tried)), options)
    by_id = {result.cell.id: result for result in results}
    faulty = [r for r in results if issue.shows_in(r) and issue.would_speak_of(r, path.parent)]
    found = [trials(issue, change, by_id, faulty) for change in tried]
    if options.run.as_json:
        advice = [[trial.to_json() for trial in group] for group in found]
        print(json.dumps({"issue": issue.id, "faulty": len(faulty), "advice": advice}))
    else:
        _print(issue, tried, found, faulty, console)
    return _exit_code(found)


def _issue(issue_id: str, path: Path, options: RunOptions) -> Issue:
    issues = {issue.id: issue for issue in known_issues_beside(path, options.known_issues)}
    if issue_id not in issues:
        known = tuple(issues)
        listed = f"known are {listing(known)}" if known else "there is no known_issues.toml; name one"
        raise NoWorkaround(f"no known issue {quote(issue_id)}; {suggestion(issue_id, known, listed)}")
    if not issues[issue_id].workaround:
        advised = [issue.id for issue in issues.values() if issue.workaround]
        told = f"; {listing(advised)} have one" if advised else ""
        raise NoWorkaround(f"known issue {quote(issue_id)} names no workaround{told}")
    return issues[issue_id]


def _may_show(issue: Issue, cell: Cell, base: Path) -> bool:
    """Whether the entry speaks of this cell, leaving open what versions it is compiled with."""
    where = {key: condition for key, condition in issue.match.items() if key not in COMPONENTS}
    return fits(where, cell, {}, base)


def _cells(concerned: Sequence[Cell], tried: Sequence[Sequence[Change]]) -> Iterable[Cell]:
    """The cells as they are, then with every change; each once."""
    every = [*concerned, *(changed(cell, c) for group in tried for c in group for cell in concerned)]
    return {cell.id: cell for cell in every}.values()


def _run(lab: Lab, matrix: Matrix, cells: list[Cell], options: Options) -> list[CellResult]:
    recorded = read_evidence(options.results, cells) if options.results else Evidence()
    known = {id_: r for id_, r in recorded.results.items() if is_conclusive(r)}
    with Store.open(options.run.out) as store:
        run_id = store.start_run(matrix.digest, cells, argv=sys.argv[1:], versions={"harness": __version__})
        answers = {cell.id: known[cell.id] for cell in cells if cell.id in known}
        interrupted, _ = judge_all(
            lab, matrix, tuple(cells), store, run_id, options.run, Console(stderr=True), answers
        )
        if interrupted:
            raise KeyboardInterrupt
        store.finish_run(run_id)
        return store.results(run_id)


def _exit_code(found: Sequence[Sequence[Trial]]) -> int:
    answers = [trial.avoids for group in found for trial in group]
    if False in answers:
        return 1
    return 0 if answers and all(group and None not in [t.avoids for t in group] for group in found) else 3


# --- what a person sees -----------------------------------------------------------------------


def _print(
    issue: Issue,
    tried: Sequence[Sequence[Change]],
    found: Sequence[Sequence[Trial]],
    faulty: Sequence[CellResult],
    console: Console,
) -> None:
    ascii_only = is_ascii(console)

    def line(text: str, style: str = "") -> None:
        console.print(Text(plain(text, ascii_only), style=style), soft_wrap=True)

    line(f"{issue.id}: {issue.title}", "bold")
    if not faulty:
        line("no cell of this matrix shows it, so nothing can be said of its workarounds", "yellow")
        return
    line(f"{count_text(len(faulty), 'cell')} of this matrix show it")
    for advice, group in zip(tried, found, strict=True):
        console.print()
        line(*_headline(advice, group))
        console.print(_table(group, ascii_only))
    console.print()
    line("behind an arrow: the unchanged settings with a toolchain that has no such fault", "dim")


def _headline(advice: Sequence[Change], group: Sequence[Trial]) -> tuple[str, str]:
    name = " or ".join(map(change_text, advice))
    answers = [trial.avoids for trial in group]
    if False in answers:
        failed = f"{answers.count(False)} of {count_text(len(answers), 'trial')} failed"
        return f"✖ {name} does not avoid it: {failed}", "bold red"
    if not answers or None in answers:
        return f"? {name}: not answered everywhere", "bold yellow"
    return f"✔ {name} avoids it ({count_text(len(answers), 'trial')})", "bold green"


_COLUMNS = ("with", "on", "verdict", "registers", "device, µs", "compile, CPU s", "cells")


def _table(group: Sequence[Trial], ascii_only: bool) -> Table:
    """A row for trials that differ in nothing but their toolchain. What nobody measured has no column."""
    rows: dict[tuple[str, ...], list[Trial]] = defaultdict(list)
    for trial in group:
        costs = trial.cost, trial.mended or Cost(None, None, None)
        registers = _both(*(cost.registers for cost in costs), form="{:.0f}")
        device = _both(*(cost.device_us for cost in costs), form="{:.1f}")
        rows[trial.change, trial.arch, trial.verdict, registers, device].append(trial)
    cells = []
    for key, trials_ in rows.items():
        now = [trial.cost.compile_seconds for trial in trials_]
        mended = [trial.mended.compile_seconds for trial in trials_ if trial.mended]
        cells.append((*key, _both(_median(now), _median(mended), form="{:.1f}"), str(len(trials_))))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    kept = [at for at in range(len(_COLUMNS)) if any(row[at] for row in cells)]
    for at in kept:
        table.add_column(plain(_COLUMNS[at], ascii_only), no_wrap=True)
    for row in sorted(cells, key=lambda row: (row[0], arch_key(row[1]))):
        table.add_row(*(Text(plain(row[at], ascii_only)) for at in kept))
    return table


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _both(now: float | None, mended: float | None, *, form: str) -> str:
    parts = [form.format(value) if value is not None else "?" for value in (now, mended)]
    return "" if now is None else " → ".join(parts if mended is not None else parts[:1])
