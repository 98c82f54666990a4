"""What a cell's observations mean: one verdict, one signature, one plain sentence. Pure.

Judging never runs anything, so recorded observations can be judged again. The order of the questions
matters: a refusal ("I do not know this architecture") is no fault, a toolchain that cannot compile a
one-line control kernel says nothing about this kernel, and only then is a compiler blamed.

`diagnosis`, where the pipeline made one, tells what a run with a shim in place of ptxas saw:
`ptxas_called` (bool), `ptxas_exit_code` (int, negative for a signal) and `ptxas_stderr` (str).
"""

from __future__ import annotations

import re
import signal as signals
from typing import Any

from harness.advice import advise
from harness.model import (
    Cell,
    CompileOutcome,
    Inspection,
    Judgement,
    PoolAnswer,
    PoolBooks,
    TraceOutcome,
    Verdict,
)
from harness.signature import signature

_EXCERPT = 4000
_CATCH_ALL = re.compile(r"^(?:error: )?failed to compile Tile IR program\.?$")
_REFUSAL = re.compile(
    r"Cannot find option named 'sm_\w+'|invalid GPU architecture|unsupported Tile version", re.IGNORECASE
)
_MACHINE = re.compile(r"No space left on device|unable to read input file|Read-only file system|Disk quota")
_CRASH = re.compile(
    r"Assertion .*failed|LLVM ERROR|PLEASE submit a bug report|UNREACHABLE|internal (?:compiler )?error"
    r"|Stack dump:|std::bad_alloc|terminate called",
    re.IGNORECASE,
)
_TELLING = re.compile(r"\b(?:error|fatal|assert|unsupported|invalid|cannot|failed)", re.IGNORECASE)
_SETMAXNREG = re.compile(r"setmaxnreg\.(inc|dec)\S*\s+(\d+)")
_FROM_OUTSIDE = (signals.SIGTERM, signals.SIGINT, signals.SIGHUP)


def judge_compile(
    cell: Cell,
    trace: TraceOutcome | None,
    compile: CompileOutcome | None,
    inspection: Inspection | None,
    control: CompileOutcome | None = None,
    diagnosis: dict[str, Any] | None = None,
    infra: str | None = None,
    unsupported: str | None = None,
) -> Judgement:
    """Judge a cell as far as compiling goes.

    `control` is the outcome of a one-line kernel on the same toolchain and architecture, `infra` what
    the harness or the machine failed at, if it did, `unsupported` why this toolchain was not even asked.
    """
    if infra is not None:
        return _infra(infra)
    if unsupported is not None:
        return Judgement(Verdict.UNSUPPORTED, None, _sentence(unsupported), evidence={"message": unsupported})
    if trace is None:
        return judge_not_run(cell, "tracing was not started")
    if trace.status != "ok":
        return _judge_trace(cell, trace)
    if compile is None:
        return judge_not_run(cell, "it was traced, but compiling was not started")
    if compile.status == "timeout":
        judged = _broken(cell, control, diagnosis) or _judge_timeout(compile)
    elif compile.status != "ok":
        judged = _judge_failure(cell, trace, compile, control, diagnosis)
    elif inspection is None:
        return _infra("The kernel compiled, but its cubin was not inspected.")
    else:
        judged = _judge_cubin(inspection)
    remarks = advise(cell.case, compile, inspection)
    return Judgement(
        judged.verdict, judged.signature, judged.summary, judged.component, judged.evidence, remarks
    )


def judge_skipped(cell: Cell, reason: str) -> Judgement:
    """Something this cell needs, such as its device, is not here; `reason` says what."""
    return Judgement(Verdict.SKIPPED, None, f"Skipped: {_sentence(reason)}", evidence={"reason": reason})


def judge_not_run(cell: Cell, why: str) -> Judgement:
    """The cell was planned, but its turn never came; `why` says what stood in the way."""
    return Judgement(Verdict.NOT_RUN, None, f"Not run: {_sentence(why)}", evidence={"reason": why})


# --- the frontend -----------------------------------------------------------------------------


