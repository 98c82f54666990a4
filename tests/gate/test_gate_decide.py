"""Go, no-go, cannot tell, and the reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from gate_sides import Sides
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker

from harness.gate import Answer, Change
from harness.gate.decision import Weight
from harness.matrix import GateRules
from harness.model import CellResult, Verdict

Toolkit = Callable[[str], list[CellResult]]


def test_an_upgrade_that_mends_the_deadlock_is_a_go(sides: Sides, upgrade: Toolkit) -> None:
    decision = sides.decide(upgrade("13.3.1"), upgrade("13.4.3"))
    assert (decision.answer, decision.answer.exit_code) == (Answer.GO, 0)
    kinds = [reason.kind for reason in decision.reasons]
    (fixed,) = [reason for reason in decision.reasons if reason.kind == Change.FIXED]
    assert fixed.signature is not None and fixed.signature.startswith("predicted_deadlock/tileiras/")
    assert len(fixed.cells) == decision.counts["fixed"] == 6
    assert fixed.command == f"python -m harness explain {fixed.example}"
    assert "occupancy=16, allow_tma=false" in fixed.where
    assert {"registers", "compile_seconds"} <= set(kinds)


def test_the_way_back_is_a_no_go_with_the_deadlock_first(sides: Sides, upgrade: Toolkit) -> None:
    decision = sides.decide(upgrade("13.4.3"), upgrade("13.3.1"))
    assert (decision.answer, decision.answer.exit_code) == (Answer.NO_GO, 1)
    first = decision.reasons[0]
    assert (first.kind, first.weight) == (Change.REGRESSED, Weight.FAILS)
    assert "predicted_deadlock" in first.text and "24 registers" in first.text
    assert decision.headline.startswith("1 reason against it, in 6 cells of ")


def test_the_slowdown_of_the_default_hints_is_named(sides: Sides) -> None:
    slower = sides.decide([sides.ran("13.3.1", 35.9)], [sides.ran("13.4.3", 44.3)])
    assert slower.answer is Answer.GO
    (reason,) = [reason for reason in slower.reasons if reason.kind == "device_time"]
    assert reason.weight is Weight.WARNS
    assert reason.details[0].startswith("35.9 → 44.3 (×1.23): ")
    strict = GateRules(fail=("regressed", "device_time"))
    decision = sides.decide([sides.ran("13.3.1", 35.9)], [sides.ran("13.4.3", 44.3)], strict)
    assert decision.answer is Answer.NO_GO


def test_what_only_the_machine_failed_at_cannot_be_told(sides: Sides) -> None:
    before = [sides.said(Verdict.COMPILES, "13.3.1", shape=(rows, 64)) for rows in (1, 2)]
    after = [
        sides.said(verdict, "13.4.3", shape=(rows, 64))
        for rows, verdict in ((1, Verdict.COMPILES), (2, Verdict.INFRA_ERROR))
    ]
    decision = sides.decide(before, after)
    assert (decision.answer, decision.answer.exit_code) == (Answer.CANNOT_TELL, 3)
    assert decision.reasons[0].weight is Weight.UNDECIDED
    assert decision.headline == "nothing known to be worse, but 1 cell of 2 cannot be decided"


def test_nothing_compared_is_nothing_told(sides: Sides) -> None:
    skipped = sides.decide([sides.said(Verdict.SKIPPED, "1")], [sides.said(Verdict.SKIPPED, "2")])
    assert skipped.answer is Answer.CANNOT_TELL
    assert sides.decide([], []).answer is Answer.CANNOT_TELL


def test_a_failure_outweighs_what_is_unknown(sides: Sides) -> None:
    before = [sides.said(Verdict.COMPILES, "1", shape=(rows, 64)) for rows in (1, 2)]
    after = [
        sides.said(verdict, "2", shape=(rows, 64))
        for rows, verdict in ((1, Verdict.COMPILER_CRASH), (2, Verdict.INFRA_ERROR))
    ]
    assert sides.decide(before, after).answer is Answer.NO_GO


def test_rules_decide_what_fails(sides: Sides) -> None:
    same = [sides.said(Verdict.HANG, toolkit) for toolkit in ("1", "2")]
    assert sides.decide([same[0]], [same[1]]).answer is Answer.GO
    strict = GateRules(fail=("still_bad",))
    assert sides.decide([same[0]], [same[1]], strict).answer is Answer.NO_GO
    hang = sides.said(Verdict.HANG, "2")
    lenient = GateRules(fail=(), warn=("regressed",))
    decision = sides.decide([sides.said(Verdict.PASS, "1")], [hang], lenient)
    assert (decision.answer, decision.reasons[0].weight) == (Answer.GO, Weight.WARNS)


def test_who_insists_on_an_answer_gets_no_go_only_for_what_is_known(sides: Sides) -> None:
    before = [sides.said(Verdict.COMPILES, "1"), sides.said(Verdict.SKIPPED, "1", shape=(1, 64))]
    after = [sides.said(Verdict.COMPILES, "2"), sides.said(Verdict.SKIPPED, "2", shape=(1, 64))]
    assert sides.decide(before, after).answer is Answer.GO
    insisting = GateRules(fail=("unknown",))
    assert sides.decide(before, after, insisting).answer is Answer.CANNOT_TELL


def test_the_smallest_cell_of_a_signature_is_the_example(sides: Sides) -> None:
    shapes = [(4096, 512), (16, 64), (256, 512)]
    before = [sides.said(Verdict.PASS, "1", shape=shape) for shape in shapes]
    after = [sides.said(Verdict.HANG, "2", shape=shape) for shape in shapes]
    decision = sides.decide(before, after)
    assert len(decision.reasons) == 1
    assert decision.reasons[0].example == after[1].cell.id


@given(st.lists(st.tuples(st.sampled_from(Verdict), st.sampled_from(Verdict)), max_size=12))
def test_every_cell_is_counted_and_no_failure_is_a_go(pairs: list[tuple[Verdict, Verdict]]) -> None:
    made = Sides(Maker())
    before = [made.said(b, "1", shape=(at + 1, 64)) for at, (b, _) in enumerate(pairs)]
    after = [made.said(a, "2", shape=(at + 1, 64)) for at, (_, a) in enumerate(pairs)]
    decision = made.decide(before, after)
    assert sum(decision.counts.values()) == len(pairs)
    regressed = any(b.is_good and a.is_finding for b, a in pairs)
    assert not (regressed and decision.answer is not Answer.NO_GO)
    weights = {reason.weight for reason in decision.reasons}
    assert (decision.answer is Answer.NO_GO) == (Weight.FAILS in weights)
    assert decision.answer is not Answer.GO or Weight.UNDECIDED not in weights
    told = json.loads(json.dumps(decision.to_json()))
    assert told["exit_code"] == {"go": 0, "no-go": 1, "cannot tell": 3}[told["decision"]]
    assert len(told["cells"]) == len(pairs)


def test_nothing_against_itself_is_never_a_no_go(sides: Sides, lab_run: list[CellResult]) -> None:
    results = [result for result in lab_run if result.cell.toolchain.cuda_toolkit == "13.3.1"]
    again = [replace(result, seconds={"x": 1.0}) for result in results]
    decision = sides.decide(results, again)
    assert decision.answer is Answer.GO
    assert decision.counts["still_bad"] == 6
    assert {reason.weight for reason in decision.reasons} == {Weight.NOTED}


def test_known_issues_are_named(sides: Sides, upgrade: Toolkit) -> None:
    from harness.gate import decide

    pairs = sides.pairs(upgrade("13.4.3"), upgrade("13.3.1"))
    decision = decide(
        pairs, GateRules(), "a", "b", explain=lambda r: r.cell.id, known_as=lambda r: "pool-deadlock"
    )
    assert decision.answer is Answer.NO_GO
    assert decision.reasons[0].title.endswith("known issue pool-deadlock")
