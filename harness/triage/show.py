"""A triage as a table, a paragraph per kernel, and the commands to go on with."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.version import Version
from rich.console import Console
from rich.table import Table

from harness.matrix.explain import toml
from harness.matrix.problems import listing
from harness.matrix.write import case_table
from harness.model import Cell, Toolchain
from harness.triage.findings import Decision, KernelFinding, short
from harness.triage.sweep import Asked, Setting, is_rejection

_ROWS = 16
_NEUTRAL = ("no target", "refused", "broken toolchain", "rejected", "infra_error", "not_run")
_PARAMETERS = ("dtype", "signature", "constant")


def tables(asked: Sequence[Asked], findings: Sequence[KernelFinding]) -> list[Table]:
    """Of each kernel the reported input on every toolchain, and what changes around its newest failure."""
    shown = []
    for found in findings:
        mine = [a for a in asked if a.setting.kernel == found.kernel]
        plain = [a for a in mine if not a.setting.variant[0] and a.setting.level is None]
        shown.append(_table(plain, found.kernel, lambda s: s.arch))
        if found.worst is None:
            continue
        at = found.worst.setting
        near = [
            a
            for a in mine
            if (a.setting.cuda_tile, a.setting.arch) == (at.cuda_tile, at.arch)
            and (a.setting.variant[0] or a.setting.level is not None)
        ]
        if near:
            shown.append(_table(near, f"{at.kernel} for {at.arch}, changed", _change))
    return shown


def _change(setting: Setting) -> str:
    level = "" if setting.level is None else f"-O{setting.level}"
    return " ".join(filter(None, (level, setting.variant[1])))


def _table(asked: Sequence[Asked], title: str, what: Callable[[Setting], str]) -> Table:
    """A row per input, a column per backend; frontends that answer alike share a row."""
    toolkits = sorted({a.setting.cuda_toolkit for a in asked}, key=Version)
    answers: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for one in asked:
        answers[what(one.setting), one.setting.cuda_tile][one.setting.cuda_toolkit] = _word(one)
    merged: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = defaultdict(list)
    for (label, frontend), cells in answers.items():
        merged[label, tuple(sorted(cells.items()))].append(frontend)
    shown = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    heads = ("input", "cuda-tile", *toolkits)
    for head in heads:
        shown.add_column(head, no_wrap=True, overflow="ellipsis")
    rows = sorted(merged.items(), key=lambda item: (not _fails(item[0][1]), item[0][0]))
    for (label, outcomes), frontends in rows[:_ROWS]:
        ordered = sorted(frontends, key=Version)
        span = ordered[0] if len(ordered) == 1 else f"{ordered[0]}–{ordered[-1]}"
        known = dict(outcomes)
        shown.add_row(label, span, *(_coloured(known.get(toolkit, "")) for toolkit in toolkits))
    if len(rows) > _ROWS:
        shown.add_row(f"and {len(rows) - _ROWS} more", *[""] * (len(heads) - 1))
    return shown


_SHORTER = {"compiles": "✔", "no such target": "no target", "unsupported": "refused"}


def _word(asked: Asked) -> str:
    word = "rejected" if is_rejection(asked.result) else short(asked.result)
    return _SHORTER.get(word, word)


def _fails(cells: tuple[tuple[str, str], ...]) -> bool:
    return any(word not in ("✔", *_NEUTRAL) for _, word in cells)


def _coloured(word: str) -> str:
    if word == "✔":
        return "[green]✔[/]"
    return f"[dim]{word}[/]" if word in _NEUTRAL or not word else f"[red]{word}[/]"


def paragraph(found: KernelFinding) -> str:
    """Where it fails and how, where not, what changed, what decides, and what to compare with."""
    worst = found.worst
    if worst is None:
        return " ".join([_harmless(found), *_remarks(found)])
    ways = listing(f"{name} ({count})" for name, count in sorted(found.outcomes.items()))
    sentences = [
        f"{found.kernel} fails in {found.failures} of {found.failures + found.passes} settings: {ways}.",
        f"Newest failure, {_setting(worst.setting)}: {_ended(worst.result.judgement.summary)}",
    ]
    if len({turn.outcome for turn in found.turns}) > 1:
        told = "; ".join(f"{turn.cuda_toolkit} {turn.outcome}" for turn in found.turns)
        sentences.append(f"The same input on each cuda-toolkit: {told}.")
    sentences.append(decides(found))
    if found.control is not None:
        sentences.append(f"Nearest that compiles: {found.control_differs}.")
    return " ".join([*sentences, *_remarks(found)])


def _harmless(found: KernelFinding) -> str:
    if found.passes:
        return f"{found.kernel}: compiles in all {found.passes} settings that tell anything."
    if found.rejected:
        return f"{found.kernel}: no frontend takes it."
    return f"{found.kernel}: no setting told anything."


def _remarks(found: KernelFinding) -> list[str]:
    remarks = []
    if found.broken:
        remarks.append(
            f"Not even a one-line kernel compiles with {listing(found.broken)}: no kernel is blamed for that."
        )
    if found.rejected:
        remarks.append(f"Rejected by {_ended('; '.join(found.rejected))}")
    if found.others:
        remarks.append(f"Other failures nearby: {_ended('; '.join(found.others))}")
    return remarks


def decides(found: KernelFinding) -> str:
    """Which axis decides, alone or together with others, and which changed parameters avoid it."""
    where = [d for d in found.decisions if d.axis not in _PARAMETERS]
    changed = [d for d in found.decisions if d.axis in _PARAMETERS]
    sentences = []
    if len(where) == 1:
        sentences.append(f"The {where[0].axis} alone decides where: {_values(where[0])}.")
    elif where:
        told = "; ".join(f"{d.axis} ({_values(d)})" for d in where)
        sentences.append(f"It takes several things together: {told}.")
    elif len(changed) == 1:
        sentences.append(f"The {changed[0].axis} alone decides: {_values(changed[0])}.")
        changed = []
    if found.ways:
        ways = [f"the {axis}" for axis in found.ways]
        sentences.append(
            f"{listing(ways).capitalize()} {'decides' if len(ways) == 1 else 'decide'} how it fails."
        )
    if changed:
        told = "; ".join(f"{d.axis} ({listing(d.good[:6], 'or')})" for d in changed)
        sentences.append(f"Of the parameters, these avoid it: {told}.")
    return " ".join(sentences) or "Nothing that was tried makes a difference."


def _values(decision: Decision) -> str:
    bad, good = decision.bad, decision.good
    both = [value for value in bad if value in good]
    bad = tuple(value for value in bad if value not in both) or bad
    return (
        f"{listing(bad[:6])} {'fail' if len(bad) > 1 else 'fails'}, "
        f"{listing(good[:6])} {'do' if len(good) > 1 else 'does'} not"
    )


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _setting(s: Setting) -> str:
    level = "" if s.level is None else f" -O{s.level}"
    variant = f", {s.variant[1]}" if s.variant[0] else ""
    return f"cuda-tile {s.cuda_tile} with cuda-toolkit {s.cuda_toolkit} for {s.arch}{level}{variant}"


# --- going on ---------------------------------------------------------------------------------


def handed_over(found: KernelFinding, cells: Mapping[Setting, Cell], kernel: str) -> list[Cell]:
    """The newest failure and, behind it, its nearest control, as cells of the matrix that is written.
    `kernel` is the kernel's file as that matrix names it."""
    assert found.worst is not None
    kept = [found.worst, *([found.control] if found.control is not None else [])]
    picked = [cells[asked.setting] for asked in kept]
    return [
        replace(cell, case=replace(cell.case, kernel=f"{kernel}:{cell.case.kernel.rpartition(':')[2]}"))
        for cell in picked
    ]


