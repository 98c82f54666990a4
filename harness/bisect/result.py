"""What a bisection came to, as a record that reports and repros can keep."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bisect.components import Blame
from harness.bisect.search import Ending
from harness.model import Cell, Record, Toolchain, Verdict, digest_of
from harness.oracle import Answer

RESULT_FILE = "result.json"

_BRIEF = 120
_DIRECTORY = re.compile(r"(?<!\S)/\S*/")


def folder_of(out: Path, cell: str, oracle: str, over: str | None) -> Path:
    """Where a bisection of this cell is kept; each oracle and each axis that was asked for has its own."""
    asked = [part for part in (over, "" if oracle in ("", "signature") else oracle) if part]
    return out / "bisect" / "-".join([cell, *([digest_of(asked)[:8]] if asked else [])])


def kept(out: Path, cell: str, oracle: str) -> tuple[BisectResult, str] | None:
    """The bisection of this cell by this oracle that says most, and its text."""
    found: list[tuple[BisectResult, str]] = []
    for path in sorted((out / "bisect").glob(f"{cell}*/{RESULT_FILE}")):
        text = path.read_text(encoding="utf-8")
        result = BisectResult.from_json(json.loads(text))
        if result.oracle == oracle and result.complete:
            found.append((result, text))
    edges = [sum(side.good is not None for side in (r.older, r.newer)) for r, _ in found]
    return found[edges.index(max(edges))] if found else None


def brief(sentence: str) -> str:
    """A sentence short enough to stand beside others: one line, files by their names."""
    line = _DIRECTORY.sub("", " ".join(sentence.split()))
    return line if len(line) <= _BRIEF else line[: _BRIEF - 1].rstrip() + "…"


@dataclass(frozen=True)
class Probe(Record):
    """One question that was asked. `stage` is version | bytecode | mix.

    `seconds` is what the answer took now; remembered compiles take next to nothing.
    `bytecode_version` is set where it was not left to the toolchain, `opt_level` is that of the
    kernel's decorator. At most `left` steps of the
    stage were still to come.
    """

    stage: str
    label: str
    toolchain: Toolchain
    components: dict[str, str]
    answer: Answer
    verdict: Verdict
    summary: str
    seconds: float
    left: int = 0
    bytecode_version: str | None = None
    bytecode_sha256: str | None = None
    opt_level: int | None = None

    @property
    def reason(self) -> str:
        """Why the answer, in short; which toolchain is broken, the label says."""
        _, colon, what = self.summary.partition(": ")
        if self.verdict is Verdict.TOOLCHAIN_BROKEN and colon:
            return brief(f"not even a one-line kernel compiles: {what}")
        return brief(self.summary)

    @property
    def evidence(self) -> str:
        """What was asked and answered, with the reason where that was no answer."""
        why = f" ({self.reason.rstrip('.')})" if self.answer is Answer.UNKNOWN else ""
        return f"{self.label}: {self.answer}{why}"


@dataclass(frozen=True)
class Point(Record):
    """A version on the axis: `version` by the component under suspicion, `stands_for` by the axis."""

    version: str
    stands_for: tuple[str, ...]
    toolchain: Toolchain
    components: dict[str, str]
    reason: str = ""
    """Why it could not be told, where it is part of a gap."""


@dataclass(frozen=True)
class Side(Record):
    """One side of the cell's version: the edge there, or how far it was looked for in vain.

    `gap` could not be told; `untested` are taken for bad because they lie between bad ones.
    """

    ending: Ending
    bad: Point
    good: Point | None = None
    gap: tuple[Point, ...] = ()
    untested: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Accusation(Record):
    """Whom the mixes of one edge's good and bad toolchain convict. `edge` is older | newer."""

    edge: str
    good: Point
    bad: Point
    blame: Blame
    evidence: tuple[str, ...]
    proving: tuple[Toolchain, ...] = ()
    """Mixes whose answers the blame rests on."""


@dataclass(frozen=True)
class BisectResult(Record):
    """Everything a bisection found out, and the probes it rests on.

    `over` is the axis, `named_by` what its versions are called by: a component, or the axis itself.
    `flips` are neighbouring versions with different answers; more than one a side means that the fault
    comes and goes. `left_out` are (version, reason) that could not even be asked. Until it is `complete`, its
    edges are only where the search stood.
    """

    cell: Cell
    oracle: str
    verdict: Verdict
    signature: str | None
    summary: str
    over: str
    named_by: str
    older: Side
    newer: Side
    flips: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]
    accusations: tuple[Accusation, ...]
    probes: tuple[Probe, ...]
    seconds: float
    complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """With the answer in short beside the records it follows from."""
        ends = {
            "last_good": self.last_good,
            "first_bad": self.first_bad,
            "last_bad": self.last_bad,
            "first_fixed": self.first_fixed,
        }
        versions = {name: point.version if point else None for name, point in ends.items()}
        return {**versions, "component": self.component, **super().to_json()}

    @property
    def last_good(self) -> Point | None:
        """The newest good version before the fault."""
        return self.older.good

    @property
    def first_bad(self) -> Point:
        """The oldest version known to be bad."""
        return self.older.bad

    @property
    def last_bad(self) -> Point:
        """The newest version known to be bad."""
        return self.newer.bad

    @property
    def first_fixed(self) -> Point | None:
        """The oldest good version after the fault."""
        return self.newer.good

    @property
    def component(self) -> str | None:
        """The guilty component, where every edge that could tell names the same one."""
        named = {accusation.blame.component for accusation in self.accusations} - {None}
        return named.pop() if len(named) == 1 else None

    @property
    def is_decided(self) -> bool:
        """Whether anything but the cell's own version could be told."""
        return any(p.stage == "version" and p.answer is not Answer.UNKNOWN for p in self.probes[1:])
