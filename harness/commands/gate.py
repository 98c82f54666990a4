"""`harness gate`: judge a candidate toolchain, driver or host against its baseline."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from harness import __version__
from harness.command_text import Place
from harness.commands.run import Options as RunOptions
from harness.commands.run import judge_all, known_issues_beside, with_drawn_cases
from harness.gate import Decision, compare, decide
from harness.gate.compare import Side, question
from harness.gate.evidence import Evidence, is_conclusive, read_evidence, side
from harness.gate.select import Couple, SelectionError, couples
from harness.lab import Deadlines, Lab
from harness.matrix import Matrix, load_matrix
from harness.matrix.problems import listing
from harness.model import Cell, CellResult, digest_of
from harness.plan import plan
from harness.process.signals import finishing
from harness.report.files import forget_earlier, set_aside, write_atomically
from harness.report.gate_console import render_decision
from harness.report.gate_junit import write_gate_junit
from harness.report.gate_markdown import markdown
from harness.report.github import append_summary, is_github, workflow_commands
from harness.report.html import write_html
from harness.report.jsonl import write_results
from harness.store import FILE_NAME, KERNELS_FOLDER, Store

REPORTS = ("gate.md", "gate.json", "junit.xml", "report.html", "results.jsonl")
"""Files that every gate writes below its --out."""


@dataclass(frozen=True)
class Options:
    """What to compare. Names pick toolchains of the matrix; directories bring recorded results, which
    spare running what they hold. Without names, the directories are the two sides."""

    run: RunOptions
    baseline: str | None = None
    candidate: str | None = None
    results_baseline: tuple[Path, ...] = ()
    results_candidate: tuple[Path, ...] = ()


@dataclass(frozen=True)
class _Sides:
    """The two sides, what to call them, which directory explains a result, and whether they are cut short."""

    baseline: Side
    candidate: Side
    names: tuple[str, str]
    explained_in: Callable[[CellResult], Path]
    interrupted: bool = False


def gate_command(path: Path, options: Options) -> int:
    """Compare and decide; write every report. 0 go, 1 no-go, 3 could not tell."""
    console = Console(stderr=options.run.as_json, highlight=False)
    if (options.baseline is None) != (options.candidate is None):
        raise SelectionError("name both --baseline and --candidate, or neither and two directories")
    if options.baseline is not None:
        matrix, sides = _of_toolchains(path, options)
    else:
        matrix, sides = _of_directories(path, options)

    def explain(result: CellResult) -> str:
        return Place(sides.explained_in(result), options.run.store).explain(result.cell.id)

    issues = known_issues_beside(path, options.run.known_issues)

    def known_as(result: CellResult) -> str | None:
        """Whatever the entry says of versions: a gate judges the candidate, not what is known."""
        shown = (i.id for i in issues if i.shows_in(result) and i.would_speak_of(result, path.parent))
        return next(shown, None)

    decision = decide(
        compare(sides.baseline, sides.candidate, matrix.gate),
        matrix.gate,
        *sides.names,
        explain=explain,
        known_as=known_as,
    )
    with finishing():
        paths = write_gate_reports(decision, options.run.out, options.run.store)
    if options.run.as_json:
        print(json.dumps(decision.to_json()))
    render_decision(decision, paths, console, quiet=options.run.quiet)
    if is_github(os.environ):
        append_summary(markdown(decision))
        for line in workflow_commands(decision):
            console.print(line, markup=False, soft_wrap=True)
    if sides.interrupted:
        raise KeyboardInterrupt
    return decision.answer.exit_code


def write_gate_reports(decision: Decision, out: Path, store: Path | None = None) -> list[Path]:
    """Write every one of REPORTS below `out`; returns their paths."""
    results = _both_sides(decision)
    summary, plain, suites, page, rows = (out / name for name in REPORTS)
    write_atomically(summary, markdown(decision))
    write_atomically(plain, json.dumps(decision.to_json(), indent=2) + "\n")
    write_gate_junit(decision, suites)
    write_results(results, rows)
    write_html(
        results,
        page,
        title=f"Gate: {decision.baseline} → {decision.candidate}",
        facts={"harness": __version__, "baseline": decision.baseline, "candidate": decision.candidate},
        gate=decision.for_page(),
        store=store,
    )
    forget_earlier(out, REPORTS)
    return [summary, plain, suites, page, rows]


def _both_sides(decision: Decision) -> list[CellResult]:
    """Each cell once: where both sides are one cell, under two drivers, the candidate's answer."""
    sides = [pair.baseline for pair in decision.pairs], [pair.candidate for pair in decision.pairs]
    found = {result.cell.id: result for side in sides for result in side if result is not None}
    return list(found.values())


# --- toolchains of the matrix -----------------------------------------------------------------


