from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_repros import BAD, IDENTITY, made
from made_results import Maker

from harness.oracle import HasAdvice
from harness.repro.identity import oracle_of
from harness.repro.spec import Place, Repro, ReproError, load
from harness.repro.spec_text import write_spec
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


def test_what_only_a_gpu_shows_is_held_against_the_code_it_ran(make: Maker, tmp_path: Path) -> None:
    place = Place(True, BAD, (), ("sm_90",), "a" * 64)
    repro = made(tmp_path, verdict="wrong_result", oracle="verdict=wrong_result", places=(place,))
    same = make.result(inspection=replace(make.inspection(32, 16), code_sha256="a" * 64))
    other = make.result(inspection=replace(make.inspection(32, 16), code_sha256="b" * 64))
    oracle = oracle_of(repro)
    assert holds(repro, place, same, oracle) == (True, f"writes the machine code that a GPU ran ({'a' * 12})")
    held, seen = holds(repro, place, other, oracle)
    assert not held and "writes other machine code" in seen
    failed = make.result(compile=make.failed(5))
    assert holds(repro, place, failed, oracle)[0] is False
    assert load(_written(tmp_path, repro)).places == (place,)
    bare = write_spec(replace(repro, places=(replace(place, code_sha256=None),)))
    (tmp_path / "repro.toml").write_text(bare)
    with pytest.raises(ReproError, match="needs code_sha256"):
        load(tmp_path)


def _written(folder: Path, repro: Repro) -> Path:
    (folder / "repro.py").write_text("import cuda.tile as ct\n\n@ct.kernel\ndef k(x, TILE): ...\n")
    (folder / "repro.toml").write_text(write_spec(repro))
    return folder
