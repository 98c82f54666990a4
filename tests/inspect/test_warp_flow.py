"""Routes through small programs, written as SASS with labels."""

from __future__ import annotations

import re

import pytest

from harness.inspect.code_graph import CodeGraph
from harness.inspect.pool_automaton import Route
from harness.inspect.sass import Instruction
from harness.inspect.warp_flow import warp_routes

INDEX = """
    S2R R0, SR_TID.X
    SHF.R.U32.HI R0, RZ, 0x5, R0
    R2UR UR5, R0
"""


def assemble(text: str) -> list[Instruction]:
    """One instruction a line; "name:" before it is a label, `name` an operand."""
    labels: dict[str, int] = {}
    rows: list[str] = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        label, row = re.fullmatch(r"(?:(\w+):\s*)?(.*)", line).groups()
        if label:
            labels[label] = 16 * len(rows)
        rows.append(row)
    listing = []
    for index, row in enumerate(rows):
        filled = re.sub(r"`(\w+)", lambda m: f"{labels[m[1]]:#x}", row)
        predicate, _, rest = filled.partition(" ") if filled.startswith("@") else ("", "", filled)
        opcode, _, operands = rest.partition(" ")
        split = tuple(operands.replace(" ", "").split(",")) if operands else ()
        listing.append(Instruction(16 * index, predicate, opcode, split))
    return listing


def routes(text: str, threads: int = 256) -> dict[tuple[int, ...], Route]:
    listing = assemble(text)
    sites = [i.pc for i in listing if i.opcode.startswith("USETMAXREG")]
    return {route.warps: route for route in warp_routes(CodeGraph(listing, sites), (threads, 1, 1))}


def site(text: str, number: int) -> int:
    return [i.pc for i in assemble(text) if i.opcode.startswith("USETMAXREG")][number]


ROLES = (
    INDEX
    + """
    UISETP.GT.U32.AND UP0, UPT, UR5, 0x3, UPT
    BRA.U UP0, `others
take: USETMAXREG.TRY_ALLOC.CTAPOOL UP1, 0xe0
    PLOP3.LUT P0, PT, PT, PT, UP1, 0x80, 0x0
    @!P0 BRA `take
    EXIT
others: UISETP.NE.U32.AND UP0, UPT, UR5, 0x4, UPT
    BRA.U UP0, `rest
    USETMAXREG.DEALLOC.CTAPOOL 0x20
    EXIT
rest: USETMAXREG.DEALLOC.CTAPOOL 0x20
    EXIT
"""
)


def test_roles_are_told_apart() -> None:
    found = routes(ROLES)
    assert set(found) == {(0, 1, 2, 3), (4,), (5, 6, 7)}
    for warps, number in (((0, 1, 2, 3), 0), ((4,), 1), ((5, 6, 7), 2)):
        route = found[warps]
        assert route.start.sites == {site(ROLES, number)} and not route.start.leaves
        assert route.must == {site(ROLES, number)}
        assert all(step.leaves and not step.sites for step in route.after.values())
        assert route.doubts == ()


def test_a_partial_last_warp_counts() -> None:
    assert set(routes(ROLES, threads=150)) == {(0, 1, 2, 3), (4,)}


def test_an_unknown_branch_goes_both_ways() -> None:
    text = """
        LDG.E R2, desc[UR4][R4.64]
        ISETP.NE.AND P0, PT, R2, RZ, PT
        @P0 EXIT
        USETMAXREG.DEALLOC.CTAPOOL 0x20
        EXIT
    """
    (route,) = routes(text).values()
    assert route.start.leaves and route.start.sites == {site(text, 0)}
    assert route.must == frozenset()


def test_a_lane_varying_branch_goes_both_ways() -> None:
    text = """
        S2R R0, SR_TID.X
        ISETP.NE.AND P0, PT, R0, RZ, PT
        @P0 EXIT
        USETMAXREG.DEALLOC.CTAPOOL 0x20
        EXIT
    """
    found = routes(text)
    assert found[(0,)].start.leaves and found[(0,)].start.sites
    assert not found[(1, 2, 3, 4, 5, 6, 7)].start.sites


