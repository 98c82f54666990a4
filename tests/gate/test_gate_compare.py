"""Pairs of cells and how they differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gate_sides import Sides
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker

from harness.gate import Change
from harness.gate.compare import Difference, classify, compare
from harness.gate.noise import measured
from harness.matrix import GateRules
from harness.model import Verdict

V = Verdict


@pytest.mark.parametrize(
    ("before", "after", "change", "undecided"),
    [
        (V.COMPILES, V.COMPILES, Change.GOOD, False),
        (V.PASS, V.HANG, Change.REGRESSED, False),
        (V.HANG, V.PASS, Change.FIXED, False),
        (V.HANG, V.HANG, Change.STILL_BAD, False),
        (V.HANG, V.WRONG_RESULT, Change.NEWLY_BAD, False),
        (V.UNSUPPORTED, V.COMPILER_CRASH, Change.NEWLY_BAD, False),
        (V.COMPILES, V.UNSUPPORTED, Change.NEWLY_UNSUPPORTED, False),
        (V.PASS, V.SKIPPED, Change.LOST, False),
        (V.PASS, V.TAINTED, Change.LOST, False),
        (V.COMPILES, V.TOOLCHAIN_BROKEN, Change.LOST, False),
        (V.COMPILES, None, Change.LOST, False),
        (V.UNSUPPORTED, V.COMPILES, Change.GAINED, False),
        (None, V.PASS, Change.GAINED, False),
        (V.SKIPPED, V.SKIPPED, Change.UNKNOWN, False),
        (V.HANG, V.SKIPPED, Change.UNKNOWN, False),
        (V.HANG, None, Change.UNKNOWN, False),
        (V.PASS, V.INFRA_ERROR, Change.UNKNOWN, True),
        (V.PASS, V.NOT_RUN, Change.UNKNOWN, True),
        (V.SKIPPED, V.HANG, Change.UNKNOWN, True),
        (V.TOOLCHAIN_BROKEN, V.COMPILER_CRASH, Change.UNKNOWN, True),
        (None, V.HANG, Change.UNKNOWN, True),
    ],
)
def test_what_became_of_a_cell(
    sides: Sides, before: Verdict | None, after: Verdict | None, change: Change, undecided: bool
) -> None:
    (pair,) = sides.pairs(
        [sides.said(before, "13.3.1")] if before else [], [sides.said(after, "13.4.3")] if after else []
    )
    assert (pair.change, pair.undecided) == (change, undecided)


def test_another_signature_is_another_bug(sides: Sides) -> None:
    before = sides.said(V.COMPILER_CRASH, "13.3.1", "compiler_crash/tileiras/a")
    after = sides.said(V.COMPILER_CRASH, "13.4.3", "compiler_crash/tileiras/b")
    assert classify(before, after) is Change.NEWLY_BAD
    assert classify(before, replace(after, judgement=before.judgement)) is Change.STILL_BAD


@given(st.sampled_from(Verdict), st.sampled_from(Verdict))
def test_nothing_is_worse_than_itself_and_every_pair_has_one_change(before: Verdict, after: Verdict) -> None:
    made = Sides(Maker())
    assert classify(made.said(before, "1"), made.said(before, "1")) in (
        Change.GOOD,
        Change.STILL_BAD,
        Change.UNKNOWN,
    )
    change = classify(made.said(before, "1"), made.said(after, "2"))
    assert (change is Change.REGRESSED) == (before.is_good and after.is_finding)
    assert (change is Change.FIXED) == (before.is_finding and after.is_good)


def differences(sides: Sides, before, after, rules=None) -> dict[str, Difference]:
    (pair,) = sides.pairs([before], [after], rules)
    return {difference.quantity: difference for difference in pair.differences}


def test_resources_and_compile_time(sides: Sides) -> None:
    before = sides.make.answer(sides.make.cell("13.3.1", occupancy=2))
    grown = replace(
        before.inspection, registers=130, spill_instructions=7, shared_bytes=1, dynamic_shared_bytes=1
    )
    slow = replace(before.compile, cpu_seconds=3.0)
    after = replace(before, cell=sides.make.cell("13.4.3", occupancy=2), inspection=grown, compile=slow)
    found = differences(sides, before, after)
    assert {name: (d.baseline, d.candidate, d.worse) for name, d in found.items()} == {
        "registers": (128, 130, True),
        "spills": (0, 7, True),
        "shared_memory": (6224, 2, False),
        "compile_seconds": (0.5, 3.0, True),
    }
    lenient = GateRules(registers=2, spills=7, compile_seconds=100)
    assert not any(d.worse for d in differences(sides, before, after, lenient).values())


def test_a_compile_that_is_little_longer_is_not_longer(sides: Sides) -> None:
    before = sides.make.answer(sides.make.cell("13.3.1", occupancy=2))
    after = replace(
        before,
        cell=sides.make.cell("13.4.3", occupancy=2),
        compile=replace(before.compile, cpu_seconds=1.2),
    )
    assert "compile_seconds" not in differences(sides, before, after)


def test_bad_cells_are_not_measured(sides: Sides) -> None:
    before, after = (sides.make.answer(sides.make.cell(toolkit)) for toolkit in ("13.3.1", "13.4.3"))
    assert differences(sides, before, after) == {}


def test_device_time_and_bits(sides: Sides) -> None:
    found = differences(sides, sides.ran("13.3.1", 35.9), sides.ran("13.4.3", 44.3, bits="1"))
    assert (found["device_time"].baseline, found["device_time"].candidate) == (35.9, 44.3)
    assert found["device_time"].worse
    assert (found["output_bits"].worse, found["output_bits"].note) == (True, "y")


def test_a_small_or_noisy_slowdown_is_none(sides: Sides) -> None:
    assert "device_time" not in differences(sides, sides.ran("13.3.1", 36.0), sides.ran("13.4.3", 39.0))
    noisy = sides.ran("13.4.3", 44.0, spread_us=16)
    assert "device_time" not in differences(sides, sides.ran("13.3.1", 36.0), noisy)


def test_equal_machine_code_under_one_driver_is_equally_fast(sides: Sides) -> None:
    before, after = sides.ran("13.3.1", 20.0, cubin="c"), sides.ran("13.4.3", 40.0, cubin="c")
    assert "device_time" not in differences(sides, before, after)
    other_driver = sides.ran("13.4.3", 40.0, cubin="c", driver="590.1")
    assert differences(sides, before, other_driver)["device_time"].worse


def test_cells_of_equal_machine_code_are_repeats_of_one_measurement(sides: Sides) -> None:
    """Two frontends, one cubin: what looked slower in one process was not in the other."""
    before = [
        sides.ran("13.3.1", us, spread_us=0.5, cuda_tile=tile)
        for tile, us in (("1.5.0", 28.0), ("1.7.0", 34.0))
    ]
    after = [
        sides.ran("13.4.3", us, spread_us=0.5, cuda_tile=tile)
        for tile, us in (("1.5.0", 35.0), ("1.7.0", 29.0))
    ]
    assert all(
        "device_time" not in {d.quantity for d in pair.differences} for pair in sides.pairs(before, after)
    )


def test_earlier_runs_are_repeats_too(sides: Sides) -> None:
    before, after = sides.ran("13.3.1", 30.0, spread_us=0.5), sides.ran("13.4.3", 36.0, spread_us=0.5)
    again = measured({"median_us": 37.0, "spread_us": 0.5})
    old = sides.side([before], {before.cell.id: [again]})
    (pair,) = compare(old, sides.side([after]), GateRules())
    assert "device_time" not in {d.quantity for d in pair.differences}
