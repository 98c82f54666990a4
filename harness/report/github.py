"""What GitHub Actions is told of a gate: annotations, and the summary of the job.

Workflow commands are read from standard output, a line each. Compiler text is untrusted, so everything
that could end a line or a property is escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.gate.decision import Decision, Reason, Weight
from harness.report.words import plain

MAX_ANNOTATIONS = 10
"""GitHub shows ten errors and ten warnings of a step."""

_LEVELS = {Weight.FAILS: "error", Weight.UNDECIDED: "error", Weight.WARNS: "warning"}


def is_github(environment: Mapping[str, str]) -> bool:
    """Whether this runs as a step of a GitHub workflow."""
    return environment.get("GITHUB_ACTIONS") == "true"


def workflow_commands(decision: Decision) -> Iterable[str]:
    """Workflow commands, heaviest reason first: an error for what fails, a warning for what warns."""
    told: dict[str, int] = {}
    for reason in decision.reasons:
        level = _LEVELS.get(reason.weight)
        if level is not None and told.get(level, 0) < MAX_ANNOTATIONS:
            told[level] = told.get(level, 0) + 1
            yield f"::{level} title={_property(_title(decision, reason))}::{_data(_text(reason))}"


def append_summary(text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Add Markdown to the job's summary, where there is one. Raises OSError."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def _title(decision: Decision, reason: Reason) -> str:
    kind = str(reason.kind).replace("_", " ")
    return f"{decision.answer}: {kind} ({decision.baseline} → {decision.candidate})"


def _text(reason: Reason) -> str:
    lines = [reason.title, *reason.details[:3], *([reason.command] if reason.command else [])]
    return "\n".join(plain(line, False).replace("\n", " ") for line in lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