def test_the_index_survives_a_loop_and_a_spill() -> None:
    text = (
        INDEX
        + """
        MOV R2, UR5
        STL [R1+0x8], R2
    again: LDS R6, [R7]
        ISETP.NE.AND P1, PT, R6, RZ, PT
        HMMA.16816.F32 R8, R12, R16, R8
        @P1 BRA `again
        LDL.LU R3, [R1+0x8]
        R2UR UR7, R3
        UISETP.NE.U32.AND UP0, UPT, UR7, 0x2, UPT
        @!UP0 BRA `second
        EXIT
    second: USETMAXREG.DEALLOC.CTAPOOL 0x20
        EXIT
    """
    )
    found = routes(text.replace("@!UP0 BRA `second", "BRA.U !UP0, `second"))
    assert found[(2,)].must and not found[(0, 1, 3, 4, 5, 6, 7)].after


def test_a_second_site_follows_the_first() -> None:
    text = """
    one: USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x60
        BRA.U !UP0, `one
        USETMAXREG.DEALLOC.CTAPOOL 0x20
        EXIT
    """
    (route,) = routes(text).values()
    first, second = site(text, 0), site(text, 1)
    assert route.start.sites == {first}
    assert route.after[first].sites == {second} and not route.after[first].leaves
    assert route.must == {first, second}


def test_a_request_that_is_given_up_is_a_doubt() -> None:
    text = """
        USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x60
        BRA.U !UP0, `away
        EXIT
    away: EXIT
    """
    (route,) = routes(text).values()
    assert route.doubts == ("TRY_ALLOC at 0x0 is not simply repeated when it is refused",)


def test_an_indirect_branch_is_a_doubt_only_where_it_is_met() -> None:
    text = (
        INDEX
        + """
        UISETP.GT.U32.AND UP0, UPT, UR5, 0x3, UPT
        BRA.U UP0, `giving
        BRX R4 -0x100
    giving: USETMAXREG.DEALLOC.CTAPOOL 0x20
        EXIT
    """
    )
    found = routes(text)
    assert found[(0, 1, 2, 3)].doubts == ("the target of BRX at 0x50 is in a register",)
    assert found[(4, 5, 6, 7)].doubts == ()


CALL = (
    INDEX
    + """
    CALL.REL.NOINC `callee
    UISETP.NE.U32.AND UP0, UPT, UR5, 0x2, UPT
    BRA.U UP0, `out
    USETMAXREG.DEALLOC.CTAPOOL 0x20
out: EXIT
callee: MOV {written}, 0x7
    RET.REL.NODEC R2
"""
)


@pytest.mark.parametrize(("written", "kept"), [("R9", True), ("UR5", False)])
def test_a_call_forgets_what_the_callee_writes(written: str, kept: bool) -> None:
    found = routes(CALL.format(written=written).replace("MOV UR5", "UMOV UR5"))
    assert ((2,) in found) == kept
    if kept:
        assert found[(2,)].must and not found[(2,)].start.leaves


def test_a_callee_that_may_exit_is_a_way_out() -> None:
    text = CALL.format(written="R9").replace("RET.REL.NODEC R2", "@P3 EXIT\nRET.REL.NODEC R2")
    assert routes(text)[(2,)].start.leaves


def test_a_barrier_that_goes_on_elsewhere_is_followed_there() -> None:
    text = """
        BSSY B0, `far
        BSYNC B0
        EXIT
    far: USETMAXREG.DEALLOC.CTAPOOL 0x20
        EXIT
    """
    (route,) = routes(text).values()
    assert route.start.sites == {site(text, 0)} and route.start.leaves


def test_a_guarded_site_may_be_skipped() -> None:
    text = "@P0 USETMAXREG.DEALLOC.CTAPOOL 0x20\nEXIT"
    (route,) = routes(text).values()
    assert route.start.leaves and route.start.sites == {0}


def test_code_without_an_end_counts_as_a_way_out() -> None:
    (route,) = routes("USETMAXREG.DEALLOC.CTAPOOL 0x20\nNOP").values()
    assert route.after[0].leaves
