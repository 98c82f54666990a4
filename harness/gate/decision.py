"""What a gate answers: go, no-go or cannot tell, with the reasons for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.gate.compare import Change, Pair
from harness.model import Record

SHOWN_DETAILS = 6
"""Lines of a reason that people are shown; `gate.json` has all."""


class Answer(StrEnum):
    GO = "go"
    NO_GO = "no-go"
    CANNOT_TELL = "cannot tell"

    @property
    def exit_code(self) -> int:
        return {Answer.GO: 0, Answer.NO_GO: 1, Answer.CANNOT_TELL: 3}[self]


class Weight(StrEnum):
    """What a reason does to the decision."""

    FAILS = "fails"
    UNDECIDED = "undecided"
    WARNS = "warns"
    NOTED = "noted"


@dataclass(frozen=True)
class Reason(Record):
    """Cells that differ in one way. `example` is the id of the one to look at first, `details` has a
    line for each kind of it, the largest first; `known` names the known issue it is."""

    kind: str
    weight: Weight
    text: str
    where: str
    cells: tuple[str, ...]
    example: str | None = None
    command: str | None = None
    signature: str | None = None
    details: tuple[str, ...] = ()
    known: str | None = None

    @property
    def title(self) -> str:
        """The reason on one line."""
        known = f"known issue {self.known}" if self.known else ""
        return " · ".join(filter(None, (self.text, self.where, known)))


@dataclass(frozen=True)
class Decision:
    """The answer, why, and what it was taken from."""

    answer: Answer
    headline: str
    reasons: tuple[Reason, ...]
    pairs: tuple[Pair, ...]
    baseline: str
    candidate: str

    @property
    def counts(self) -> dict[str, int]:
        """How many cells fared how."""
        counted = Counter(pair.change for pair in self.pairs)
        return {str(change): counted[change] for change in Change if counted[change]}

    def for_page(self) -> dict[str, Any]:
        """What the HTML report shows of it."""
        return {
            "decision": str(self.answer),
            "reasons": [
                {
                    "kind": f"{reason.weight}: {reason.kind}".replace("_", " "),
                    "text": "; ".join([reason.title, *reason.details[:2]]),
                    "cells": list(reason.cells),
                    "command": reason.command,
                }
                for reason in self.reasons
            ],
        }

    def to_json(self) -> dict[str, Any]:
        """What `gate.json` holds."""
        return {
            "decision": str(self.answer),
            "exit_code": self.answer.exit_code,
            "headline": self.headline,
            "baseline": self.baseline,
            "candidate": self.candidate,
            "counts": self.counts,
            "reasons": [reason.to_json() for reason in self.reasons],
            "cells": [
                {
                    "baseline": pair.baseline.cell.id if pair.baseline else None,
                    "candidate": pair.candidate.cell.id if pair.candidate else None,
                    "verdicts": [
                        str(side.verdict) if side else None for side in (pair.baseline, pair.candidate)
                    ],
                    "change": str(pair.change),
                    "undecided": pair.undecided,
                    "differences": [difference.to_json() for difference in pair.differences],
                }
                for pair in self.pairs
            ],
        }
