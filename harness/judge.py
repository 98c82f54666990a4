"""What a cell's observations mean: one verdict, one signature, one plain sentence. Pure.

Judging never runs anything, so recorded observations can be judged again. The order of the questions
matters: a refusal ("I do not know this architecture") is no fault, a toolchain that cannot compile a
one-line control kernel says nothing about this kernel, and only then is a compiler blamed.

`diagnosis`, where the pipeline made one, tells what a run with a shim in place of ptxas saw:
`ptxas_called` (bool), `ptxas_exit_code` (int; minus the number for a signal) and `ptxas_stderr` (str).
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
from harness.outcome import (
    EXCERPT,
    blame,
    cpu_course,
    death_signal,
    diagnosed,
    ending,
    files_failed,
    memory_course,
    memory_text,
    output,
    ptxas_signal,
    rejects_bytecode,
    run_facts,
    signal_name,
    stopped_from_outside,
    telling_line,
    what_is_wrong_with,
    what_ptxas_did,
)
from harness.signature import signature

_REFUSAL = re.compile(
    r"Cannot find option named 'sm_\w+'|invalid GPU architecture|unsupported Tile version", re.IGNORECASE
)
_CRASH = re.compile(
    r"Assertion .*failed|LLVM ERROR|PLEASE submit a bug report|UNREACHABLE|internal (?:compiler )?error"
    r"|Stack dump:|std::bad_alloc|terminate called",
    re.IGNORECASE,
)
_SETMAXNREG = re.compile(r"setmaxnreg\.(inc|dec)\S*\s+(\d+)")
_LINE = re.compile(
    r"""^[ ]*(?:File[ ])?"(?P<file>[^"\n]+\.py)",[ ]line[ ](?P<line>\d+)[^\n]*
        (?:\n(?P<code>[ ]+\S[^\n]*))?""",
    re.MULTILINE | re.VERBOSE,
)
"""A place as Python and cuda.tile write it, with the source line below it."""

KERNEL = "kernel"
"""The component to blame where the kernel's own file fails before a compiler has seen it."""

_FRONTEND_FILE = re.compile(r"(?:^|/)(?:cuda/tile/|harness/compile/)")


def judge_compile(
    cell: Cell,
    trace: TraceOutcome | None,
    compile: CompileOutcome | None,
    inspection: Inspection | None,
    control: CompileOutcome | None = None,
    diagnosis: dict[str, Any] | None = None,
    infra: str | None = None,
    unsupported: str | None = None,
    patient: CompileOutcome | None = None,
) -> Judgement:
    """Judge a cell as far as compiling goes.

    `control` is the outcome of a one-line kernel on the same toolchain and architecture, `infra` what
    the harness or the machine failed at, if it did, `unsupported` why this toolchain was not even asked,
    `patient` what another try came to that was given more time.
    """
    if infra is not None:
        return judge_infra(infra)
    if unsupported is not None:
        return Judgement(Verdict.UNSUPPORTED, None, _sentence(unsupported), evidence={"message": unsupported})
    if trace is None:
        return judge_not_run(cell, "tracing was not started")
    if trace.status != "ok":
        return _judge_trace(cell, trace)
    if compile is None:
        return judge_not_run(cell, "it was traced, but compiling was not started")
    if compile.unkillable:
        judged = _unkillable(compile)
    elif compile.status == "timeout":
        judged = _broken(cell, control, diagnosis) or _judge_timeout(compile, patient)
    elif compile.status != "ok":
        judged = _judge_failure(cell, trace, compile, control, diagnosis)
    elif inspection is None:
        return judge_infra("The kernel compiled, but its cubin was not inspected.")
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


def judge_infra(what: str) -> Judgement:
    """The harness or the machine failed at this cell; `what` is a sentence, or a traceback, which says most
    in its last line."""
    lines = what.strip().splitlines() or ["no reason was given"]
    line = lines[-1] if lines[0].startswith("Traceback (") else lines[0]
    name = signature(Verdict.INFRA_ERROR, "harness", line)
    return Judgement(Verdict.INFRA_ERROR, name, _sentence(line), "harness", {"message": what[-EXCERPT:]})


