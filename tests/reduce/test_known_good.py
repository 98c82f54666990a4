"""Which toolchain a reduction is held against."""

from __future__ import annotations

from dataclasses import replace

from made_results import Maker

from harness.model import CellResult, Judgement, Verdict
from harness.oracle import SameVerdict
from harness.reduce.known_good import nearest_good


def at(make: Maker, tile: str, toolkit: str, judgement: Judgement | None = None) -> CellResult:
    result = make.result(make.cell(toolkit))
    chain = replace(result.cell.toolchain, name=f"tile{tile}-ctk{toolkit}", cuda_tile=tile)
    result = replace(result, cell=replace(result.cell, toolchain=chain))
    return result if judgement is None else replace(result, judgement=judgement)


def test_the_frontend_stays_unless_it_is_to_blame(make: Maker) -> None:
    for component, expected in (("tileiras", "tile1.5.0-ctk13.5.0"), ("cuda-tile", "tile1.7.0-ctk13.3.1")):
        fault = Judgement(Verdict.COMPILER_CRASH, "x", "crashed", component)
        bad = at(make, "1.5.0", "13.3.1", fault)
        others = [at(make, "1.7.0", "13.3.1"), at(make, "1.5.0", "13.5.0"), at(make, "1.7.0", "13.5.0")]
        good = nearest_good([bad, *others], bad, SameVerdict(Verdict.COMPILER_CRASH))
        assert good is not None and good.name == expected
