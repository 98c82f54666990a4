"""How a verdict looks: a symbol, a short word, a plain phrase and a colour.

Symbol and word carry the meaning; colour only repeats it. Where the terminal has no UTF-8, plain
ASCII stands in.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import CellResult, PoolAnswer, Verdict


@dataclass(frozen=True)
class Look:
    """One verdict's looks. `phrase` completes "N cells …"."""

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
    Verdict.PASS: Look("✔", "ok", "", "right on a device", "green"),
    Verdict.COMPILES: Look("✔", "ok", "", "compile, nothing suspicious found", "green"),
    Verdict.UNSUPPORTED: Look("–", "-", "unsupported", "not supported by their toolchain", "dim"),
    Verdict.FRONTEND_ERROR: _finding("rejected", "rejected by cuda.tile"),
    Verdict.COMPILE_ERROR: _finding("error", "rejected by the compiler"),
    Verdict.TOOLCHAIN_BROKEN: _unknown("broken", "with a toolchain that compiles nothing"),
    Verdict.COMPILER_CRASH: _finding("crash", "crash a compiler"),
    Verdict.COMPILE_TIMEOUT: _finding("timeout", "do not finish compiling"),
    Verdict.PREDICTED_DEADLOCK: _finding("never ends", "can never finish on a GPU"),
    Verdict.LAUNCH_ERROR: _finding("no launch", "refused by the driver"),
    Verdict.HANG: _finding("hang", "hang on the device"),
    Verdict.DEVICE_FAULT: _finding("fault", "trap on the device"),
    Verdict.WRONG_RESULT: _finding("wrong", "give a wrong result"),
    Verdict.NONDETERMINISTIC: _finding("unstable", "give other bits on a repeat"),
    Verdict.WORKER_CRASH: _finding("worker died", "crashed their host process"),
    Verdict.OUT_OF_MEMORY: _finding("memory", "ran out of memory"),
    Verdict.UNKILLABLE: _finding("unkillable", "left a process that cannot be killed"),
    Verdict.FLAKY: _finding("flaky", "changed their verdict when repeated"),
    Verdict.SKIPPED: Look("○", "o", "skipped", "skipped", "dim"),
    Verdict.NOT_RUN: _unknown("not run", "not run"),
    Verdict.TAINTED: _unknown("tainted", "behind a failed canary"),
    Verdict.INFRA_ERROR: _unknown("infra", "lost to a failure of the harness or the machine"),
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


def count_text(count: int, noun: str) -> str:
    """ "1 cell", "2 cells"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def plain(text: str, ascii_only: bool) -> str:
    """Our own punctuation in ASCII where the terminal knows no better."""
    if not ascii_only:
        return text
    for sign, stand_in in (("×", "x"), ("…", "..."), ("·", "|"), ("→", "->"), ("–", "-")):
        text = text.replace(sign, stand_in)
    return text.encode("ascii", "replace").decode()
