"""What was concluded about a cell, and everything that was seen on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.model.asked import Cell
from harness.model.inspection import Inspection
from harness.model.outcome import CompileOutcome, TraceOutcome
from harness.model.record import Record
from harness.model.verdict import Verdict


@dataclass(frozen=True)
class Advice(Record):
    """A remark that fails nothing by itself."""

    kind: str
    text: str


@dataclass(frozen=True)
class Judgement(Record):
    """One word, the name equal findings share, one plain sentence, and the evidence."""

    verdict: Verdict
    signature: str | None
    summary: str
    component: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()


@dataclass(frozen=True)
class CellResult(Record):
    """A judged cell and everything that was seen on the way."""

    cell: Cell
    judgement: Judgement
    components: dict[str, str] = field(default_factory=dict)
    trace: TraceOutcome | None = None
    compile: CompileOutcome | None = None
    inspection: Inspection | None = None
    observation: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    resolved: dict[str, str] = field(default_factory=dict)
    """The exact `cuda_tile` and `cuda_toolkit`, where a toolchain may name but the series ("13.3")."""
    kernel_sha256: str | None = None
    """Of the kernel's file as it was then; None where nothing came of the cell."""

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict
