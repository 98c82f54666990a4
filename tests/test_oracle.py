from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker

from harness.judge import judge_not_run
from harness.model import Advice, CellResult, Verdict
from harness.oracle import METRICS, Answer, OracleError, parse_oracle

NAMES = (
    "deadlock",
    "fine",
    "many_registers",
    "advised",
    "unsupported",
    "broken",
    "error",
    "slow",
    "timeout",
    "not_run",
)


@pytest.fixture(scope="session")
def seen(make: Maker) -> dict[str, CellResult]:
    """One result of every sort that an oracle may meet."""
    fine = make.result(inspection=make.inspection(registers=128, ctas=2))
    remark = (Advice("occupancy_missed", "asked for 16 CTAs per SM, 255 registers allow 1"),)
    refusal = "tileiras: for the --gpu-name option: Cannot find option named 'sm_90'!"
    slow = make.compiled(wall_seconds=9.0, cpu_seconds=8.4)
    timeout = make.compiled(
        status="timeout", exit_code=None, cubin_sha256=None, wall_seconds=60.0, cpu_seconds=59.0
    )
    return {
        "deadlock": make.result(inspection=make.deadlocked()),
        "fine": replace(fine, judgement=replace(fine.judgement, advice=())),
        "many_registers": make.result(inspection=make.inspection(registers=255)),
        "advised": replace(fine, judgement=replace(fine.judgement, advice=remark)),
        "unsupported": make.result(compile=make.failed(1, refusal)),
        "broken": make.result(compile=make.failed(), control=make.failed()),
        "error": make.result(compile=make.failed(1, "error: operand type mismatch")),
        "slow": make.result(compile=slow, inspection=make.inspection(registers=128)),
        "timeout": make.result(compile=timeout),
        "not_run": CellResult(make.cell(), judge_not_run(make.cell(), "the run was interrupted")),
    }


CASES = [
    ("signature", "deadlock", "fine many_registers advised slow"),
    ("verdict=predicted_deadlock", "deadlock", "fine many_registers advised slow"),
    ("verdict=compile_error", "error", "fine many_registers advised slow"),
    ("registers>=255", "many_registers", "fine advised deadlock slow"),
    ("registers < 25", "deadlock", "fine many_registers advised slow"),
    ("compile_seconds>5", "slow timeout", "fine many_registers advised deadlock"),
    ("advice=occupancy_missed", "advised many_registers slow", "fine deadlock"),
]


@pytest.mark.parametrize(("text", "bad", "good"), CASES)
def test_everything_that_does_not_bear_on_the_fault_is_unknown(
    seen: dict[str, CellResult], text: str, bad: str, good: str
) -> None:
    oracle = parse_oracle(text, seen[bad.split(maxsplit=1)[0]])
    expected = dict.fromkeys(NAMES, "unknown")
    expected |= dict.fromkeys(bad.split(), "bad") | dict.fromkeys(good.split(), "good")
    assert {name: str(oracle.answer(result)) for name, result in seen.items()} == expected


def test_a_compile_that_was_stopped_is_only_known_to_take_longer(seen: dict[str, CellResult]) -> None:
    longer, shorter = parse_oracle("compile_seconds>5", seen["slow"]), "compile_seconds<10"
    assert longer.answer(seen["timeout"]) is Answer.BAD
    assert parse_oracle(shorter, seen["slow"]).answer(seen["timeout"]) is Answer.UNKNOWN
    assert parse_oracle("compile_seconds>8", seen["slow"]).answer(seen["timeout"]) is Answer.BAD


@pytest.mark.parametrize(
    ("text", "original", "message"),
    [
        (
            "signature",
            "fine",
            "the cell shows no fault to look for (Compiles: 128 registers × 256 threads, 2 CTAs per SM); "
            "name what is bad with --oracle, such as registers>=255",
        ),
        (
            "signature",
            "advised",
            "the cell shows no fault to look for (Compiles: 128 registers × 256 threads, 2 CTAs per SM); "
            "name what is bad with --oracle, such as advice=occupancy_missed",
        ),
        ("verdict=hangs", "fine", 'there is no verdict "hangs"; did you mean hang?'),
        (
            "verdict=compiles",
            "fine",
            '"compiles" is the verdict of a cell without a fault; name a fault',
        ),
        (
            "verdict=hang",
            "fine",
            'the oracle "verdict=hang" does not call the cell bad: its verdict is compiles',
        ),
        (
            "advice=spills",
            "advised",
            'the oracle "advice=spills" does not call the cell bad: it carries the advice occupancy_missed',
        ),
        ("registres>3", "fine", 'nothing called "registres" can be compared; did you mean registers?'),
        (
            "registers>=255",
            "fine",
            'the oracle "registers>=255" does not call the cell bad: its registers are 128',
        ),
        (
            "registers>=255",
            "unsupported",
            'the oracle "registers>=255" does not call the cell bad: its registers are not known',
        ),
        (
            "registers>many",
            "fine",
            '"many" is no number to compare registers with; write registers>255',
        ),
        (
            "bad",
            "fine",
            '"bad" is no oracle; write signature, verdict=WORD, advice=KIND, or a comparison such as '
            "registers>=255 or compile_seconds>5",
        ),
    ],
)
def test_what_makes_no_sense_is_told(
    seen: dict[str, CellResult], text: str, original: str, message: str
) -> None:
    with pytest.raises(OracleError, match=f"^{re.escape(message)}$"):
        parse_oracle(text, seen[original])


@given(
    metric=st.sampled_from(sorted(METRICS)),
    comparison=st.sampled_from([">=", "<=", "==", "!=", ">", "<"]),
    bound=st.integers(0, 100_000),
)
def test_an_oracle_reads_what_it_writes(make: Maker, metric: str, comparison: str, bound: int) -> None:
    result = make.result(inspection=make.inspection(spill_instructions=3))
    try:
        oracle = parse_oracle(f"{metric} {comparison} {bound}", result)
    except OracleError as error:
        assert "does not call the cell bad" in str(error)
    else:
        assert parse_oracle(str(oracle), result) == oracle


@given(st.text(max_size=40))
def test_any_text_is_an_oracle_or_a_sentence(make: Maker, text: str) -> None:
    result = make.result(inspection=make.deadlocked())
    try:
        assert parse_oracle(text, result).answer(result) is Answer.BAD
    except OracleError as error:
        assert str(error)


def test_verdicts_that_tell_nothing_can_be_asked_for_too(seen: dict[str, CellResult]) -> None:
    oracle = parse_oracle("verdict=unsupported", seen["unsupported"])
    assert oracle.answer(seen["unsupported"]) is Answer.BAD
    assert oracle.answer(seen["fine"]) is Answer.GOOD
    assert seen["unsupported"].verdict is Verdict.UNSUPPORTED
