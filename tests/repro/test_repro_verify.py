from __future__ import annotations

from pathlib import Path

import pytest
from made_repros import IDENTITY, made
from made_results import Maker

from harness.oracle import HasAdvice
from harness.repro.spec import oracle_of
from harness.repro.verify import holds, last_line


@pytest.fixture
def repro(tmp_path: Path, make: Maker):  # type: ignore[no-untyped-def]
    result = make.result(inspection=make.deadlocked())
    return made(tmp_path, identity=result.judgement.signature)


def test_a_claim_holds_where_the_laboratory_agrees(repro, make: Maker) -> None:  # type: ignore[no-untyped-def]
    oracle = oracle_of(repro)
    (bad,), (good,) = repro.bad, repro.good
    deadlock, fine = make.result(inspection=make.deadlocked()), make.result()
    assert holds(repro, bad, deadlock, oracle)[0]
    assert holds(repro, good, fine, oracle)[0]


def test_a_lie_does_not_hold(repro, make: Maker, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    oracle = oracle_of(repro)
    (bad,), (good,) = repro.bad, repro.good
    deadlock, fine = make.result(inspection=make.deadlocked()), make.result()
    crash = make.result(compile=make.failed(None, signal=11))
    assert not holds(repro, bad, fine, oracle)[0]
    assert not holds(repro, good, deadlock, oracle)[0]
    assert not holds(repro, bad, crash, oracle)[0], "another bug is not this one"
    assert not holds(repro, good, crash, oracle)[0], "a bug in the way proves nothing"
    other = made(tmp_path, identity=repro.identity, verdict="compiler_crash")
    held, seen = holds(other, bad, deadlock, oracle)
    assert not held and seen.endswith("(predicted_deadlock, not compiler_crash)")
    elsewhere = made(tmp_path, identity=IDENTITY)
    assert not holds(elsewhere, bad, deadlock, oracle_of(elsewhere))[0]


def test_what_advice_says_is_what_was_seen(tmp_path: Path, make: Maker) -> None:
    repro = made(tmp_path, oracle="advice=occupancy_missed", verdict="compiles")
    result = make.result(inspection=make.inspection(255, 1))
    held, seen = holds(repro, repro.bad[0], result, HasAdvice("occupancy_missed"))
    assert held and seen == "asked for 16 CTAs per SM, 255 registers allow 1"


@pytest.mark.parametrize(("text", "line"), [("", ""), ("a\n b \n\n", "b"), ("one", "one")])
def test_the_last_line_is_the_last_with_anything_on_it(text: str, line: str) -> None:
    assert last_line(text) == line
