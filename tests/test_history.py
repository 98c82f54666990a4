"""When answers changed and with what, what flakes, what is slow: values, store and command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.history import causes, flakiness, learnt, slowest_compiles, turns
from harness.model import CellResult, Judgement, Verdict
from harness.store import Sighting, Store

PASS, HANG, FLAKY, SKIPPED = Verdict.PASS, Verdict.HANG, Verdict.FLAKY, Verdict.SKIPPED


def sighting(verdict: Verdict, at: float = 0, **changes: object) -> Sighting:
    signature = f"{verdict}/x" if verdict.is_finding else None
    plain = Sighting(f"run{at}", at, "cell", verdict, signature, {"driver": "580"}, "k", "b", "c", 1.0)
    return replace(plain, **changes)


def test_a_turn_names_what_changed_with_it() -> None:
    seen = [
        sighting(PASS, 1),
        sighting(SKIPPED, 2),
        sighting(HANG, 3, made_with={"driver": "590", "ptxas": "13"}, cubin="d"),
        sighting(HANG, 4, made_with={"driver": "590", "ptxas": "13"}, cubin="d"),
    ]
    (turn,) = turns(seen)
    assert (turn.before, turn.after, turn.run) == (PASS, HANG, "run3")
    assert turn.causes == ("driver 580 → 590", "ptxas ? → 13", "other machine code")


def test_an_edit_of_the_kernel_is_no_flake() -> None:
    """A kernel that is refused has neither bytecode nor machine code that could tell."""
    refused = sighting(Verdict.FRONTEND_ERROR, 1, bytecode=None, cubin=None)
    seen = [refused, sighting(PASS, 2, kernel="l")]
    (turn,) = turns(seen)
    assert turn.causes == ("the kernel's source changed",)
    assert flakiness(seen) == ()
    assert causes(refused, sighting(PASS, 2, kernel=None)) == (), "an older harness did not write it down"


def test_another_bug_is_a_turn_too() -> None:
    seen = [sighting(HANG, 1), sighting(HANG, 2, signature="hang/y")]
    assert len(turns(seen)) == 1


def test_flakes_are_changes_without_a_cause() -> None:
    seen = [sighting(PASS, 1), sighting(HANG, 2), sighting(PASS, 3), sighting(PASS, 4)]
    (flake,) = flakiness(seen)
    assert (flake.flakes, flake.repeats, flake.rate) == (2, 3, pytest.approx(2 / 3))
    upgraded = [sighting(PASS, 1), sighting(HANG, 2, made_with={"driver": "590"})]
    assert flakiness(upgraded) == ()


def test_a_flaky_verdict_counts_once() -> None:
    (flake,) = flakiness([sighting(PASS, 1), sighting(FLAKY, 2), sighting(PASS, 3)])
    assert (flake.flakes, flake.repeats) == (1, 3)


def test_a_compile_that_cells_share_is_told_once() -> None:
    seen = [
        sighting(PASS, cell="a", cubin="1", compile_seconds=5.0),
        sighting(PASS, cell="b", cubin="1", compile_seconds=5.0),
        sighting(PASS, cell="c", cubin="2", compile_seconds=9.0),
        sighting(HANG, cell="d", cubin=None, compile_seconds=60.0),
        sighting(SKIPPED, cell="e", cubin=None, compile_seconds=None),
    ]
    assert [(one.cell, one.seconds) for one in slowest_compiles(seen, 9)] == [("d", 60), ("c", 9), ("a", 5)]
    assert len(slowest_compiles(seen, 1)) == 1


@given(st.lists(st.tuples(st.sampled_from([PASS, HANG, FLAKY, SKIPPED]), st.booleans()), max_size=20))
def test_rates_are_rates_and_nothing_changes_without_turning(runs: list[tuple[Verdict, bool]]) -> None:
    driver, seen = 580, []
    for at, (verdict, upgraded) in enumerate(runs):
        driver += upgraded
        seen.append(sighting(verdict, at, made_with={"driver": str(driver)}))
    for flake in flakiness(seen):
        assert 0 < flake.rate <= 1
    told = learnt(seen).get("cell", [])
    assert len(turns(seen)) == sum(a.verdict != b.verdict for a, b in pairwise(told))
    assert all(not causes(one, one) for one in seen)


# --- the store and the command ----------------------------------------------------------------


@pytest.fixture
def out(tmp_path: Path, make: Maker) -> Path:
    """Three runs: the deadlock, the same again, and mended by another tileiras."""
    clock: Iterator[float] = iter(range(1000))
    cell = make.cell()
    bad, good = replace(make.answer(cell), kernel_sha256="d" * 64), make.result(cell, make.inspection(32, 8))
    mended = replace(good, components={**good.components, "tileiras": "13.3.99"})
    with Store.open(tmp_path, clock=lambda: float(next(clock))) as store:
        for result in (bad, bad, mended):
            run = store.start_run("m", [cell], versions={"harness": "1"})
            store.record(run, result)
            store.finish_run(run)
        run = store.start_run("other", [make.cell(occupancy=2)], versions={"harness": "1"})
        store.record(run, CellResult(make.cell(occupancy=2), Judgement(SKIPPED, None, "")))
    return tmp_path


def history(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["history", *map(str, arguments)], catch_exceptions=False)


def test_sightings_hold_what_was_recorded(out: Path, make: Maker) -> None:
    with Store.open(out) as store:
        seen = store.sightings(make.cell().id)
        assert [s.verdict for s in seen] == [Verdict.PREDICTED_DEADLOCK] * 2 + [Verdict.COMPILES]
        assert seen[0].made_with == {
            "harness": "1",
            "tileiras": "13.3.36",
            "nvvm": "13.3.36",
            "ptxas": "13.3.36",
        }
        assert (seen[0].bytecode, seen[0].cubin, seen[0].compile_seconds) == ("b" * 64, "c" * 64, 0.45)
        assert [sighting.kernel for sighting in seen] == ["d" * 64, "d" * 64, None]
        assert len(store.sightings()) == 4
        assert [cell.case.hints.occupancy for cell in store.cells()] == [2, 16]


def test_the_command_tells_the_turn_and_its_cause(out: Path, make: Maker) -> None:
    done = history("--out", out)
    assert done.exit_code == 0
    assert "4 runs, 2 cells" in done.stdout
    assert "Verdicts that changed: 1" in done.stdout
    assert "tileiras 13.3.36 → 13.3.99" in " ".join(done.stdout.split())


def test_one_cell_by_words(out: Path) -> None:
    done = history("occupancy=16", "--out", out)
    assert done.exit_code == 0
    assert done.stdout.count("predicted_deadlock") == 2
    assert "tileiras 13.3.36 → 13.3.99" in " ".join(done.stdout.split())


def test_json(out: Path) -> None:
    told = json.loads(history("--out", out, "--json").stdout)
    assert {key: len(value) for key, value in told.items()} == {
        "sightings": 4,
        "turns": 1,
        "flaky": 0,
        "slowest_compiles": 1,
    }


def test_wrong_requests(out: Path, tmp_path: Path) -> None:
    assert history("occupancy=99", "--out", out).exit_code == 2
    done = history("--out", tmp_path / "nothing")
    assert done.exit_code == 2
    assert "holds no results; run: python -m harness run" in done.stderr
