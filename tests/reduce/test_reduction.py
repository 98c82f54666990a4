"""The whole reduction against compilers that fail on request: what is kept, what is never slipped to."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.lab import Deadlines, Examination, Lab, Question
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
from harness.oracle import OracleError, SameSignature
from harness.reduce.engine import End
from harness.reduce.known_good import nearest_good
from harness.reduce.reduced import Reduced
from harness.reduce.reduction import Progress, ReduceError, Request, reduce_cell
from harness.reduce.syntax import role

BAD, GOOD = Toolchain("bad", "1.7.0", "13.3.1"), Toolchain("good", "1.7.0", "13.4.3")
CASE = Case("rmsnorm.static_persistent", (16384, 512), "bfloat16", Hints(occupancy=16))
CELL = Cell(BAD, "sm_90", CASE)

Rule = Callable[[str, Question], str | None]
"""What the compiler complains of, given the kernel's text; None if it is content."""


class FaultyLab:
    """A lab whose compilers fail by a rule. Complaining "forever" means not to end."""

    def __init__(self, scratch: Path, rule: Rule) -> None:
        self.deadlines = Deadlines()
        self.asked: list[str] = []
        self._scratch = scratch
        self._rule = rule
        self.provisioner = SimpleNamespace(backend=lambda chain: SimpleNamespace(components={}))
        self.supervisor = SimpleNamespace(scratch=self._folder)

    @contextmanager
    def _folder(self, prefix: str) -> Iterator[Path]:
        yield self._scratch

    def examine(self, question: Question) -> Examination:
        source = question.specialization.source
        text = Path(source.path).read_text()
        self.asked.append(text)
        complaint = self._rule(_body(text, source.function), question)
        trace = TraceOutcome("ok", "0" * 64, "13.3", "symbol", wall_seconds=0.1)
        return Examination(trace=trace, compile=self._compiled(complaint))

    def _compiled(self, complaint: str | None) -> CompileOutcome:
        match complaint:
            case None:
                return CompileOutcome("failed", 1, stderr="Cannot find option named 'sm_90'!")
            case "forever":
                limit = self.deadlines.compile
                return CompileOutcome(
                    "timeout", wall_seconds=limit, deadline_seconds=limit, holder="tileiras"
                )
        return CompileOutcome("failed", 5, stderr=f"{complaint}\n", wall_seconds=0.5)


def _body(text: str, function: str) -> str:
    return re.split(r"\n@ct\.kernel\n", text[text.index(f"def {function}(") :])[0]


def reduced(
    lab: FaultyLab, progress: Callable[[Progress], None] = lambda progress: None, **request: Any
) -> Reduced:
    return reduce_cell(cast(Lab, lab), Request(CELL, **request), progress)


def complains_of(*words: str) -> Rule:
    """Faults named by what the text holds; the first word found is the one complained of."""

    def rule(text: str, question: Question) -> str | None:
        return next((f"cannot lower {word.replace('.', ' ')}" for word in words if word in text), None)

    return rule


def test_the_smallest_kernel_with_the_fault_is_left(tmp_path: Path) -> None:
    result = reduced(FaultyLab(tmp_path, complains_of("ct.rsqrt")))
    assert result.text == "import cuda.tile as ct\n\n\n@ct.kernel\ndef kernel():\n    ct.rsqrt()\n"
    assert (result.original_statements, result.statements) == (11, 1)
    assert result.case == Case(CASE.kernel, (1, 1), "float32")
    assert result.signature == "compile_error/tileiras/cannot lower ct rsqrt"
    assert (result.end, result.original_case, result.original_cell) == (End.COMPLETE, CASE, CELL.id)


def test_the_result_does_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    rule = complains_of("ct.rsqrt", "ct.store")
    alone, several = (reduced(FaultyLab(tmp_path, rule), jobs=jobs) for jobs in (1, 3))
    assert replace(alone, seconds=0) == replace(several, seconds=0)