def _judge_trace(cell: Cell, trace: TraceOutcome) -> Judgement:
    who = f"cuda-tile {cell.toolchain.cuda_tile}"
    words = _words(trace.message) or trace.error_type or "no message"
    named = f"{trace.error_type}: {words}" if trace.error_type and trace.error_type not in words else words
    evidence: dict[str, Any] = {
        "stage": "trace",
        "error_type": trace.error_type,
        "message": trace.message[-_EXCERPT:],
        "traceback": trace.traceback[-_EXCERPT:],
    }
    match trace.status:
        case "unsupported":
            return Judgement(
                Verdict.UNSUPPORTED, None, f"{who} does not support this: {words}", "cuda-tile", evidence
            )
        case "timeout":
            name = signature(Verdict.COMPILE_TIMEOUT, "cuda-tile", "tracing does not end")
            text = f"{who} was stopped after {trace.wall_seconds:.0f} s of tracing the kernel."
            return Judgement(Verdict.COMPILE_TIMEOUT, name, text, "cuda-tile", evidence)
        case "crash":
            name = signature(Verdict.COMPILER_CRASH, "cuda-tile", named)
            text = f"{who} died while it traced the kernel: {words}"
            return Judgement(Verdict.COMPILER_CRASH, name, text, "cuda-tile", evidence)
    kind = "internal" if trace.status == "internal" else "user"
    name = signature(Verdict.FRONTEND_ERROR, "cuda-tile", f"{kind}: {named}")
    text = (
        f"{who} failed inside with {named}"
        if kind == "internal"
        else f"{who} rejects the kernel with {named}"
    )
    return Judgement(Verdict.FRONTEND_ERROR, name, text, "cuda-tile", {**evidence, "kind": kind})


# --- the backend ------------------------------------------------------------------------------


def _judge_failure(
    cell: Cell,
    trace: TraceOutcome,
    compile: CompileOutcome,
    control: CompileOutcome | None,
    diagnosis: dict[str, Any] | None,
) -> Judgement:
    said = _output(compile)
    evidence = _run_facts(compile)
    number = _signal(compile)
    if number is None and _REFUSAL.search(said):
        return _refused(cell, trace, said, evidence)
    # A silent 2 is what tileiras answers when it cannot open its output file.
    if _MACHINE.search(said) or (number is None and compile.exit_code == 2 and not said):
        return _infra(
            f"tileiras could not read or write its files: {_words(said) or 'exit code 2 and not a word'}"
        )
    if number in _FROM_OUTSIDE:
        return _infra(f"tileiras was stopped from outside by {_signal_name(number)}.")
    if (broken := _broken(cell, control, diagnosis)) is not None:
        return broken
    if number == signals.SIGKILL:
        memory = _bytes(compile.peak_rss_bytes)
        text = f"tileiras was killed when it held {memory} of memory, most likely for want of more."
        name = signature(Verdict.OUT_OF_MEMORY, "tileiras", "killed while compiling")
        return Judgement(Verdict.OUT_OF_MEMORY, name, text, "tileiras", evidence)

    component, answer = _blame(said, diagnosis)
    if diagnosis is not None:
        evidence["diagnosis"] = diagnosis
    told = "\n".join(part for part in (answer, _diagnosed(said)) if part)
    if number is not None:
        name_of_signal = _signal_name(number)
        words = _words(told)
        name = signature(Verdict.COMPILER_CRASH, component, words or name_of_signal)
        text = f"{component} crashed with {name_of_signal}" + (f": {words}" if words else ", without a word.")
        return Judgement(Verdict.COMPILER_CRASH, name, text, component, evidence)
    if _CRASH.search(told):
        words = _words(told)
        name = signature(Verdict.COMPILER_CRASH, component, words)
        text = f"{component} failed inside: {words}"
        return Judgement(Verdict.COMPILER_CRASH, name, text, component, evidence)
    if told:
        words = _words(told)
        name = signature(Verdict.COMPILE_ERROR, component, words)
        return Judgement(Verdict.COMPILE_ERROR, name, f"{component} reports: {words}", component, evidence)
    name = signature(Verdict.COMPILER_CRASH, component, f"exit {compile.exit_code} without a diagnosis")
    text = f"{component} gave up with exit code {compile.exit_code} and no diagnosis{_ptxas_part(diagnosis)}."
    # The number is the only thing known here, and it is tileiras's own, so it stays in the name.
    name = name.replace("exit <n>", f"exit code {compile.exit_code}")
    return Judgement(Verdict.COMPILER_CRASH, name, text, component, evidence)


def _refused(cell: Cell, trace: TraceOutcome, said: str, evidence: dict[str, Any]) -> Judgement:
    words = _words(said, _REFUSAL)
    text = f"This toolchain refuses {cell.arch}: {words}"
    if "invalid GPU architecture" in words and trace.bytecode_version:
        version = trace.bytecode_version
        text += f" (tileiras 13.1 and 13.2 also say so of bytecode too new for them; this is {version})"
    elif "unsupported Tile version" in words:
        text = f"This toolchain cannot read the frontend's bytecode: {words}"
    return Judgement(Verdict.UNSUPPORTED, None, text, "tileiras", evidence)


