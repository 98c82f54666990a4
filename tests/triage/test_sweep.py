"""What a sweep asks again, and what it makes of the answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from harness.lab import Deadlines
from harness.model import CellResult, Judgement, Verdict
from harness.triage.asked import Asked, Setting
from harness.triage.look import FoundKernel
from harness.triage.signatures import Signature
from harness.triage.sweep import Scope, Sweep

SIGNATURE = Signature(FoundKernel("k", "k", 1, ()), (), "told", label="k", source="k.py:k")
SCOPE = Scope(("1.6.0", "1.7.0"), ("13.3.1", "13.5.0"), ("sm_90",), ())
GOOD = Judgement(Verdict.COMPILES, None, "Compiles.")
TIMEOUT = Judgement(Verdict.COMPILE_TIMEOUT, "compile_timeout/ptxas/does not end", "No end.", "ptxas")


class Answers(Sweep):
    """A sweep whose compilers answer by a function of setting and deadline."""

    answer: Callable[[Setting, float], Judgement]
    retried: list[Setting]

    def _one(self, setting: Setting) -> Asked:
        deadline = self.lab.deadlines.compile
        if deadline > 15:
            self.retried.append(setting)
        return Asked(setting, CellResult(self.cell(setting), self.answer(setting, deadline)), 0.0)


def swept(
    answer: Callable[[Setting, float], Judgement],
    *,
    seconds: float = 60,
    signature: Signature = SIGNATURE,
    **deadlines: float,
) -> Answers:
    lab: Any = SimpleNamespace(deadlines=Deadlines(compile=15.0, **deadlines))
    sweep = Answers(lab, [signature], SCOPE, time.monotonic() + seconds, jobs=2)
    sweep.answer, sweep.retried = answer, []
    sweep.run()
    assert lab.deadlines.compile == 15.0
    return sweep


def lone(setting: Setting) -> bool:
    return (setting.cuda_tile, setting.cuda_toolkit, setting.level) == ("1.7.0", "13.3.1", None)


def test_a_compile_that_was_only_slow_counts_as_what_it_came_to() -> None:
    sweep = swept(lambda s, deadline: TIMEOUT if lone(s) and deadline == 15 else GOOD)
    assert [lone(setting) for setting in sweep.retried] == [True]
    assert all(asked.result.verdict is Verdict.COMPILES for asked in sweep.asked.values())


def test_one_of_many_that_do_not_end_is_asked_again_for_all() -> None:
    sweep = swept(lambda s, deadline: TIMEOUT if s.cuda_toolkit == "13.3.1" else GOOD)
    assert len(sweep.retried) == 1
    ends = [asked.result.verdict for s, asked in sweep.asked.items() if s.cuda_toolkit == "13.3.1"]
    assert len(ends) > 3 and set(ends) == {Verdict.COMPILE_TIMEOUT}


def test_nothing_is_asked_twice_where_patience_was_given() -> None:
    sweep = swept(lambda s, deadline: TIMEOUT if lone(s) else GOOD, patience=60.0)
    assert sweep.retried == []


def test_every_setting_has_a_case_of_its_own_hints() -> None:
    sweep = swept(lambda s, deadline: GOOD)
    levels = {setting.level: sweep.cell(setting).case.hints.opt_level for setting in sweep.asked}
    assert all(level == hint for level, hint in levels.items()) and 0 in levels
    assert {sweep.cell(s).case.kernel for s in sweep.asked} == {"k.py:k"}


def test_around_a_failure_the_hints_of_the_decorator_are_lowered() -> None:
    decorated = replace(SIGNATURE, kernel=replace(SIGNATURE.kernel, hints=(("occupancy", 16),)))
    bad = Judgement(Verdict.COMPILER_CRASH, "crash", "tileiras crashed.", "tileiras")
    sweep = swept(lambda s, deadline: GOOD if s.variant[0] else bad, signature=decorated)
    lowered = {sweep.cell(s).case.hints.occupancy for s in sweep.asked if s.variant[0] == "occupancy"}
    assert lowered == {8, 1}


def test_what_there_was_no_time_for_is_counted_once() -> None:
    sweep = swept(lambda s, deadline: GOOD, seconds=-1)
    assert not sweep.asked and len(sweep.unasked) == 20


def test_answers_come_in_the_order_of_the_questions() -> None:
    def answer(setting: Setting, deadline: float) -> Judgement:
        time.sleep(0.02 if setting.cuda_toolkit == "13.5.0" else 0)
        return GOOD

    assert [s.cuda_toolkit for s in swept(answer).asked][:2] == ["13.5.0", "13.3.1"]
