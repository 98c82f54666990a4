"""`gate.md`: the gate's answer for job summaries and merge requests.

Compiler and kernel text is untrusted: it stands in code spans or with every character escaped that
Markdown or HTML would act on, and on one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.gate.decision import Answer, Decision, Reason, Weight
from harness.report.words import count_text, plain

MAX_DETAILS = 20
_MAX_BYTES = 900_000
"""GitHub shows job summaries of up to 1 MiB."""

_ACTIVE = re.compile(r"([\\`*_\[\]<>#!|~&@]|:(?=//)|(?<=www)\.)")
_SYMBOLS = {Answer.GO: "✅", Answer.NO_GO: "❌", Answer.CANNOT_TELL: "❔"}
_HEADINGS = {
    Weight.FAILS: "Against it",
    Weight.UNDECIDED: "Undecided",
    Weight.WARNS: "Worth knowing",
    Weight.NOTED: "Also changed",
}


def markdown(decision: Decision) -> str:
    """The summary; its first line is the decision."""
    lines = [
        f"# {_SYMBOLS[decision.answer]} {decision.answer}: {escape(decision.baseline)} → "
        f"{escape(decision.candidate)}",
        "",
        f"{escape(decision.headline)}.",
        "",
        *_table(decision),
    ]
    for weight, heading in _HEADINGS.items():
        reasons = [reason for reason in decision.reasons if reason.weight is weight]
        if reasons:
            lines += ["", f"## {heading}", ""]
            for reason in reasons:
                lines += _reason(reason)
    text = "\n".join(lines) + "\n"
    kept = text.encode()[:_MAX_BYTES].decode(errors="ignore")
    return kept if kept == text else kept.rpartition("\n")[0] + "\n\nCut here; gate.json has the rest.\n"


def escape(text: str) -> str:
    """Text as it is, on one line, whatever it holds."""
    return _ACTIVE.sub(r"\\\1", _one_line(text)).replace("\\<", "&lt;").replace("\\&", "&amp;")


def code(text: str) -> str:
    """A code span, which no text can end early."""
    text = _one_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    blank = " " if "`" in text else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def _one_line(text: str) -> str:
    return " ".join(plain(text, False).split())


def _table(decision: Decision) -> Iterable[str]:
    yield "| cells | became |"
    yield "| ---: | --- |"
    for change, count in decision.counts.items():
        yield f"| {count} | {change.replace('_', ' ')} |"


def _reason(reason: Reason) -> Iterable[str]:
    known = f" (known issue {code(reason.known)})" if reason.known else ""
    where = f"  \n  {escape(reason.where)}" if reason.where else ""
    yield f"- **{reason.kind.replace('_', ' ')}**: {escape(reason.text)}{known}{where}"
    for line in reason.details[:MAX_DETAILS]:
        yield f"  - {escape(line)}"
    if len(reason.details) > MAX_DETAILS:
        yield f"  - and {count_text(len(reason.details) - MAX_DETAILS, 'line')} more in gate.json"
    if reason.command:
        yield f"  - {code(reason.command)}"
