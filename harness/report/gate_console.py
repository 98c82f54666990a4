"""The gate's answer on a terminal: the decision on the first line, then why, heaviest reason first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.gate.decision import SHOWN_DETAILS, Answer, Decision, Reason, Weight
from harness.report.words import count_text, is_ascii, plain

_STYLES = {Answer.GO: "bold green", Answer.NO_GO: "bold red", Answer.CANNOT_TELL: "bold yellow"}
_MARKS = {
    Weight.FAILS: ("✖", "X", "bold red"),
    Weight.UNDECIDED: ("?", "?", "bold yellow"),
    Weight.WARNS: ("!", "!", "yellow"),
    Weight.NOTED: ("·", "-", "dim"),
}


def render_decision(
    decision: Decision, out_paths: Iterable[Path], console: Console, *, quiet: bool = False
) -> None:
    """Print the decision and its reasons; `quiet` leaves out what has no weight."""
    ascii_only = is_ascii(console)
    first = Text(str(decision.answer), style=_STYLES[decision.answer])
    first.append(plain(f": {decision.baseline} → {decision.candidate}: {decision.headline}", ascii_only))
    console.print(first, soft_wrap=True)
    for reason in decision.reasons:
        if not (quiet and reason.weight is Weight.NOTED):
            _print_reason(reason, console, ascii_only)
    console.print()
    console.print(Text(plain(_counts(decision), ascii_only), style="bold"))
    paths = plain(" · ".join(map(str, out_paths)), ascii_only)
    console.print(Text(paths, style="dim"), soft_wrap=True)


def _print_reason(reason: Reason, console: Console, ascii_only: bool) -> None:
    symbol, ascii_symbol, style = _MARKS[reason.weight]
    heading = f"{ascii_symbol if ascii_only else symbol} {reason.kind} ({reason.weight})".replace("_", " ")
    console.print()
    console.print(Text(plain(heading, ascii_only), style=style))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim", min_width=8)
    table.add_column(overflow="fold")
    for name, text in _rows(reason):
        table.add_row(name, Text(plain(text, ascii_only)))
    console.print(Padding(table, (0, 0, 0, 2)))


def _rows(reason: Reason) -> Sequence[tuple[str, str]]:
    shown = reason.details[:SHOWN_DETAILS]
    more = len(reason.details) - len(shown)
    lines = [*shown, *([f"and {more} more, in gate.json"] if more else [])]
    return [
        ("what", reason.text),
        *([("where", reason.where)] if reason.where else []),
        *([("known", f"known issue {reason.known}")] if reason.known else []),
        *(("", line) for line in lines),
        *([("more", reason.command)] if reason.command else []),
    ]


def _counts(decision: Decision) -> str:
    counted = [f"{count} {change.replace('_', ' ')}" for change, count in decision.counts.items()]
    return " · ".join([count_text(len(decision.pairs), "cell"), *counted])
