"""What a failed run of tileiras means, and which component of the backend is to blame."""

from __future__ import annotations

import re
import signal as signals
from typing import Any

from harness.judge.plain import judge_infra
from harness.model import Cell, CompileOutcome, Judgement, TraceOutcome, Verdict
from harness.outcome import (
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

_NEWER_BYTECODE = re.compile(r"unsupported Tile (?:IR bytecode )?version", re.IGNORECASE)
_REFUSAL = re.compile(
    r"Cannot find option named 'sm_\w+'|invalid GPU architecture|" + _NEWER_BYTECODE.pattern, re.IGNORECASE
)
_CRASH = re.compile(
    r"Assertion .*failed|LLVM ERROR|PLEASE submit a bug report|UNREACHABLE|internal (?:compiler )?error"
    r"|Stack dump:|std::bad_alloc|terminate called",
    re.IGNORECASE,
)


def judge_failure(
    cell: Cell,
    trace: TraceOutcome,
    compile: CompileOutcome,
    control: CompileOutcome | None,
    diagnosis: dict[str, Any] | None,
) -> Judgement:
    """Judge a compile that ended without a cubin: refused, stopped from outside, crashed or rejected."""
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
    if (broken := judge_toolchain(cell, control, diagnosis)) is not None:
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
    elif _NEWER_BYTECODE.search(words):
        text = f"This toolchain cannot read the frontend's bytecode: {words}"
    return Judgement(Verdict.UNSUPPORTED, None, text, "tileiras", evidence)


def judge_toolchain(
    cell: Cell, control: CompileOutcome | None, diagnosis: dict[str, Any] | None
) -> Judgement | None:
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


def judge_unkillable(compile: CompileOutcome) -> Judgement:
    """Judge a compile of which a process is still there."""
    who = compile.holder or "tileiras"
    name = signature(Verdict.UNKILLABLE, who, "survives SIGKILL while compiling")
    text = f"A process of the compiler ({who}) survived SIGKILL after {compile.wall_seconds:.0f} s."
    return Judgement(Verdict.UNKILLABLE, name, text, who, run_facts(compile))


def judge_timeout(compile: CompileOutcome, patient: CompileOutcome | None) -> Judgement:
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