def test_another_bug_is_never_slipped_to(tmp_path: Path) -> None:
    """Without ct.sum this compiler complains of something else in every kernel."""

    def rule(text: str, question: Question) -> str:
        return "cannot lower a sum" if "ct.sum" in text else "cannot lower anything"

    result = reduced(FaultyLab(tmp_path, rule))
    assert "ct.sum" in result.text and result.statements == 1
    assert result.signature == "compile_error/tileiras/cannot lower a sum"


def test_what_the_configuration_needs_stays(tmp_path: Path) -> None:
    def rule(text: str, question: Question) -> str | None:
        dtypes = {p.name: getattr(p, "dtype", "") for p in question.specialization.parameters}
        hinted = question.specialization.hints.occupancy == 16
        return "cannot lower a hint" if hinted and "bfloat16" in (dtypes.get("x"), dtypes.get("y")) else None

    result = reduced(FaultyLab(tmp_path, rule))
    assert (result.case.dtype, result.hints) == ("bfloat16", Hints(occupancy=16))
    assert [(a.original, a.dtype, a.shape) for a in result.arrays] == [("x", "bfloat16", (1, 1))]


def test_a_candidate_must_stay_good_on_the_good_toolchain(tmp_path: Path) -> None:
    """The good one has no trouble with a sum that is stored; with less it complains too."""

    def rule(text: str, question: Question) -> str | None:
        return "cannot lower a sum" if "ct.sum" in text else None

    class Both(FaultyLab):
        def examine(self, question: Question) -> Examination:
            if question.toolchain != GOOD:
                return super().examine(question)
            seen = super().examine(question)
            text = Path(question.specialization.source.path).read_text()
            fine = "ct.store" in _body(text, question.specialization.source.function)
            return _fine(seen) if fine else seen

    result = reduced(Both(tmp_path, rule), good=GOOD)
    assert "ct.sum" in result.text and "ct.store" in result.text
    assert result.good == GOOD
    assert "ct.store" not in reduced(Both(tmp_path, rule)).text


def _fine(seen: Examination) -> Examination:
    from made_results import Maker

    inspected = next(
        made.inspection
        for maker in [Maker()]
        for made in (maker.answer(cell) for cell in maker.cells())
        if made.verdict is Verdict.COMPILES
    )
    return replace(seen, compile=CompileOutcome("ok", 0, cubin_sha256="1" * 64), inspection=inspected)


def test_a_good_toolchain_that_is_not_good_is_refused(tmp_path: Path) -> None:
    rule = complains_of("ct.rsqrt")
    with pytest.raises(ReduceError, match=r"good is not good on this cell .*; name another"):
        reduced(FaultyLab(tmp_path, rule), good=GOOD)
    assert reduced(FaultyLab(tmp_path, rule), good=GOOD, good_optional=True).good is None


def test_a_cell_without_a_fault_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="no fault"):
        reduced(FaultyLab(tmp_path, complains_of("no such thing")))


def test_what_does_not_end_is_confirmed_with_the_full_deadline(tmp_path: Path) -> None:
    """A kernel without the load ends after 20 s: that outlives the short deadline, not the full one."""
    lab = FaultyLab(tmp_path, lambda text, question: None)

    def rule(text: str, question: Question) -> str | None:
        if "ct.rsqrt" not in text:
            return None
        return "forever" if "ct.load" in text or lab.deadlines.compile < 20 else None

    lab._rule = rule
    result = reduced(lab, deadline=60.0)
    assert (result.verdict, result.deadline) == ("compile_timeout", 60.0)
    assert "ct.load" in result.text and "ct.rsqrt" in result.text
    assert "stopped after 60 s" in result.summary


