"""What tracing came to: a refusal, a diagnosed error, a fault of cuda.tile or of the kernel's own file."""

from __future__ import annotations

import re
from typing import Any

from harness.judge.plain import sentence
from harness.model import Cell, Judgement, TraceOutcome, Verdict
from harness.outcome import EXCERPT
from harness.signature import signature

_LINE = re.compile(
    r"""^[ ]*(?:File[ ])?"(?P<file>[^"\n]+\.py)",[ ]lines?[ ](?P<line>\d+)[^\n]*
        (?:\n(?P<code>[ ]+\S[^\n]*))?""",
    re.MULTILINE | re.VERBOSE,
)
"""A place as Python and cuda.tile write it, with the source line below it."""

KERNEL, MATRIX = "kernel", "matrix"
"""To blame where the kernel's own text is refused, and where its matrix describes it otherwise than it is:
no component of a toolchain, as long as every frontend says so."""

_MISSING = ("ModuleNotFoundError", "ImportError")
_STAND_ALONE = (
    "A kernel's file may import cuda.tile, the standard library and modules that lie beside it: put the "
    "module there, keep the kernel in a file of its own, or let `python -m harness triage` take it out of "
    "this one."
)

_FRONTEND_FILE = re.compile(r"(?:^|/)(?:cuda/tile/|harness/compile/)")


def judge_trace(cell: Cell, trace: TraceOutcome) -> Judgement:
    """Judge a trace that gave no bytecode."""
    who = f"cuda-tile {cell.toolchain.cuda_tile}"
    words = _words(trace)
    place = user_line(trace)
    at = f" ({place})" if place else ""
    named = f"{trace.error_type}: {words}" if trace.error_type and trace.error_type not in words else words
    evidence: dict[str, Any] = {
        "stage": "trace",
        "error_type": trace.error_type,
        "message": trace.message[-EXCERPT:],
        "traceback": trace.traceback[-EXCERPT:],
    }
    if trace.stage == "import":
        return _judge_import(cell, trace, named, at, evidence)
    match trace.status:
        case "unsupported":
            told = words.startswith("cuda-tile ")
            text = sentence(words) if told else f"{who} does not support this: {words}{at}"
            return Judgement(Verdict.UNSUPPORTED, None, text, "cuda-tile", evidence)
        case "timeout":
            name = signature(Verdict.COMPILE_TIMEOUT, "cuda-tile", "tracing does not end")
            text = f"{who} was stopped after {trace.wall_seconds:.0f} s of tracing the kernel."
            return Judgement(Verdict.COMPILE_TIMEOUT, name, text, "cuda-tile", evidence)
        case "crash":
            name = signature(Verdict.COMPILER_CRASH, "cuda-tile", named)
            text = f"{who} died while it traced the kernel: {words}"
            return Judgement(Verdict.COMPILER_CRASH, name, text, "cuda-tile", evidence)
    if trace.status == "internal":
        name = signature(Verdict.FRONTEND_ERROR, "cuda-tile", f"internal: {named}")
        text = f"{who} failed inside with {named}{at}"
        return Judgement(Verdict.FRONTEND_ERROR, name, text, "cuda-tile", {**evidence, "kind": "internal"})
    guilty = MATRIX if trace.stage == "signature" else KERNEL
    text = f"{who} rejects the kernel with {named}{at}"
    if guilty == MATRIX:
        text = f"{text.removesuffix('.')}; correct the parameters given for it, or the kernel."
    name = signature(Verdict.FRONTEND_ERROR, guilty, f"user: {named}")
    evidence |= {"stage": trace.stage or "trace", "kind": "user"}
    return Judgement(Verdict.FRONTEND_ERROR, name, text, guilty, evidence)


def _judge_import(
    cell: Cell, trace: TraceOutcome, named: str, at: str, evidence: dict[str, Any]
) -> Judgement:
    """The kernel's own file could not be imported: no compiler has seen it yet."""
    file = cell.case.kernel.rpartition(":")[0].rpartition("/")[2] or cell.case.kernel
    match trace.status:
        case "timeout":
            pattern, more = "does not end", f", and was stopped after {trace.wall_seconds:.0f} s"
        case "crash":
            pattern, more = f"ends the process ({trace.error_type or 'it gave no answer'})", ""
        case _:
            pattern, more = f"fails with {named}", at
    name = signature(Verdict.FRONTEND_ERROR, KERNEL, f"user: importing {pattern}")
    text = sentence(f"Importing {file} {pattern}{more}")
    if trace.error_type in _MISSING:
        text += f" {_STAND_ALONE}"
    return Judgement(
        Verdict.FRONTEND_ERROR, name, text, KERNEL, {**evidence, "stage": "import", "kind": "user"}
    )


def user_line(trace: TraceOutcome) -> str:
    """The innermost line of the kernel's file that a message or traceback names: `k.py, line 3: text`."""
    for text in (trace.message, trace.traceback):
        found = [m for m in _LINE.finditer(text) if not _FRONTEND_FILE.search(m["file"])]
        if found:
            file = found[-1]["file"].rpartition("/")[2]
            code = (found[-1]["code"] or "").strip()
            return f"{file}, line {found[-1]['line']}" + (f": {code}" if code else "")
    return ""


def _words(trace: TraceOutcome) -> str:
    """What a message begins with; of a syntax error, which begins with the place, what it ends with; where
    there is nothing but the place, what was raised first."""
    lines = trace.message.strip().splitlines() or [trace.error_type or "no message"]
    if trace.status == "internal" and _LINE.match(lines[0]):
        return _first_raised(trace.traceback) or trace.error_type or "no message"
    last = trace.error_type and lines[-1].startswith(f"{trace.error_type}: ")
    return _first_line(lines[-1] if last else lines[0])


_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*(?:Error|Exception))(?:: *(.*))?$")


def _first_raised(traceback: str) -> str:
    """The exception that a chain of tracebacks began with; of one without words, the line that raised it."""
    lines = traceback.splitlines()
    for at, line in enumerate(lines):
        raised = _RAISED.match(line)
        if raised is not None:
            code = [before.strip() for before in lines[:at] if before.strip(" ^~")]
            words = raised[2] or (code[-1] if code else "")
            return _first_line(f"{raised[1]}: {words}")
    return ""


def _first_line(text: str) -> str:
    """What a message begins with; cuda.tile's go on with the place and its source line."""
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= 300 else line[:299] + "…"