def _broken(cell: Cell, control: CompileOutcome | None, diagnosis: dict[str, Any] | None) -> Judgement | None:
    """A verdict on the toolchain itself, if the control kernel fails with it too."""
    if control is None or control.status == "ok":
        return None
    said = _output(control)
    evidence = {"stage": "compile", "control": _run_facts(control), "diagnosis": diagnosis}
    if _signal(control) is None and _REFUSAL.search(said):
        text = f"This toolchain refuses {cell.arch}: {_words(said, _REFUSAL)}"
        return Judgement(Verdict.UNSUPPORTED, None, text, "tileiras", evidence)
    component, answer = _blame(said, diagnosis)
    reason = _words("\n".join(part for part in (answer, _diagnosed(said)) if part))
    if not reason:
        reason = "it did not end" if control.status == "timeout" else f"exit code {control.exit_code}"
        reason += _ptxas_part(diagnosis)
    text = f"Even a one-line kernel does not compile for {cell.arch} with {cell.toolchain.name}: {reason}"
    name = signature(Verdict.TOOLCHAIN_BROKEN, component, reason)
    return Judgement(Verdict.TOOLCHAIN_BROKEN, name, text, component, evidence)


def _judge_timeout(compile: CompileOutcome) -> Judgement:
    holder = compile.holder
    share = next((usage for usage in compile.usage if usage.name == holder), None)
    seconds = compile.wall_seconds or compile.deadline_seconds
    facts = []
    if holder is None or compile.cpu_seconds < 0.1 * seconds:
        facts.append(f"it hardly used the CPU ({compile.cpu_seconds:.1f} s)")
    elif share is not None:
        facts.append(f"{holder} held the CPU for {share.cpu_seconds:.1f} s")
    else:
        facts.append(f"{holder} held the CPU")
    memory = _memory(compile)
    if memory:
        facts.append(memory)
    name = signature(Verdict.COMPILE_TIMEOUT, holder, "does not end")
    text = f"Compiling was stopped after {seconds:.0f} s: {' and '.join(facts)}."
    evidence = {**_run_facts(compile), "holder": holder, "memory": memory}
    return Judgement(Verdict.COMPILE_TIMEOUT, name, text, holder, evidence)


