"""How a verdict looks: a symbol, a short word, a plain phrase and a colour.

Symbol and word carry the meaning; colour only repeats it. Where the terminal has no UTF-8, plain
ASCII stands in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console

from harness.judge import judge_infra
from harness.model import CellResult, PoolAnswer, Verdict

T = TypeVar("T")

_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Look:
    """One verdict's looks. `phrase` is a heading."""

    symbol: str
    ascii: str
    word: str
    phrase: str
    style: str


def _finding(word: str, phrase: str) -> Look:
    return Look("✖", "X", word, phrase, "bold red")


def _unknown(word: str, phrase: str) -> Look:
    return Look("?", "?", word, phrase, "yellow")


LOOKS: dict[Verdict, Look] = {
    Verdict.PASS: Look("✔", "ok", "", "Right on a device", "green"),
    Verdict.COMPILES: Look("✔", "ok", "", "Compiles, nothing suspicious found", "green"),
    Verdict.UNSUPPORTED: Look("–", "-", "unsupported", "Not supported by this toolchain", "dim"),
    Verdict.FRONTEND_ERROR: _finding("rejected", "Cannot be traced"),
    Verdict.COMPILE_ERROR: _finding("error", "Rejected by the compiler"),
    Verdict.TOOLCHAIN_BROKEN: _unknown("broken", "A toolchain that compiles nothing"),
    Verdict.COMPILER_CRASH: _finding("crash", "A compiler crashes"),
    Verdict.COMPILE_TIMEOUT: _finding("timeout", "A compiler does not finish"),
    Verdict.PREDICTED_DEADLOCK: _finding("never ends", "Can never finish on a GPU"),
    Verdict.LAUNCH_ERROR: _finding("no launch", "Refused by the driver"),
    Verdict.HANG: _finding("hang", "Hangs on the device"),
    Verdict.DEVICE_FAULT: _finding("fault", "Traps on the device"),
    Verdict.WRONG_RESULT: _finding("wrong", "Gives a wrong result"),
    Verdict.NONDETERMINISTIC: _finding("unstable", "Gives other bits on a repeat"),
    Verdict.WORKER_CRASH: _finding("worker died", "The host process crashes"),
    Verdict.OUT_OF_MEMORY: _finding("memory", "Runs out of memory"),
    Verdict.UNKILLABLE: _finding("unkillable", "Leaves a process that cannot be killed"),
    Verdict.FLAKY: _finding("flaky", "Changes its verdict on a repeat"),
    Verdict.SKIPPED: Look("○", "o", "skipped", "Skipped", "dim"),
    Verdict.NOT_RUN: _unknown("not run", "Not run"),
    Verdict.TAINTED: _unknown("tainted", "Behind a failed canary"),
    Verdict.INFRA_ERROR: _unknown("infra", "The harness or the machine failed"),
}

ADVICE_MARK = "!"
"""Behind a cell that carries advice."""

UNDECIDED_MARK = "?"
"""Behind a cell whose register-pool books could not be settled."""


def cell_text(result: CellResult, ascii_only: bool = False) -> str:
    """A table cell: "✔ 255 !" or "✖ never ends 24"."""
    look = LOOKS[result.verdict]
    parts = [look.ascii if ascii_only else look.symbol]
    if look.word:
        parts.append(look.word)
    if result.inspection is not None:
        parts.append(str(result.inspection.registers))
        books = result.inspection.books
        if books is not None and books.answer is PoolAnswer.UNKNOWN:
            parts.append(UNDECIDED_MARK)
    if result.judgement.advice:
        parts.append(ADVICE_MARK)
    return " ".join(parts)


def reported(result: CellResult, tell: Callable[[CellResult], T]) -> T:
    """What `tell` makes of a result. If it fails, the cell is told as an `infra_error` that says so: one odd
    result must not cost all others their report."""
    try:
        return tell(result)
    except Exception as error:
        why = f"the result of this cell cannot be reported: {type(error).__name__}: {error}"
        return tell(CellResult(result.cell, judge_infra(why)))


def chosen_text(written: str, chosen: str) -> str:
    """ "13.3 = 13.3.1", or the version alone where it was written in full."""
    return written if written == chosen else f"{written} = {chosen}"


def count_text(count: int, noun: str) -> str:
    """ "1 cell", "2 cells"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def is_ascii(console: Console) -> bool:
    """Whether the terminal has no UTF-8, so that plain ASCII must do."""
    return not console.encoding.lower().startswith("utf")


def plain(text: str, ascii_only: bool) -> str:
    """Text fit for a terminal: no control characters a compiler may have printed, and ASCII where asked."""
    text = _CONTROL.sub("\ufffd", text.replace("\t", " "))
    if not ascii_only:
        return text
    for sign, stand_in in (("×", "x"), ("…", "..."), ("·", "|"), ("→", "->"), ("–", "-")):
        text = text.replace(sign, stand_in)
    return text.encode("ascii", "replace").decode()
