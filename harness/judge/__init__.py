"""What a cell's observations mean: one verdict, one signature, one plain sentence. Pure.

Judging never runs anything, so recorded observations can be judged again. The order of the questions
matters: a refusal ("I do not know this architecture") is no fault, a toolchain that cannot compile a
one-line control kernel says nothing about this kernel, and only then is a compiler blamed.

`diagnosis`, where the pipeline made one, tells what a run with a shim in place of ptxas saw:
`ptxas_called` (bool), `ptxas_exit_code` (int; minus the number for a signal) and `ptxas_stderr` (str).

cell.py          the questions in their order
plain.py         judgements that need no compiler's evidence
frontend.py      what tracing came to
backend.py       what a failed compile means, and who is to blame
machine_code.py  what the cubin tells
"""

from __future__ import annotations

from harness.judge.cell import judge_compile
from harness.judge.frontend import KERNEL, MATRIX, user_line
from harness.judge.plain import judge_infra, judge_not_run, judge_skipped

__all__ = ["KERNEL", "MATRIX", "judge_compile", "judge_infra", "judge_not_run", "judge_skipped", "user_line"]
