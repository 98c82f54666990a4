"""The order of the questions: whether a compiler was asked, what it said, and what it made."""

from __future__ import annotations

from typing import Any

from harness.advice import advise
from harness.judge.backend import judge_failure, judge_timeout, judge_toolchain, judge_unkillable
from harness.judge.frontend import judge_trace
from harness.judge.machine_code import judge_cubin
from harness.judge.plain import judge_infra, judge_not_run, sentence
from harness.model import Cell, CompileOutcome, Inspection, Judgement, TraceOutcome, Verdict


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
        return Judgement(Verdict.UNSUPPORTED, None, sentence(unsupported), evidence={"message": unsupported})
    if trace is None:
        return judge_not_run(cell, "tracing was not started")
    if trace.status != "ok":
        return judge_trace(cell, trace)
    if compile is None:
        return judge_not_run(cell, "it was traced, but compiling was not started")
    if compile.unkillable:
        judged = judge_unkillable(compile)
    elif compile.status == "timeout":
        judged = judge_toolchain(cell, control, diagnosis) or judge_timeout(compile, patient)
    elif compile.status != "ok":
        judged = judge_failure(cell, trace, compile, control, diagnosis)
    elif inspection is None:
        return judge_infra("The kernel compiled, but its cubin was not inspected.")
    else:
        judged = judge_cubin(inspection)
    remarks = advise(cell.case, compile, inspection)
    return Judgement(
        judged.verdict, judged.signature, judged.summary, judged.component, judged.evidence, remarks
    )
