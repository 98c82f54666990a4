"""A triage as a table, a paragraph per kernel, and the commands to go on with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.version import Version
from rich.console import Console
from rich.table import Table

from harness.matrix.problems import listing
from harness.triage.asked import Asked, Setting, is_rejection, short
from harness.triage.contrasts import Decision
from harness.triage.findings import KernelFinding
from harness.triage.variants import AXES as CHANGES

_ROWS = 16
_NEUTRAL = ("no target", "refused", "broken toolchain", "rejected", "infra_error", "not_run")


def tables(asked: Sequence[Asked], findings: Sequence[KernelFinding]) -> list[Table]:
    """Of each kernel the reported input on every toolchain, and what changes around its newest failure.
    Of several of which there is nothing to tell, none."""
    shown = []
    quiet = [found for found in findings if _is_quiet(found)]
    for found in findings if len(quiet) == 1 else [found for found in findings if found not in quiet]:
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


def _is_quiet(found: KernelFinding) -> bool:
    """Whether it compiles everywhere, and there is nothing else to say of it."""
    return found.worst is None and bool(found.passes) and not _remarks(found)


def _change(setting: Setting) -> str:
    level = "" if setting.level is None else f"-O{setting.level}"
    return " ".join(filter(None, (level, setting.variant[1])))


def _table(asked: Sequence[Asked], title: str, what: Callable[[Setting], str]) -> Table:
    """A row per input, a column per backend; frontends that answer alike share a row."""
    toolkits = sorted({a.setting.cuda_toolkit for a in asked}, key=Version)
    answers: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for one in asked:
        answers[what(one.setting)][one.setting.cuda_tile][one.setting.cuda_toolkit] = _word(one)
    shown = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    heads = ("input", "cuda-tile", *toolkits)
    for head in heads:
        shown.add_column(head, no_wrap=True, overflow="ellipsis")
    every = sorted({a.setting.cuda_tile for a in asked}, key=Version)
    rows = [
        (label, _spans(frontends, every), known)
        for label, answered in answers.items()
        for frontends, known in _alike(answered)
    ]
    rows.sort(key=lambda row: (not _fails(row[2].values()), row[0]))
    for label, frontends, known in rows[:_ROWS]:
        shown.add_row(label, frontends, *(_coloured(known.get(toolkit, "")) for toolkit in toolkits))
    if len(rows) > _ROWS:
        shown.add_row(f"and {len(rows) - _ROWS} more", *[""] * (len(heads) - 1))
    return shown


_SHORTER = {"compiles": "✔", "no such target": "no target", "unsupported": "refused"}


def _word(asked: Asked) -> str:
    word = "rejected" if is_rejection(asked.result) else short(asked.result)
    return _SHORTER.get(word, word)


def _alike(answered: Mapping[str, Mapping[str, str]]) -> list[tuple[list[str], dict[str, str]]]:
    """Frontends of which no two answers differ, with the answers of all of them together."""
    groups: list[tuple[list[str], dict[str, str]]] = []
    by_knowledge = sorted(answered, key=lambda frontend: (-len(answered[frontend]), Version(frontend)))
    for frontend in by_knowledge:
        mine = answered[frontend]
        for frontends, known in groups:
            shared = known.keys() & mine.keys()
            if shared and all(known[toolkit] == mine[toolkit] for toolkit in shared):
                frontends.append(frontend)
                known.update(mine)
                break
        else:
            groups.append(([frontend], dict(mine)))
    return groups


def _spans(frontends: Sequence[str], every: Sequence[str]) -> str:
    """Versions as spans: 1.3.0–1.5.0, 1.7.0; a span leaves out none of `every` that lies inside."""
    spans: list[list[str]] = []
    for version in sorted(frontends, key=Version):
        if spans and every.index(version) == every.index(spans[-1][-1]) + 1:
            spans[-1].append(version)
        else:
            spans.append([version])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]}–{span[-1]}" for span in spans)


def _fails(words: Iterable[str]) -> bool:
    return any(word not in ("✔", *_NEUTRAL) for word in words)


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
    for kind in found.kinds:
        sentences.append(
            f"Another kind of failure, {short(kind.worst.result)} ({kind.failures}), newest with "
            f"{_setting(kind.worst.setting)}: {decided(kind.decisions, ())}"
        )
    return " ".join([*sentences, *_remarks(found)])


def _harmless(found: KernelFinding) -> str:
    if found.passes:
        where = f"in all {found.passes} settings that tell anything"
        if found.unasked:
            asked = "1 setting that was" if found.passes == 1 else f"{found.passes} settings that were"
            where = f"in the {asked} asked; {found.unasked} more were in mind"
        return f"{found.kernel}: compiles {where}. It was compiled only; results were not checked."
    if found.unread:
        return f"{found.kernel}: could not be looked into. {' '.join(map(_ended, found.unread))}"
    if found.rejected:
        return f"{found.kernel}: no frontend takes it."
    told = listing(f"{name} ({count})" for name, count in sorted(found.silent.items()))
    return f"{found.kernel}: no setting told anything: {told}."


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
    return decided(found.decisions, found.ways)


def decided(decisions: Sequence[Decision], ways_apart: Sequence[str]) -> str:
    """The same of one kind of failure; `ways_apart` are axes that change how it fails."""
    where = [d for d in decisions if d.axis not in CHANGES]
    changed = [d for d in decisions if d.axis in CHANGES]
    sentences = []
    if len(where) == 1 and changed:
        sentences.append(f"As reported, the {where[0].axis} decides: {_values(where[0])}.")
    elif len(where) == 1:
        sentences.append(f"The {where[0].axis} alone decides where: {_values(where[0])}.")
    elif where:
        told = "; ".join(f"{d.axis} ({_values(d)})" for d in where)
        sentences.append(f"It takes several things together: {told}.")
    elif len(changed) == 1:
        sentences.append(f"The {changed[0].axis} alone decides: {_values(changed[0])}.")
        changed = []
    if ways_apart:
        ways = [f"the {axis}" for axis in ways_apart]
        sentences.append(
            f"{listing(ways).capitalize()} {'decides' if len(ways) == 1 else 'decide'} how it fails."
        )
    if changed:
        told = "; ".join(f"{d.axis} ({listing(d.good[:6], 'or')})" for d in changed)
        begin = "Where it fails as reported, any" if where else "Any"
        sentences.append(f"{begin} one of these changes avoids it: {told}.")
    return " ".join(sentences) or "Nothing that was tried makes a difference."


def _values(decision: Decision) -> str:
    """Values that fail and values that do not; one that does either is named apart, or alone."""
    both = [value for value in decision.bad if value in decision.good]
    bad = [value for value in decision.bad if value not in both]
    good = [value for value in decision.good if value not in both]
    told = []
    if bad:
        told.append(f"{listing(bad[:6])} {'fail' if len(bad) > 1 else 'fails'}")
    if good:
        told.append(f"{listing(good[:6])} {'do' if len(good) > 1 else 'does'} not{'' if bad else ' fail'}")
    if both:
        told.append(f"{listing(both[:6])} {'do' if len(both) > 1 else 'does'} or not, by the rest")
    return ", ".join(told)


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _setting(s: Setting) -> str:
    level = "" if s.level is None else f" -O{s.level}"
    variant = f", {s.variant[1]}" if s.variant[0] else ""
    return f"cuda-tile {s.cuda_tile} with cuda-toolkit {s.cuda_toolkit} for {s.arch}{level}{variant}"


def render(
    findings: Sequence[KernelFinding], asked: Sequence[Asked], console: Console, notes: Sequence[str]
) -> None:
    """Tables and paragraphs."""
    for table in tables(asked, findings):
        console.print(table)
        console.print()
    quiet = [found for found in findings if _is_quiet(found)]
    for found in findings if len(quiet) == 1 else [found for found in findings if found not in quiet]:
        console.print(paragraph(found), markup=False)
        console.print()
    if len(quiet) > 1:
        left = any(found.unasked for found in quiet)
        where = "the settings that were asked" if left else "all settings that tell anything"
        told = f"These compile in {where}. They were compiled only; results were not checked."
        console.print(told, markup=False)
        for found in quiet:
            more = f"; {found.unasked} more were in mind" if found.unasked else ""
            console.print(f"  {found.kernel}: {found.passes} settings{more}", markup=False)
        console.print()
    for note in notes:
        console.print(note, style="dim", markup=False)
