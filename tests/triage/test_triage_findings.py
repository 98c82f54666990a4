"""Which axis decides, from made-up answers: computed from outcomes, never from words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge import judge_compile
from harness.model import (
    Case,
    Cell,
    CellResult,
    CompileOutcome,
    Hints,
    Judgement,
    Toolchain,
    TraceOutcome,
    Verdict,
)
from harness.triage import show
from harness.triage.asked import Asked, Setting
from harness.triage.data import as_json
from harness.triage.findings import findings
from harness.triage.show import decides, paragraph

FRONTENDS, TOOLKITS = ("1.5.0", "1.7.0"), ("13.2.2", "13.3.1", "13.4.3")
ARCHS, LEVELS = ("sm_90", "sm_120"), (0, 3)
VARIANTS = (("", ""), ("dtype", "bfloat16"), ("signature", "strides of x unknown"))
EVERY = tuple(Setting("k", *axes) for axes in product(FRONTENDS, TOOLKITS, ARCHS, LEVELS, VARIANTS))


def crash(text: str = "crashed with SIGSEGV") -> Judgement:
    return Judgement(
        Verdict.COMPILER_CRASH, f"compiler_crash/tileiras/{text}", f"tileiras {text}.", "tileiras"
    )


def good() -> Judgement:
    return Judgement(Verdict.COMPILES, None, "Compiles.")


def sweep(judge: Callable[[Setting], Judgement], settings: Sequence[Setting] = EVERY) -> list[Asked]:
    asked = []
    for setting in settings:
        chain = Toolchain("t", setting.cuda_tile, setting.cuda_toolkit)
        hints = Hints(occupancy=8 if setting.variant[0] == "occupancy" else None)
        cell = Cell(chain, setting.arch, Case("f.py:k", (), "float16", hints))
        asked.append(Asked(setting, CellResult(cell, judge(setting)), 0.0))
    return asked


@pytest.mark.parametrize(
    ("bad", "axes"),
    [
        (lambda s: s.cuda_tile == "1.5.0", ["frontend"]),
        (lambda s: s.cuda_toolkit == "13.3.1", ["toolchain"]),
        (lambda s: s.arch == "sm_120" and s.level == 3, ["architecture", "opt level"]),
        (lambda s: s.variant[0] != "dtype", ["dtype"]),
        (lambda s: s.variant[0] != "signature", ["signature"]),
    ],
)
def test_the_axes_that_decide_are_those_that_do(bad: Callable[[Setting], bool], axes: list[str]) -> None:
    (found,) = findings(sweep(lambda s: crash() if bad(s) else good()))
    assert [decision.axis for decision in found.decisions] == axes
    assert found.control is not None
    if len(axes) == 1:
        assert f"The {axes[0]} alone decides" in decides(found)
    else:
        assert "It takes several things together" in decides(found)


CHANGED = (("dtype", "float32"), ("signature", "bases unaligned"), ("occupancy", "occupancy=8"))


def test_a_hint_is_named_before_other_types_and_nothing_decides_alone_beside_it() -> None:
    places = [replace(s, variant=v) for s in EVERY if not s.variant[0] for v in (("", ""), *CHANGED)]
    (found,) = findings(
        sweep(lambda s: crash() if s.cuda_toolkit == "13.3.1" and not s.variant[0] else good(), places)
    )
    assert found.control_differs == "occupancy 8 instead of as decorated"
    told = decides(found)
    assert told.startswith("As reported, the toolchain decides: 13.3.1 fails") and "alone" not in told
    assert "any one of these changes avoids it: occupancy (8); signature" in told


def test_a_changing_signature_is_followed_by_the_input() -> None:
    ways = {"13.2.2": crash("crashed with SIGSEGV"), "13.3.1": crash("gave up"), "13.4.3": crash("gave up")}
    (found,) = findings(sweep(lambda s: ways[s.cuda_toolkit]))
    assert found.decisions == () and found.ways == ("toolchain",)
    assert decides(found) == "The toolchain decides how it fails."
    assert [turn.cuda_toolkit for turn in found.turns] == list(TOOLKITS)
    assert found.turns[0].outcome == "SIGSEGV"


def test_a_rejection_by_an_old_frontend_decides_nothing() -> None:
    rejected = judge_compile(
        Cell(Toolchain("t", "1.5.0", "13.3.1"), "sm_90", Case("f.py:k", (), "float16")),
        TraceOutcome("error", error_type="TileTypeError", message="no attribute 'Slice'"),
        None,
        None,
    )
    (found,) = findings(sweep(lambda s: rejected if s.cuda_tile == "1.5.0" else good()))
    assert found.worst is None
    assert "compiles in all" in paragraph(found)
    assert "cuda-tile 1.5.0: TileTypeError" in paragraph(found)


def test_another_fault_of_a_changed_kernel_is_only_mentioned() -> None:
    def judge(s: Setting) -> Judgement:
        if s.variant[0] == "dtype":
            return crash("gave up")
        return crash() if s.arch == "sm_120" else good()

    (found,) = findings(sweep(judge))
    assert [decision.axis for decision in found.decisions] == ["architecture"]
    assert found.others == ("bfloat16: compiler_crash",)


def test_a_broken_toolchain_is_no_failure_of_the_kernel() -> None:
    broken = Judgement(
        Verdict.TOOLCHAIN_BROKEN, "toolchain_broken/ptxas/older", "Even a one-line kernel fails."
    )
    (found,) = findings(sweep(lambda s: broken if s.cuda_toolkit == "13.2.2" else good()))
    assert found.worst is None and found.broken == ("13.2.2",)
    assert "no kernel is blamed" in paragraph(found)


@given(st.sets(st.sampled_from(EVERY)))
def test_a_decision_is_always_borne_out_by_a_pair(bad: set[Setting]) -> None:
    asked = sweep(lambda s: crash() if s in bad else good())
    (found,) = findings(asked)
    as_json([found], asked)
    paragraph(found)
    plain_failures = [s for s in bad if not s.variant[0]]
    if found.decisions:
        assert plain_failures
    if not plain_failures:
        assert found.worst is None


def test_a_compile_that_fails_is_told_by_its_exit_code() -> None:
    cell = Cell(Toolchain("t", "1.7.0", "13.3.1"), "sm_90", Case("f.py:k", (), "float16"))
    failed = CompileOutcome("failed", exit_code=5, stderr="error: failed to compile Tile IR program\n")
    judgement = judge_compile(cell, TraceOutcome("ok", bytecode_sha256="b" * 64), failed, None)
    result = CellResult(cell, judgement, compile=failed)
    (found,) = findings([Asked(Setting("k", "1.7.0", "13.3.1", "sm_90"), result, 0.0)])
    assert found.outcomes == {"exit 5": 1}


def test_what_told_nothing_is_counted() -> None:
    refused = Judgement(Verdict.UNSUPPORTED, None, "This toolchain refuses sm_90: no such architecture.")
    (found,) = findings(sweep(lambda s: refused))
    assert not found.is_something
    assert paragraph(found) == f"k: no setting told anything: no such target ({len(EVERY)})."


def timeout() -> Judgement:
    return Judgement(Verdict.COMPILE_TIMEOUT, "compile_timeout/ptxas/does not end", "No end.", "ptxas")


def test_every_kind_of_failure_has_its_own_contrast() -> None:
    def judge(s: Setting) -> Judgement:
        if s.arch == "sm_90" and s.level == 3:
            return crash()
        return timeout() if s == EVERY[0] else good()

    (found,) = findings(sweep(judge))
    assert [decision.axis for decision in found.decisions] == ["architecture", "opt level"]
    assert all("1.5.0" not in decision.bad for decision in found.decisions)
    (other,) = found.kinds
    assert other.failures == 1 and other.worst.setting == EVERY[0]
    assert "Another kind of failure" in paragraph(found)


def test_a_copy_that_cannot_be_imported_is_no_verdict_on_the_kernel() -> None:
    trace = TraceOutcome(
        "error", error_type="ModuleNotFoundError", message="No module named 'x'", stage="import"
    )
    cell = Cell(Toolchain("t", "1.7.0", "13.3.1"), "sm_90", Case("f.py:k", (), "float16"))
    (found,) = findings(sweep(lambda s: judge_compile(cell, trace, None, None)))
    assert not found.is_something and not found.rejected
    assert "could not be looked into" in paragraph(found) and "No module named 'x'" in paragraph(found)


def test_a_value_that_fails_and_passes_is_on_neither_side() -> None:
    def judge(s: Setting) -> Judgement:
        bad = s.cuda_toolkit == "13.2.2" or (s.cuda_toolkit == "13.3.1" and s.level == 3)
        return crash() if bad else good()

    (found,) = findings(sweep(judge))
    told = decides(found)
    assert "toolchain (13.2.2 fails, 13.4.3 does not, 13.3.1 does or not, by the rest)" in told


def test_a_row_of_a_table_never_hides_a_frontend_that_answers_otherwise() -> None:
    assert show._spans(["1.3", "1.4", "1.6"], ["1.3", "1.4", "1.5", "1.6"]) == "1.3–1.4, 1.6"
    answered = {"1.3": {"a": "x"}, "1.4": {"a": "y", "b": "z"}, "1.5": {"a": "x", "b": "z"}}
    assert show._alike(answered) == [
        (["1.4"], {"a": "y", "b": "z"}),
        (["1.5", "1.3"], {"a": "x", "b": "z"}),
    ]
