"""Blame: the toolchain before the kernel, its missing pieces before its words; time and places in words."""

from __future__ import annotations

from typing import Any

import pytest
from made_results import Maker

from harness.judge import judge_compile, user_line
from harness.model import CompileOutcome, Judgement, ProcessUsage, TraceOutcome, Verdict

SLOW = CompileOutcome(
    "timeout",
    signal=9,
    wall_seconds=60.0,
    cpu_seconds=58.0,
    deadline_seconds=60.0,
    holder="tileiras",
    usage=(ProcessUsage("tileiras", 58.0, 300 << 20),),
    rss_over_time=((1.0, 100 << 20), (30.0, 200 << 20), (45.0, 250 << 20), (60.0, 300 << 20)),
    cpu_over_time=((1.0, 1.0), (30.0, 29.0), (45.0, 43.0), (60.0, 58.0)),
)
OPAQUE = CompileOutcome("failed", exit_code=5, stderr="error: failed to compile Tile IR program\n")


def judge(
    make: Maker,
    outcome: CompileOutcome,
    control: CompileOutcome | None = None,
    diagnosis: dict[str, Any] | None = None,
    patient: CompileOutcome | None = None,
) -> Judgement:
    return judge_compile(
        make.cell(), make.trace(), outcome, None, control=control, diagnosis=diagnosis, patient=patient
    )


@pytest.mark.parametrize(
    "outcome", [OPAQUE, SLOW, CompileOutcome("failed", signal=11), CompileOutcome("failed", signal=6)]
)
def test_a_control_that_fails_too_acquits_the_kernel_however_it_failed(
    make: Maker, outcome: CompileOutcome
) -> None:
    missing = {"missing": ["ptxas"], "components": {}, "ptxas_called": False}
    judged = judge(make, outcome, control=OPAQUE, diagnosis=missing)
    assert judged.verdict is Verdict.TOOLCHAIN_BROKEN
    assert "its ptxas is missing" in judged.summary


def test_components_of_different_minors_are_told(make: Maker) -> None:
    diagnosis = {
        "missing": [],
        "components": {"tileiras": "13.4.92", "nvvm": "13.4.92", "ptxas": "13.2.51"},
        "ptxas_called": True,
        "ptxas_exit_code": 255,
        "ptxas_stderr": "ptxas /tmp/tile-harness-diagnose-ab_c1/mlir-kernels-x-8f.ptx, line 9; fatal   : "
        "Unsupported .version 9.4; current version is '9.2'\n",
    }
    judged = judge(make, OPAQUE, control=OPAQUE, diagnosis=diagnosis)
    assert judged.component == "ptxas"
    assert "ptxas kernel.ptx, line 9; fatal" in judged.summary
    assert "it mixes tileiras 13.4.92, nvvm 13.4.92, ptxas 13.2.51" in judged.summary
    assert "tile-harness" not in judged.summary


def test_a_compile_past_its_deadline_is_described_by_holder_cpu_and_memory(make: Maker) -> None:
    told = judge(make, SLOW).summary
    assert "tileiras held the CPU for 58.0 s to the end" in told
    assert "memory was still growing" in told


def test_patience_tells_a_slow_compile_from_one_without_end(make: Maker) -> None:
    ended = judge(make, SLOW, patient=CompileOutcome("ok", exit_code=0, wall_seconds=170.0))
    assert ended.verdict is Verdict.COMPILE_TIMEOUT
    assert "given more time, it compiles after 170 s" in ended.summary
    endless = judge(make, SLOW, patient=CompileOutcome("timeout", wall_seconds=600.0, holder="tileiras"))
    assert "stopped after 600 s" in endless.summary
    assert ended.signature != endless.signature == judge(make, SLOW).signature


@pytest.mark.parametrize(
    ("trace", "line"),
    [
        (
            TraceOutcome(
                "error", message='wrong\n    "/a/k.py", line 7, col 5-9, in k:\n        ct.lod(x)\n   ^^^'
            ),
            "k.py, line 7: ct.lod(x)",
        ),
        (
            TraceOutcome("error", traceback='  File "/a/k.py", line 3, in <module>\n    import nothing\n'),
            "k.py, line 3: import nothing",
        ),
        (TraceOutcome("internal", traceback='  File "cuda/tile/_ir/x.py", line 3, in f\n    a[b]\n'), ""),
        (TraceOutcome("error", message="wrong"), ""),
    ],
)
def test_the_readers_line_is_found(trace: TraceOutcome, line: str) -> None:
    assert user_line(trace) == line