def _of_toolchains(path: Path, options: Options) -> tuple[Matrix, _Sides]:
    """Run what no directory answers, in one run below `out`."""
    assert options.baseline is not None and options.candidate is not None
    out, progress = options.run.out, Console(stderr=True, highlight=False)
    with Lab(options.run.store, offline=options.run.offline, progress=None) as lab:
        matrix = load_matrix(path, known_versions=lab.provisioner.versions)
        lab.deadlines = Deadlines(trace=matrix.timeouts.trace, compile=matrix.timeouts.compile)
        paired = couples(matrix.toolchains, options.baseline, options.candidate)
        chains = dict.fromkeys(chain for pair in paired for chain in (pair.baseline, pair.candidate))
        asked = replace(with_drawn_cases(matrix, out), toolchains=tuple(chains))
        cells = tuple(plan(asked))
        recorded = _recorded(cells, paired, options)
        with Store.open(out) as store:
            set_aside(out, REPORTS)
            run_id = store.start_run(
                asked.digest,
                cells,
                argv=sys.argv[1:],
                versions={"harness": __version__},
                host={KERNELS_FOLDER: str(matrix.path.parent.absolute())},
            )
            answers = {id_: result for id_, result in recorded.results.items() if is_conclusive(result)}
            interrupted, _ = judge_all(lab, asked, cells, store, run_id, options.run, progress, answers)
            with finishing():
                if not interrupted:
                    store.finish_run(run_id)
                for result in store.results(run_id):
                    recorded.results[result.cell.id] = result
    names = [{getattr(pair, side).name: pair.name for pair in paired} for side in ("baseline", "candidate")]
    before, after = (side(recorded, named) for named in names)
    called = (options.baseline, options.candidate)
    return matrix, _Sides(before, after, called, lambda result: out, interrupted)


def _recorded(cells: Sequence[Cell], paired: Sequence[Couple], options: Options) -> Evidence:
    """Recorded answers to the planned cells. They are found by what was asked rather than by id, as
    another host may have asked for another range of drivers."""
    found = Evidence()
    for directories, chains in (
        (options.results_baseline, {pair.baseline.name for pair in paired}),
        (options.results_candidate, {pair.candidate.name for pair in paired}),
    ):
        evidence = read_evidence(directories, cells)
        ids = {question(r.cell, r.cell.toolchain.name): id_ for id_, r in evidence.results.items()}
        for cell in cells:
            id_ = ids.get(question(cell, cell.toolchain.name))
            if id_ is not None and cell.toolchain.name in chains:
                found.results[cell.id] = replace(evidence.results[id_], cell=cell)
                found.timings[cell.id] = evidence.timings[id_]
    return found


# --- two directories --------------------------------------------------------------------------


def _of_directories(path: Path, options: Options) -> tuple[Matrix, _Sides]:
    """Compare what two hosts or drivers answered; nothing is run."""
    if not options.results_baseline or not options.results_candidate:
        raise SelectionError(
            "nothing to compare: name toolchains with --baseline and --candidate, or directories "
            "with --results-baseline and --results-candidate"
        )
    matrix = load_matrix(path)
    cells = tuple(plan(with_drawn_cases(matrix, options.run.out)))
    before = read_evidence(options.results_baseline, cells)
    after = read_evidence(options.results_candidate, cells)
    names, devices = _renamed(before, after)
    sides = side(before, names[0], devices), side(after, names[1])
    with Store.open(options.run.out) as store:
        joined = {**before.results, **after.results}
        run_id = store.start_run(
            digest_of(sorted(joined)),
            [result.cell for result in joined.values()],
            argv=sys.argv[1:],
            versions={"harness": __version__},
        )
        for result in joined.values():
            store.record(run_id, result)
        store.finish_run(run_id)
    kept = {id(result): options.results_baseline for result in before.results.values()}
    kept |= {id(result): options.results_candidate for result in after.results.values()}

    def explained_in(result: CellResult) -> Path:
        stores = [place for place in kept.get(id(result), ()) if (place / FILE_NAME).is_file()]
        return stores[0] if stores else options.run.out

    named = (_joined(options.results_baseline), _joined(options.results_candidate))
    return matrix, _Sides(*sides, named, explained_in)


def _renamed(
    before: Evidence, after: Evidence
) -> tuple[tuple[dict[str, str] | None, dict[str, str] | None], dict[str, str]]:
    """What toolchains and devices of two directories are paired by: their names, if they share any; where
    each side has but one, it is paired with the other's."""
    chains = [{r.cell.toolchain.name for r in e.results.values()} for e in (before, after)]
    devices = [{r.cell.device.name for r in e.results.values() if r.cell.device} for e in (before, after)]
    if any(not side for side in chains):
        raise SelectionError("one of the directories holds no results; run the matrix there first")
    names: tuple[dict[str, str] | None, dict[str, str] | None] = (None, None)
    if not chains[0] & chains[1]:
        if not len(chains[0]) == len(chains[1]) == 1:
            raise SelectionError(
                f"the directories share no toolchain ({listing(sorted(chains[0]))} against "
                f"{listing(sorted(chains[1]))}); name one of each with --baseline and --candidate"
            )
        names = dict.fromkeys(chains[0], ""), dict.fromkeys(chains[1], "")
    renamed: dict[str, str] = {}
    if not devices[0] & devices[1] and len(devices[0]) == len(devices[1]) == 1:
        renamed = {devices[0].pop(): devices[1].pop()}
    return names, renamed


def _joined(directories: Sequence[Path]) -> str:
    return " + ".join(map(str, directories))
