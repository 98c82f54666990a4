"""Remarks that fail nothing."""

from __future__ import annotations

from made_results import Maker

from harness.advice import advise
from harness.model import ProcessUsage


def kinds_and_texts(make: Maker, **changes: object) -> dict[str, str]:
    cell = make.cell(occupancy=16, allow_tma=False)
    return {r.kind: r.text for r in advise(cell.case, None, make.inspection(**changes))}


def test_occupancy_missed_names_the_limit(make: Maker) -> None:
    assert kinds_and_texts(make) == {"occupancy_missed": "asked for 16 CTAs per SM, 255 registers allow 1"}
    by_memory = kinds_and_texts(make, ctas=0, limited_by="shared memory")
    assert by_memory["occupancy_missed"].endswith("6224 bytes of shared memory allow not even one")


def test_occupancy_that_the_thread_count_alone_forbids_is_not_missed(make: Maker) -> None:
    assert kinds_and_texts(make, ctas=8, limited_by="warps") == {}
    assert kinds_and_texts(make, registers=32, ctas=8, limited_by="registers, warps") == {}
    assert kinds_and_texts(make, ctas=8, limited_by="CTAs") == {}


def test_occupancy_met_unasked_or_unknown_is_no_remark(make: Maker) -> None:
    assert kinds_and_texts(make, ctas=16) == {}
    assert kinds_and_texts(make, ctas=None) == {}
    assert advise(make.cell(occupancy=None).case, None, make.inspection(ctas=1)) == ()


def test_hint_ignored_only_for_tile_loads_of_rank_two(make: Maker) -> None:
    found = kinds_and_texts(make, ctas=16, tma={"UTMALDG.2D": 3, "UTMALDG.1D": 1, "UTMASTG.2D": 2})
    assert found == {
        "hint_ignored": "allow_tma=False, yet the machine code loads tiles by TMA (3 UTMALDG.2D)"
    }
    assert kinds_and_texts(make, ctas=16, tma={"UTMALDG.1D": 1, "UTMASTG.2D": 2, "UBLKCP": 1}) == {}


def test_tma_not_used_though_allowed_is_no_remark(make: Maker) -> None:
    assert advise(make.cell(occupancy=1, allow_tma=True).case, None, make.inspection()) == ()


def test_spills(make: Maker) -> None:
    found = kinds_and_texts(make, ctas=16, stack_bytes=48, spill_instructions=12)
    assert found == {
        "spills": "registers do not suffice: 12 spill instructions and 48 bytes of stack a thread"
    }


def test_slow_compile_counts_cpu_where_measured(make: Maker) -> None:
    case = make.cell().case
    usage = (ProcessUsage("ptxas", 3.0, 1), ProcessUsage("tileiras", 5.4, 1))
    slow = make.compiled(wall_seconds=20, cpu_seconds=8.4, usage=usage, cached=True)
    assert [r.text for r in advise(case, slow, None)] == [
        "compiling took 8.4 s (tileiras 5.4 s, ptxas 3.0 s)"
    ]
    assert advise(case, make.compiled(wall_seconds=20, cpu_seconds=1.0), None) == ()
    assert [r.kind for r in advise(case, make.compiled(wall_seconds=2, cpu_seconds=2), None, 1.0)] == [
        "slow_compile"
    ]