def _memory(compile: CompileOutcome) -> str:
    """Whether memory still grew in the second half of the run: a tenth and 32 MiB say so."""
    late = [rss for _, rss in compile.rss_over_time[len(compile.rss_over_time) // 2 :]]
    if len(late) < 2:
        return ""
    first, last = late[0], late[-1]
    if last - first > max(32 << 20, first // 10):
        return f"memory was still growing, from {_bytes(first)} to {_bytes(last)}"
    return f"memory stayed flat at {_bytes(last)}"


# --- the machine code -------------------------------------------------------------------------


def _judge_cubin(inspection: Inspection) -> Judgement:
    books = inspection.books
    if books is not None and books.answer is PoolAnswer.IMPOSSIBLE:
        return _deadlock(inspection, books)
    resources = f"{inspection.registers} registers × {inspection.threads} threads"
    text = f"Compiles: {resources}"
    if inspection.ctas_per_sm is not None:
        text += f", {inspection.ctas_per_sm} CTA{'s' * (inspection.ctas_per_sm != 1)} per SM"
    evidence: dict[str, Any] = {
        "registers": inspection.registers,
        "threads": inspection.threads,
        "register_pool": str(books.answer) if books is not None else "not used",
    }
    if books is not None and books.answer is PoolAnswer.UNKNOWN:
        text += "; whether the register pool can always pay could not be decided"
        evidence["proof"] = list(books.proof)
    return Judgement(Verdict.COMPILES, None, text + ".", evidence=evidence)


def _deadlock(inspection: Inspection, books: PoolBooks) -> Judgement:
    component, why = _who_asked(inspection, books)
    grown = sorted({site.registers for site in books.sites if site.kind == "alloc"})
    wanted = " or ".join(map(str, grown))
    start = f"it starts with {books.launch_registers} registers a thread and an empty pool"
    if books.freed_at_most == 0:
        pattern = "register pool: growth is never paid, no warp gives registers back"
        rest = f"and no warp gives any back ({books.needed} needed, 0 freed)"
    else:
        pattern = "register pool: growth is never paid in full, warps give back too little"
        amounts = f"{books.needed} needed, at most {books.freed_at_most} freed"
        rest = f"and the others give back too little ({amounts})"
    text = f"Can never finish on a GPU: {start}, warps wait to grow to {wanted}, {rest}."
    evidence: dict[str, Any] = {
        "launch_registers": books.launch_registers,
        "threads": books.threads,
        "sites": [site.to_json() for site in books.sites],
        "needed": books.needed,
        "freed_at_most": books.freed_at_most,
        "proof": list(books.proof),
        "blame": why,
        "ptx": list(inspection.ptx),
    }
    name = signature(Verdict.PREDICTED_DEADLOCK, component, pattern)
    return Judgement(Verdict.PREDICTED_DEADLOCK, name, text, component, evidence)


def _who_asked(inspection: Inspection, books: PoolBooks) -> tuple[str | None, str]:
    """The component that made the unpayable request, and the reason to think so.

    ptxas assembles what it is handed. If the embedded PTX asks for the growth and ptxas dropped no
    shrinking, the fault was there before ptxas ran: in tileiras or in the libnvvm inside it, which
    one cubin cannot tell apart. Otherwise ptxas made it.
    """
    if not inspection.ptx:
        return None, "the cubin holds no PTX, so it cannot be told who asked for the registers"
    asked = [match.groups() for line in inspection.ptx for match in _SETMAXNREG.finditer(line)]
    grows = {int(count) for way, count in asked if way == "inc"}
    shrinks = {int(count) for way, count in asked if way == "dec"}
    dropped = shrinks - {site.registers for site in books.sites if site.kind == "dealloc"}
    if not grows:
        return "ptxas", "the PTX handed to ptxas asks for no growth, the machine code does"
    if dropped:
        listed = ", ".join(map(str, sorted(dropped)))
        return "ptxas", f"the PTX handed to ptxas shrinks warps to {listed}, the machine code does not"
    listed = ", ".join(map(str, sorted(grows)))
    paid = "with too little shrinking to pay for it" if shrinks else "with no shrinking to pay for it"
    return "tileiras", f"the PTX handed to ptxas already asks to grow to {listed} {paid}"


# --- words ------------------------------------------------------------------------------------


def _infra(what: str) -> Judgement:
    first = what.strip().splitlines()[0] if what.strip() else "no reason was given"
    name = signature(Verdict.INFRA_ERROR, "harness", first)
    return Judgement(Verdict.INFRA_ERROR, name, _sentence(first), "harness", {"message": what[-_EXCERPT:]})


def _blame(said: str, diagnosis: dict[str, Any] | None) -> tuple[str, str]:
    """The guilty component and what it said itself, where the shim overheard it."""
    if diagnosis and diagnosis.get("ptxas_called") and diagnosis.get("ptxas_exit_code"):
        return "ptxas", str(diagnosis.get("ptxas_stderr") or "").strip()
    if re.search(r"^\s*ptxas\b", said, re.MULTILINE):
        return "ptxas", ""
    if re.search(r"\b(?:lib)?nvvm\b", said, re.IGNORECASE):
        return "nvvm", ""
    return "tileiras", ""


def _ptxas_part(diagnosis: dict[str, Any] | None) -> str:
    if not diagnosis or "ptxas_called" not in diagnosis:
        return ""
    if not diagnosis["ptxas_called"]:
        return "; ptxas was never called, so tileiras or libnvvm failed before it"
    if diagnosis.get("ptxas_exit_code"):
        return f"; ptxas was called and ended with exit code {diagnosis['ptxas_exit_code']}"
    return "; ptxas was called and did its part"


def _output(compile: CompileOutcome) -> str:
    return "\n".join(part.strip() for part in (compile.stderr, compile.stdout) if part.strip())


def _diagnosed(said: str) -> str:
    """What was said apart from tileiras's catch-all line, which tells nothing."""
    return "\n".join(
        line for line in said.splitlines() if line.strip() and not _CATCH_ALL.match(line.strip())
    )


def _words(said: str, telling: re.Pattern[str] = _TELLING) -> str:
    """The line that says most: the first telling one, else the last."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    line = next((line for line in lines if telling.search(line)), lines[-1] if lines else "")
    return line if len(line) <= 300 else line[:299] + "…"


def _run_facts(compile: CompileOutcome) -> dict[str, Any]:
    return {
        "stage": "compile",
        "status": compile.status,
        "exit_code": compile.exit_code,
        "signal": _signal(compile),
        "stderr": compile.stderr[-_EXCERPT:],
        "stdout": compile.stdout[-_EXCERPT:],
        "wall_seconds": compile.wall_seconds,
        "cpu_seconds": compile.cpu_seconds,
        "peak_rss_bytes": compile.peak_rss_bytes,
    }


def _signal(compile: CompileOutcome) -> int | None:
    if compile.signal is not None:
        return compile.signal
    code = compile.exit_code
    return -code if code is not None and code < 0 else None


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _bytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
