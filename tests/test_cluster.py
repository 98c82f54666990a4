"""Grouping results by signature, and the versions each group is seen with."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from made_results import Maker, no_fault_of_a_version

from harness.cluster import advice_groups, describe_settings, findings
from harness.model import CellResult, Judgement, Verdict


def test_one_bug_is_one_finding(lab_run: list[CellResult]) -> None:
    found = findings(lab_run)
    assert len(found) == 1
    finding = found[0]
    assert finding.verdict is Verdict.PREDICTED_DEADLOCK
    assert finding.component == "tileiras"
    assert len(finding.cells) == 10
    assert finding.archs == ("sm_90", "sm_100", "sm_120")
    assert finding.settings == "occupancy=16, allow_tma=false"
    assert (finding.first_affected, finding.last_affected) == ("13.2.86", "13.3.36")
    assert finding.good_from == "13.4.92"
    assert finding.example in finding.cells


def test_order_of_results_does_not_matter(lab_run: list[CellResult]) -> None:
    shuffled = list(lab_run)
    random.Random(1).shuffle(shuffled)
    for one, other in zip(findings(lab_run), findings(shuffled), strict=True):
        assert replace(one, cells=()) == replace(other, cells=())
        assert set(one.cells) == set(other.cells)


def test_unsupported_is_not_good(make: Maker) -> None:
    """sm_90 alone: 13.2.86 refuses it, so nothing older is known to be good."""
    results = [make.answer(make.cell(toolkit)) for toolkit in ("13.2.2", "13.3.1", "13.5.0")]
    (finding,) = findings(results)
    assert finding.versions.sentence == (
        "tileiras 13.3.36 affected; good from 13.5.37, the next version tested; "
        "no older version is known to be good; no answer from 13.2.86"
    )


def test_good_elsewhere_is_not_good_here(make: Maker) -> None:
    """A version that was only asked about another architecture says nothing."""
    results = [make.answer(make.cell("13.3.1", "sm_90")), make.answer(make.cell("13.4.3", "sm_100"))]
    (finding,) = findings(results)
    assert finding.good_from is None
    assert finding.versions.sentence == "tileiras 13.3.36 affected; no other version was tested"


def test_versions_follow_the_guilty_component(make: Maker) -> None:
    """Same tileiras, two ptxas: the finding is told by tileiras versions alone."""
    cell = make.cell()
    mixed = replace(cell, toolchain=replace(cell.toolchain, name="mixed", ptxas="13.4.92"))
    results = [make.result(cell, make.deadlocked()), make.result(mixed, make.deadlocked())]
    results[1] = replace(results[1], components={**results[1].components, "ptxas": "13.4.92"})
    (finding,) = findings(results)
    assert finding.versions.states == (("13.3.36", "affected"),)


def test_broken_toolchains_are_told(make: Maker) -> None:
    opaque = make.failed(5, "error: failed to compile Tile IR program")
    (finding,) = findings([make.result(compile=opaque, control=opaque)])
    assert finding.verdict is Verdict.TOOLCHAIN_BROKEN


@pytest.mark.parametrize("kind", ["infra_error", "import", "trace", "signature"])
def test_what_no_version_is_to_blame_for_is_no_finding_of_versions(make: Maker, kind: str) -> None:
    (finding,) = findings([no_fault_of_a_version(make, kind)])
    assert not finding.is_about_versions


@pytest.mark.parametrize(("stage", "guilty"), [("trace", "kernel"), ("signature", "matrix")])
def test_what_one_frontend_refuses_and_another_takes_is_about_versions(
    make: Maker, stage: str, guilty: str
) -> None:
    refused = [make.refused(make.cell(cuda_tile=version), stage) for version in ("1.3.0", "1.4.0")]
    (alone,) = findings(refused)
    assert (alone.component, alone.blame, alone.is_about_versions) == (guilty, guilty, False)
    (finding,) = findings([*refused, make.result(make.cell(cuda_tile="1.5.0"))])
    assert finding.is_about_versions
    assert finding.versions.sentence == (
        "cuda-tile 1.3.0 to 1.4.0 affected; good from 1.5.0, the next version tested; "
        "no older version was tested"
    )
    assert finding.blame == f"{guilty} or cuda-tile, whose versions disagree"


def test_finding_without_component_is_told_by_toolkit(make: Maker) -> None:
    (finding,) = findings([make.result(make.cell(), make.deadlocked(ptx=()))])
    assert finding.component is None
    assert finding.versions.component == "cuda-toolkit"
    assert finding.first_affected == "13.3.1"


def test_the_example_is_the_smallest(make: Maker) -> None:
    shapes = [(16384, 512), (64, 512), (4096, 512)]
    cells = [make.cell(shape=shape) for shape in shapes]
    (finding,) = findings([make.result(cell, make.deadlocked()) for cell in cells])
    assert finding.example == cells[1].id


def test_advice_is_grouped_by_what_limits(lab_run: list[CellResult]) -> None:
    groups = {(group.kind, group.texts[0]): group for group in advice_groups(lab_run)}
    missed = groups["occupancy_missed", "asked for 16 CTAs per SM, 255 registers allow 1"]
    assert missed.settings == "occupancy=16, allow_tma=true"
    assert (missed.versions.last_affected, missed.versions.good_from) == ("13.3.36", "13.4.92")
    assert ("slow_compile", "compiling took 8.4 s") in groups


def test_settings_name_only_what_tells_apart(make: Maker) -> None:
    everything = [
        make.result(make.cell(occupancy=k, allow_tma=t)) for k in (None, 8, 16) for t in (True, False)
    ]
    assert describe_settings(everything[:2], everything) == "occupancy=default"
    assert describe_settings([everything[2], everything[4]], everything) == "occupancy=8/16, allow_tma=true"
    assert describe_settings(everything, everything) == ""


def test_nothing_wrong_nothing_found(make: Maker) -> None:
    assert findings([make.result(make.cell(occupancy=None))]) == ()
    assert findings([]) == ()
    assert advice_groups([]) == ()


def test_wrong_results_of_two_kernels_are_two_findings(make: Maker) -> None:
    """And what a version mended is not hidden behind what none did."""
    wrong = Judgement(Verdict.WRONG_RESULT, "wrong_result: y beyond the bound", "y is wrong")

    def result(kernel: str, toolkit: str, shape: tuple[int, int], judgement: Judgement | None) -> CellResult:
        cell = make.cell(toolkit)
        cell = replace(cell, case=replace(cell.case, kernel=kernel, shape=shape))
        plain = make.result(cell)
        return plain if judgement is None else replace(plain, judgement=judgement)

    results = [
        result("k.py:a", "13.3.1", (1, 1), wrong),
        result("k.py:a", "13.5.0", (1, 1), wrong),
        result("k.py:a", "13.3.1", (2, 2), wrong),
        result("k.py:a", "13.5.0", (2, 2), None),
        result("k.py:b", "13.5.0", (1, 1), wrong),
    ]
    found = findings(results)
    assert sorted((f.kernels, len(f.cells)) for f in found) == [
        (("k.py:a",), 1),
        (("k.py:a",), 2),
        (("k.py:b",), 1),
    ]
    assert {f.signature for f in found} == {wrong.signature}


def test_an_assumption_names_the_affected_where_no_setting_does(make: Maker) -> None:
    good, bad = make.result(make.own_cell(1)), make.refused(make.own_cell(2), "trace")
    assert describe_settings([bad], [good, bad]) == "x.rank=2"