def test_an_interrupt_leaves_the_best_so_far(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.phase.startswith("source") and progress.kept >= 12:
            raise KeyboardInterrupt

    result = reduced(FaultyLab(tmp_path, complains_of("ct.rsqrt")), interrupt)
    assert result.end is End.INTERRUPTED
    assert result.signature is not None and "ct.rsqrt" in result.text
    assert 1 <= result.statements < result.original_statements


def test_a_spent_budget_leaves_the_best_so_far(tmp_path: Path) -> None:
    stuck = threading.Event()

    def rule(text: str, question: Question) -> str | None:
        if "ct.load" not in text:
            stuck.wait(20)
        return "cannot lower ct rsqrt" if "ct.rsqrt" in text else None

    try:
        result = reduced(FaultyLab(tmp_path, rule), budget=1.0)
    finally:
        stuck.set()
    assert result.end is End.BUDGET
    assert "ct.rsqrt" in result.text and "ct.load" in result.text


def test_each_candidate_gets_a_deadline_from_the_original(tmp_path: Path) -> None:
    lab = FaultyLab(tmp_path, complains_of("ct.rsqrt"))
    reduced(lab)
    assert lab.deadlines == Deadlines(trace=5.0, compile=5.0)


# --- the nearest good toolchain ---------------------------------------------------------------


def results(**verdicts: str) -> list[CellResult]:
    """Results of the same case by cuda-toolkit, e.g. v13_4_3="compiles"."""
    found = []
    for name, word in verdicts.items():
        version = name.removeprefix("v").replace("_", ".")
        cell = Cell(Toolchain(version, "1.7.0", version), "sm_90", CASE)
        signature = "s" if word == "predicted_deadlock" else None
        found.append(CellResult(cell, Judgement(Verdict(word), signature, "So it is.")))
    return found


def nearest(bad: str, made: list[CellResult]) -> str | None:
    found = nearest_good(made, next(r for r in made if r.cell.toolchain.name == bad), SameSignature("s"))
    return found.name if found else None


def test_the_nearest_good_toolchain_is_counted_in_versions() -> None:
    made = results(
        v13_1_0="compiles", v13_2_2="predicted_deadlock", v13_3_1="predicted_deadlock", v13_5_0="compiles"
    )
    assert nearest("13.3.1", made) == "13.5.0"
    assert nearest("13.2.2", made) == "13.1.0"


def test_of_two_as_near_the_newer_one_is_taken() -> None:
    made = results(v13_2_2="compiles", v13_3_1="predicted_deadlock", v13_4_3="compiles")
    assert nearest("13.3.1", made) == "13.4.3"


def test_only_the_same_case_architecture_and_frontend_count() -> None:
    (bad,) = results(v13_3_1="predicted_deadlock")
    (good,) = results(v13_4_3="compiles")
    cell = good.cell
    others = [
        replace(good, cell=replace(cell, arch="sm_120")),
        replace(good, cell=replace(cell, case=replace(CASE, dtype="float32"))),
        replace(good, cell=replace(cell, toolchain=replace(cell.toolchain, cuda_tile="1.5.0"))),
    ]
    assert nearest("13.3.1", [bad, *others]) is None
    assert nearest("13.3.1", [bad, *others, good]) == "13.4.3"


def test_what_tells_nothing_is_not_good() -> None:
    made = results(v13_3_1="predicted_deadlock", v13_4_3="unsupported", v13_5_0="not_run")
    assert nearest("13.3.1", made) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ct.store(x, 0, 1)", "out"),
        ("ct.store(array=x, index=0, tile=1)", "out"),
        ("ct.store(y, 0, ct.load(x, 0))", "in"),
        ("ct.store(x, 0, ct.load(x, 0))", "inout"),
        ("ct.atomic_add(x, 0, 1)", "inout"),
        ("ct.store(x, 0, y.astype(x.dtype))", "out"),
        ("pass", "in"),
    ],
)
def test_how_an_array_is_used_is_read_from_the_text(body: str, expected: str) -> None:
    assert role("x", f"def kernel(x, y):\n    {body}\n") == expected
