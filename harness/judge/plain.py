"""Judgements that need no evidence from a compiler."""

from __future__ import annotations

from harness.model import Cell, Judgement, Verdict
from harness.outcome import EXCERPT
from harness.signature import signature


def judge_skipped(cell: Cell, reason: str) -> Judgement:
    """Something this cell needs, such as its device, is not here; `reason` says what."""
    return Judgement(Verdict.SKIPPED, None, f"Skipped: {sentence(reason)}", evidence={"reason": reason})


def judge_not_run(cell: Cell, why: str) -> Judgement:
    """The cell was planned, but its turn never came; `why` says what stood in the way."""
    return Judgement(Verdict.NOT_RUN, None, f"Not run: {sentence(why)}", evidence={"reason": why})


def judge_infra(what: str) -> Judgement:
    """The harness or the machine failed at this cell; `what` is a sentence, or a traceback, which says most
    in its last line."""
    lines = what.strip().splitlines() or ["no reason was given"]
    line = lines[-1] if lines[0].startswith("Traceback (") else lines[0]
    name = signature(Verdict.INFRA_ERROR, "harness", line)
    return Judgement(Verdict.INFRA_ERROR, name, sentence(line), "harness", {"message": what[-EXCERPT:]})


def sentence(text: str) -> str:
    """The text with a full stop, unless it ends a sentence already."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