# --- the frontend -----------------------------------------------------------------------------


def _judge_trace(cell: Cell, trace: TraceOutcome) -> Judgement:
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
            text = _sentence(words) if told else f"{who} does not support this: {words}{at}"
            return Judgement(Verdict.UNSUPPORTED, None, text, "cuda-tile", evidence)
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
        f"{who} failed inside with {named}{at}"
        if kind == "internal"
        else f"{who} rejects the kernel with {named}{at}"
    )
    return Judgement(Verdict.FRONTEND_ERROR, name, text, "cuda-tile", {**evidence, "kind": kind})


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
    text = _sentence(f"Importing {file} {pattern}{more}")
    return Judgement(
        Verdict.FRONTEND_ERROR, name, text, KERNEL, {**evidence, "stage": "import", "kind": "user"}
    )


# --- the backend ------------------------------------------------------------------------------


def _judge_failure(
    cell: Cell,
    trace: TraceOutcome,
    compile: CompileOutcome,
    control: CompileOutcome | None,
    diagnosis: dict[str, Any] | None,
) -> Judgement:
    said = output(compile)
    evidence = run_facts(compile)
    number = death_signal(compile)
    if number is None and _REFUSAL.search(said):
        return _refused(cell, trace, said, evidence)
    if files_failed(compile):
        words = telling_line(said) or "exit code 2 and not a word"
        return judge_infra(f"tileiras could not read or write its files: {words}")
    who = "tileiras" if number is not None else "ptxas"
    killer = number if number is not None else ptxas_signal(diagnosis)
    if killer is not None and stopped_from_outside(killer):
        return judge_infra(f"{who} was stopped from outside by {signal_name(killer)}.")
    if (broken := _broken(cell, control, diagnosis)) is not None:
        return broken
    if killer == signals.SIGKILL:
        memory = f" when it held {memory_text(compile.peak_rss_bytes)} of memory" if who == "tileiras" else ""
        text = f"{who} was killed{memory}, most likely for want of more."
        name = signature(Verdict.OUT_OF_MEMORY, who, "killed while compiling")
        return Judgement(Verdict.OUT_OF_MEMORY, name, text, who, evidence)

    component, answer = blame(said, diagnosis)
    if diagnosis is not None:
        evidence["diagnosis"] = diagnosis
    words = telling_line("\n".join(part for part in (answer, diagnosed(said)) if part))
    died = signal_name(killer) if killer is not None else None
    if died is not None:
        name = signature(Verdict.COMPILER_CRASH, component, f"{died}: {words}" if words else died)
        text = f"{component} crashed with {died}" + (f": {words}" if words else ", without a word.")
        return Judgement(Verdict.COMPILER_CRASH, name, text, component, evidence)
    if _CRASH.search(f"{answer}\n{said}"):
        name = signature(Verdict.COMPILER_CRASH, component, words)
        return Judgement(
            Verdict.COMPILER_CRASH, name, f"{component} failed inside: {words}", component, evidence
        )
    if words and rejects_bytecode(said):
        name = signature(Verdict.COMPILE_ERROR, "cuda-tile", words)
        text = f"{component} rejects the bytecode that cuda-tile wrote: {words}"
        return Judgement(Verdict.COMPILE_ERROR, name, text, "cuda-tile", evidence)
    if words:
        name = signature(Verdict.COMPILE_ERROR, component, words)
        return Judgement(Verdict.COMPILE_ERROR, name, f"{component} reports: {words}", component, evidence)
    ptxas_code = diagnosis.get("ptxas_exit_code") if diagnosis and component == "ptxas" else None
    code = ending(ptxas_code or compile.exit_code or 0)
    name = signature(Verdict.COMPILER_CRASH, component, f"gives up with {code} and no diagnosis")
    more = what_ptxas_did(diagnosis) if component != "ptxas" else ""
    text = f"{component} gave up with {code} and no diagnosis{more}."
    return Judgement(Verdict.COMPILER_CRASH, name, text, component, evidence)