def matrix_text(title: str, cells: Sequence[Cell], compile_seconds: float) -> str:
    """A matrix of these cells."""
    lines = [f"# {title}, as triage found it:   python -m harness run matrix.toml", ""]
    for chain in dict.fromkeys(cell.toolchain for cell in cells):
        lines += [*_toolchain(chain), ""]
    lines += ["[target]", f"arch = {toml(list(dict.fromkeys(cell.arch for cell in cells)))}", ""]
    for case in {cell.case.digest: cell.case for cell in cells}.values():
        lines += ["[[case]]", *(f"{key} = {toml(value)}" for key, value in case_table(case).items()), ""]
    lines += ["[timeouts]", f"compile = {toml(compile_seconds)}", ""]
    return "\n".join(lines)


def _toolchain(chain: Toolchain) -> list[str]:
    return [
        "[[toolchain]]",
        f"cuda_tile = {toml(chain.cuda_tile)}",
        f"cuda_toolkit = {toml(chain.cuda_toolkit)}",
    ]


def commands(found: KernelFinding, cell: Cell, folder: Path) -> list[str]:
    """What to run next: look again, bisect, reduce, and make a report that stands alone."""
    assert found.worst is not None
    matrix, results = str(folder / "matrix.toml"), str(folder / "results")
    over = ["--over", "cuda-tile"] if [d.axis for d in found.decisions] == ["frontend"] else []
    run = ["python", "-m", "harness"]
    name = re.sub(r"[^a-z0-9]+", "-", f"{folder.name}-{found.worst.setting.kernel}".lower()).strip("-")
    words = [
        [*run, "run", matrix, "--out", results],
        [*run, "bisect", cell.id, *over, "--matrix", matrix, "--out", results],
        [*run, "reduce", cell.id, "--matrix", matrix, "--out", results],
        [*run, "repro", "new", cell.id, "--matrix", matrix, "--out", results, "--name", name],
    ]
    return [shlex.join(command) for command in words]


def render(
    findings: Sequence[KernelFinding], asked: Sequence[Asked], console: Console, notes: Sequence[str]
) -> None:
    """Tables and paragraphs."""
    for table in tables(asked, findings):
        console.print(table)
        console.print()
    for found in findings:
        console.print(paragraph(found), markup=False)
        console.print()
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
                "decides_how": list(found.ways),
                "decides": decides(found) if found.worst else None,
                "releases": [[turn.cuda_toolkit, turn.outcome] for turn in found.turns],
                "control": found.control.setting.axes if found.control else None,
                "control_differs": found.control_differs,
                "broken_toolchains": list(found.broken),
                "rejected": list(found.rejected),
                "other_failures": list(found.others),
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
