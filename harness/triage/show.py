"""A triage as a table, a paragraph per kernel, and the commands to go on with."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version
from rich.console import Console
from rich.table import Table

from harness.matrix.explain import toml
from harness.matrix.problems import listing
from harness.matrix.write import case_table
from harness.model import Cell, Toolchain
from harness.triage.findings import KernelFinding, short
from harness.triage.sweep import Asked, Setting

_TABLE_ROWS = 24


def table(asked: Sequence[Asked]) -> Table:
    """A row per input, a column per backend; rows that the same frontends answer alike are one."""
    toolkits = sorted({a.setting.cuda_toolkit for a in asked}, key=Version)
    answers: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for one in asked:
        s = one.setting
        level = "" if s.level is None else f"-O{s.level}"
        row = (s.kernel, " ".join(filter(None, (s.arch, level, s.variant[1]))), s.cuda_tile)
        answers[row][s.cuda_toolkit] = short(one.result)
    merged: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[str]] = defaultdict(list)
    for (kernel, what, frontend), cells in answers.items():
        merged[kernel, what, tuple(sorted(cells.items()))].append(frontend)
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for head in ("kernel", "input", "cuda-tile", *toolkits):
        shown.add_column(head, overflow="fold")
    rows = sorted(merged.items(), key=lambda item: (not _fails(item[0][2]), *_place(item[0][:2])))
    for (kernel, what, outcomes), frontends in rows[:_TABLE_ROWS]:
        ordered = sorted(frontends, key=Version)
        span = ordered[0] if len(ordered) == 1 else f"{ordered[0]}–{ordered[-1]}"
        known = dict(outcomes)
        shown.add_row(kernel, what, span, *(_coloured(known.get(toolkit, "")) for toolkit in toolkits))
    if len(rows) > _TABLE_ROWS:
        shown.add_row(f"and {len(rows) - _TABLE_ROWS} more rows", "", "", *[""] * len(toolkits))
    return shown


def _fails(cells: tuple[tuple[str, str], ...]) -> bool:
    return any(word not in ("compiles", *_NEUTRAL) for _, word in cells)


_NEUTRAL = ("no such target", "unsupported", "broken toolchain", "infra_error", "not_run")


def _place(row: tuple[str, str]) -> tuple[str, int, str]:
    return row[0], len(row[1].split()), row[1]


def _coloured(word: str) -> str:
    if word == "compiles":
        return "[green]compiles[/]"
    return f"[dim]{word}[/]" if word in _NEUTRAL or not word else f"[red]{word}[/]"


def paragraph(found: KernelFinding) -> str:
    """Where it fails and how, where not, what changed, what decides, and what to compare with."""
    worst = found.worst
    if worst is None:
        where = f" {_broken(found)}" if found.broken else ""
        return f"{found.kernel}: compiles in all {found.passes} settings that were tried.{where}"
    s = worst.setting
    ways = listing(f"{name} ({count})" for name, count in sorted(found.outcomes.items()))
    sentences = [
        f"{found.kernel} fails in {found.failures} of {found.failures + found.passes} settings: {ways}.",
        f"Newest failure, {_setting(s)}: {worst.result.judgement.summary}",
    ]
    if len({turn.outcome for turn in found.turns}) > 1:
        told = "; ".join(f"{turn.cuda_toolkit} {turn.outcome}" for turn in found.turns)
        sentences.append(f"The same input on each cuda-toolkit: {told}.")
    sentences.append(_decides(found))
    if found.control is not None:
        sentences.append(f"Nearest that compiles: {found.control_differs}.")
    if found.broken:
        sentences.append(_broken(found))
    return " ".join(sentences)


def _broken(found: KernelFinding) -> str:
    return f"Not even a one-line kernel compiles with {listing(found.broken)}: no kernel is blamed for that."


def _decides(found: KernelFinding) -> str:
    """Which axis decides, alone or together with others."""
    told = [
        f"{d.axis} ({listing(d.bad[:6])} {'fail' if len(d.bad) > 1 else 'fails'}, {listing(d.good[:6])} "
        f"{'do' if len(d.good) > 1 else 'does'} not)"
        for d in found.decisions
    ]
    text = ""
    if len(told) == 1:
        text = f"The {told[0].replace(' (', ' alone decides (', 1)}."
    elif told:
        text = f"It takes several things together, and changing one of them is enough: {'; '.join(told)}."
    if found.differs_along:
        text += f" Changing the {listing(found.differs_along)} changes how it fails."
    return text.strip() or "Nothing that was tried makes a difference."


def _setting(s: Setting) -> str:
    level = "" if s.level is None else f" -O{s.level}"
    variant = f", {s.variant[1]}" if s.variant[0] else ""
    return f"cuda-tile {s.cuda_tile} with cuda-toolkit {s.cuda_toolkit} for {s.arch}{level}{variant}"


# --- going on ---------------------------------------------------------------------------------


def matrix_text(found: KernelFinding, cells: dict[Setting, Cell], kernel: str, compile_seconds: float) -> str:
    """A matrix that shows the newest failure beside its nearest control."""
    assert found.worst is not None
    bad = cells[found.worst.setting]
    good = cells[found.control.setting] if found.control is not None else bad
    chains = dict.fromkeys((bad.toolchain, good.toolchain))
    archs = dict.fromkeys((bad.arch, good.arch))
    lines = [f"# {found.kernel}, as triage found it:   python -m harness run matrix.toml", ""]
    for chain in chains:
        lines += [*_toolchain(chain), ""]
    lines += ["[target]", f"arch = {toml(list(archs))}", ""]
    for case in {cell.case.digest: cell.case for cell in (bad, good)}.values():
        table = {**case_table(case), "kernel": f"{kernel}:{case.kernel.rpartition(':')[2]}"}
        lines += ["[[case]]", *(f"{key} = {toml(value)}" for key, value in table.items()), ""]
    lines += ["[timeouts]", f"compile = {toml(compile_seconds)}", ""]
    return "\n".join(lines)


def _toolchain(chain: Toolchain) -> list[str]:
    return [
        "[[toolchain]]",
        f"cuda_tile = {toml(chain.cuda_tile)}",
        f"cuda_toolkit = {toml(chain.cuda_toolkit)}",
    ]


def commands(found: KernelFinding, cells: dict[Setting, Cell], folder: Path) -> list[str]:
    """What to run next: look again, bisect, reduce, and make a report that stands alone."""
    assert found.worst is not None
    cell = cells[found.worst.setting]
    matrix, results = str(folder / "matrix.toml"), str(folder / "results")
    over = ["--over", "cuda-tile"] if [d.axis for d in found.decisions] == ["frontend"] else []
    picked = ["--matrix", matrix, "--out", results]
    run = ["python", "-m", "harness"]
    words = [
        [*run, "run", matrix, "--out", results],
        [*run, "bisect", cell.id, *over, *picked],
        [*run, "reduce", cell.id, *picked],
        [*run, "repro", "new", cell.id, "--out", results],
    ]
    return [shlex.join(command) for command in words]


def render(
    findings: Sequence[KernelFinding], asked: Sequence[Asked], console: Console, notes: Sequence[str]
) -> None:
    """Table and paragraphs."""
    console.print(table(asked))
    for found in findings:
        console.print()
        console.print(paragraph(found), markup=False)
    for note in notes:
        console.print(note, style="dim", markup=False)


def as_json(findings: Sequence[KernelFinding], asked: Sequence[Asked]) -> dict[str, Any]:
    """For scripts: a finding per kernel, and every answer."""
    return {
        "kernels": [
            {
                "kernel": found.kernel,
                "fails": found.worst is not None,
                "failures": found.failures,
                "passes": found.passes,
                "outcomes": dict(found.outcomes),
                "newest_failure": found.worst.setting.axes if found.worst else None,
                "summary": found.worst.result.judgement.summary if found.worst else None,
                "decided_by": [
                    {"axis": d.axis, "fails": list(d.bad), "passes": list(d.good)} for d in found.decisions
                ],
                "fails_otherwise_along": list(found.differs_along),
                "releases": [[turn.cuda_toolkit, turn.outcome] for turn in found.turns],
                "control": found.control.setting.axes if found.control else None,
                "control_differs": found.control_differs,
                "broken_toolchains": list(found.broken),
                "text": paragraph(found),
            }
            for found in findings
        ],
        "answers": [
            {
                "kernel": a.setting.kernel,
                **a.setting.axes,
                "verdict": a.result.verdict,
                "outcome": short(a.result),
            }
            for a in asked
        ],
    }