def _refused(cell: Cell, trace: TraceOutcome, said: str, evidence: dict[str, Any]) -> Judgement:
    words = telling_line(said, _REFUSAL)
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
    said = output(control)
    evidence = {"stage": "compile", "control": run_facts(control), "diagnosis": diagnosis}
    if death_signal(control) is None and _REFUSAL.search(said):
        text = f"This toolchain refuses {cell.arch}: {telling_line(said, _REFUSAL)}"
        return Judgement(Verdict.UNSUPPORTED, None, text, "tileiras", evidence)
    component, answer = blame(said, diagnosis)
    reason = telling_line("\n".join(part for part in (answer, diagnosed(said)) if part))
    if not reason:
        number = death_signal(control)
        died = f"exit code {control.exit_code}" if number is None else signal_name(number)
        reason = "it did not end" if control.status == "timeout" else died
        reason += what_ptxas_did(diagnosis)
    tree = what_is_wrong_with(diagnosis)
    if diagnosis and diagnosis.get("missing"):
        reason = tree
    elif tree:
        reason += f"; {tree}"
    text = f"Even a one-line kernel does not compile for {cell.arch} with {cell.toolchain.name}: {reason}"
    name = signature(Verdict.TOOLCHAIN_BROKEN, component, reason)
    return Judgement(Verdict.TOOLCHAIN_BROKEN, name, text, component, evidence)


def _unkillable(compile: CompileOutcome) -> Judgement:
    who = compile.holder or "tileiras"
    name = signature(Verdict.UNKILLABLE, who, "survives SIGKILL while compiling")
    text = f"A process of the compiler ({who}) survived SIGKILL after {compile.wall_seconds:.0f} s."
    return Judgement(Verdict.UNKILLABLE, name, text, who, run_facts(compile))


def _judge_timeout(compile: CompileOutcome, patient: CompileOutcome | None) -> Judgement:
    """`patient` tells a compile that ends in its own time from one that does not."""
    first = compile
    if patient is not None and patient.status == "timeout":
        compile = patient
    holder = compile.holder
    share = next((usage for usage in compile.usage if usage.name == holder), None)
    seconds = compile.wall_seconds or compile.deadline_seconds
    facts = []
    if holder is None or compile.cpu_seconds < 0.1 * seconds:
        facts.append(f"it hardly used the CPU ({compile.cpu_seconds:.1f} s)")
    elif share is not None:
        facts.append(f"{holder} held the CPU for {share.cpu_seconds:.1f} s {cpu_course(compile)}".rstrip())
    else:
        facts.append(f"{holder} held the CPU {cpu_course(compile)}".rstrip())
    memory = memory_course(compile)
    if memory:
        facts.append(memory)
    pattern = "does not end"
    text = f"Compiling was stopped after {seconds:.0f} s: {' and '.join(facts)}"
    evidence = {**run_facts(compile), "holder": holder, "memory": memory}
    if patient is not None and patient.status != "timeout":
        ended = "it compiles" if patient.status == "ok" else "it fails"
        pattern = f"{ended} only after its deadline"
        text += f"; given more time, {ended} after {patient.wall_seconds:.0f} s"
        evidence["patient"] = run_facts(patient)
    elif patient is not None:
        text += f" (and after {first.wall_seconds:.0f} s before)"
    text += "."
    name = signature(Verdict.COMPILE_TIMEOUT, holder, pattern)
    return Judgement(Verdict.COMPILE_TIMEOUT, name, text, holder, evidence)


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


def user_line(trace: TraceOutcome) -> str:
    """The innermost line of the kernel's file that a message or traceback names: `k.py, line 3: text`."""
    for text in (trace.message, trace.traceback):
        found = [m for m in _LINE.finditer(text) if not _FRONTEND_FILE.search(m["file"])]
        if found:
            file = found[-1]["file"].rpartition("/")[2]
            code = (found[-1]["code"] or "").strip()
            return f"{file}, line {found[-1]['line']}" + (f": {code}" if code else "")
    return ""


# --- sentences ---------------------------------------------------------------------------------


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


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
