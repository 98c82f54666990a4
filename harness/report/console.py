"""What a person sees at the end of a run: the table, what is wrong in plain sentences, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.bits import BitReport, compare_bits, sentences
from harness.cluster import AdviceGroup, Finding, advice_groups, findings
from harness.command_text import HERE, Place
from harness.known_issues.assess import NOTHING_KNOWN, Assessment, Seen
from harness.model import CellResult, Verdict
from harness.report.progress import Progress
from harness.report.table import Grid, grids
from harness.report.words import (
    ADVICE_MARK,
    LOOKS,
    UNDECIDED_MARK,
    cell_text,
    chosen_text,
    count_text,
    is_ascii,
    plain,
)

__all__ = ["Progress", "render_summary"]

_GAP = 2
"""Blanks between columns: one of padding, one of the box."""


def render_summary(
    results: Sequence[CellResult],
    out_paths: Iterable[Path],
    console: Console,
    *,
    seconds: float | None = None,
    quiet: bool = False,
    known: Assessment = NOTHING_KNOWN,
    place: Place = HERE,
) -> None:
    """Print a run: `out_paths` are the files written, `seconds` its wall time, `place` where they lie.

    `quiet` leaves the tables and the advice out.
    """
    if not quiet:
        for grid in grids(results):
            _print_grid(grid, console)
    found = findings(results)
    for number, finding in enumerate(found, 1):
        _print_finding(number, finding, console, known, place)
    for seen in known.loud:
        _print_news(seen, console, place)
    remarks = advice_groups(results)
    if remarks and not quiet:
        _print_advice(remarks, console, place)
    if not quiet:
        _print_bits(compare_bits(results), console)
    if known.stale and not quiet:
        text = f"known issues that no cell here asks about: {', '.join(known.stale)}"
        console.print()
        console.print(Text(plain(text, is_ascii(console)), style="dim"))
    _print_totals(results, list(out_paths), console, seconds)


# --- tables -----------------------------------------------------------------------------------


def _print_grid(grid: Grid, console: Console) -> None:
    """One table if it fits the terminal, else one an architecture."""
    ascii_only = is_ascii(console)
    parts = [grid] if _width(grid, ascii_only) <= console.width else [grid.only(arch) for arch in grid.archs]
    console.print()
    console.print(Text(plain(grid.heading, ascii_only), style="bold"))
    for part in parts:
        _print_table(part, console, ascii_only)
    marks = _legend(grid)
    if marks:
        console.print(Text(plain(marks, ascii_only), style="dim"))


def _print_table(grid: Grid, console: Console, ascii_only: bool) -> None:
    table = Table(
        box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )
    for axis in grid.axes:
        table.add_column(axis, no_wrap=True, style="bold", vertical="bottom")
    for backend, arch in grid.columns:
        table.add_column(_header(grid, backend, arch), no_wrap=True)
    for row in grid.rows:
        cells = [_cell(grid.cells.get((row, *column)), ascii_only) for column in grid.columns]
        table.add_row(*(Text(plain(value, ascii_only)) for value in row), *cells)
    console.print()
    console.print(table)


def _header(grid: Grid, backend: str, arch: str) -> Text:
    toolkit, *replaced = backend.split(" +")
    return Text("\n".join([chosen_text(toolkit, grid.toolkits.get(toolkit, toolkit)), *replaced, arch]))


def _cell(result: CellResult | None, ascii_only: bool) -> Text:
    if result is None:
        return Text("")
    style = LOOKS[result.verdict].style
    if result.verdict.is_good and result.judgement.advice:
        style = "yellow"
    return Text(cell_text(result, ascii_only), style=style)


def _width(grid: Grid, ascii_only: bool) -> int:
    """Characters the grid needs on one line."""
    widths = [max(len(axis), *(len(row[at]) for row in grid.rows)) for at, axis in enumerate(grid.axes)]
    for backend, arch in grid.columns:
        texts = [cell_text(r, ascii_only) for (_, b, a), r in grid.cells.items() if (b, a) == (backend, arch)]
        widths.append(max(map(len, [*texts, *_header(grid, backend, arch).plain.split("\n")])))
    return sum(widths) + _GAP * len(widths)


def _legend(grid: Grid) -> str:
    shown = list(grid.cells.values())
    parts = ["numbers: registers a thread"] if any(result.inspection for result in shown) else []
    if any(result.judgement.advice for result in shown):
        parts.append(f"{ADVICE_MARK} advice below")
    if any(cell_text(result).removesuffix(f" {ADVICE_MARK}").endswith(UNDECIDED_MARK) for result in shown):
        parts.append(f"{UNDECIDED_MARK} register pool undecided")
    return " · ".join(parts)


# --- sentences --------------------------------------------------------------------------------


def _print_finding(number: int, finding: Finding, console: Console, known: Assessment, place: Place) -> None:
    ascii_only = is_ascii(console)
    look = LOOKS[finding.verdict]
    symbol = look.ascii if ascii_only else look.symbol
    console.print()
    title = Text(f"{symbol} {number}. ", style=look.style)
    title.append(look.phrase, style=look.style)
    title.append(f"  {finding.verdict}, {count_text(len(finding.cells), 'cell')}", style="dim")
    expected = sorted({known.expected[cell] for cell in finding.cells if cell in known.expected})
    news = sum(cell not in known.expected for cell in finding.cells)
    if expected:
        title.append(f"  known issue {', '.join(expected)}", style="bold green" if not news else "yellow")
        title.append(f", but not in {count_text(news, 'cell')}" if news else "", style="bold red")
    console.print(title)
    lines = [("what", finding.summary), ("where", _where(finding.kernels, finding.settings, finding.archs))]
    if finding.is_about_versions:
        lines.append(("versions", finding.versions.sentence))
    lines.append(("blame", finding.blame))
    lines.append(("more", _Command(place.explain(finding.example))))
    _print_pairs(lines, console, ascii_only)


def _print_news(seen: Seen, console: Console, place: Place) -> None:
    """A known issue that is not as its entry says."""
    ascii_only = is_ascii(console)
    symbol = LOOKS[Verdict.HANG].ascii if ascii_only else LOOKS[Verdict.HANG].symbol
    console.print()
    title = Text(plain(f"{symbol} {seen.text}", ascii_only), style=LOOKS[Verdict.HANG].style)
    title.append(f"  {count_text(len(seen.cells), 'cell')}", style="dim")
    console.print(title)
    _print_pairs([("more", _Command(place.explain(seen.cells[0])))], console, ascii_only)


def _print_advice(groups: Iterable[AdviceGroup], console: Console, place: Place) -> None:
    ascii_only = is_ascii(console)
    console.print()
    console.print(Text(f"{ADVICE_MARK} Advice (fails nothing)", style="bold yellow"))
    lines: list[tuple[str, str]] = []
    for group in groups:
        others = len(group.texts) - 1
        variants = f" (and {count_text(others, 'variant')})" if others else ""
        lines += [
            (group.kind, f"{group.texts[0]}{variants}; {count_text(len(group.cells), 'cell')}"),
            ("", _where((), group.settings, group.archs)),
            ("", group.versions.sentence),
            ("", _Command(place.explain(group.example))),
        ]
    _print_pairs(lines, console, ascii_only)


def _print_bits(report: BitReport, console: Console) -> None:
    """Other bits inside the error bound; nothing where all cells agree or none can be compared."""
    if not report.groups:
        return
    ascii_only = is_ascii(console)
    console.print()
    console.print(
        Text(f"{ADVICE_MARK} Other bits within the error bound (fails nothing)", style="bold yellow")
    )
    agreeing = f"{report.agreeing} of {report.compared} outputs have the same bits in every cell"
    for line in (agreeing, *sentences(report)):
        console.print(Padding(Text(plain(line, ascii_only)), (0, 0, 0, 2)))


def _where(kernels: Sequence[str], settings: str, archs: Sequence[str]) -> str:
    return " · ".join(filter(None, [", ".join(kernels), settings, ", ".join(archs)]))


class _Command(str):
    """A text that is never folded, so that it can be pasted."""


def _print_pairs(lines: Sequence[tuple[str, str]], console: Console, ascii_only: bool) -> None:
    width = max(8, *(len(name) for name, _ in lines))
    for name, text in lines:
        shown = Text(plain(text, ascii_only))
        if isinstance(text, _Command):
            head = Text.assemble("  ", (name.ljust(width), "dim"), "  ")
            console.print(head.append_text(shown), soft_wrap=True)
            continue
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, style="dim", min_width=width)
        table.add_column(overflow="fold")
        table.add_row(name, shown)
        console.print(Padding(table, (0, 0, 0, 2)))


def _print_totals(
    results: Sequence[CellResult],
    out_paths: Sequence[Path],
    console: Console,
    seconds: float | None,
) -> None:
    ascii_only = is_ascii(console)
    counts = Counter(result.verdict for result in results)
    console.print()
    reasons = Counter(
        (result.verdict, str(result.judgement.evidence.get("reason", result.judgement.summary)))
        for result in results
        if result.verdict in (Verdict.SKIPPED, Verdict.NOT_RUN, Verdict.TAINTED)
    )
    for (kind, reason), count in reasons.items():
        line = f"{count_text(count, 'cell')} {LOOKS[kind].word}: {reason}"
        console.print(Text(plain(line, ascii_only), style=LOOKS[kind].style))
    totals = Text(count_text(len(results), "cell"), style="bold")
    for verdict in Verdict:
        if counts[verdict]:
            totals.append(" · ", style="dim")
            totals.append(f"{counts[verdict]} {verdict}", style=LOOKS[verdict].style)
    if seconds is not None:
        totals.append(f" · {seconds:.1f} s", style="dim")
    if ascii_only:
        totals = Text(plain(totals.plain, True))
    console.print(totals)
    if out_paths:
        files = plain(" · ".join(map(str, out_paths)), ascii_only)
        console.print(Text(files, style="dim"), soft_wrap=True)
