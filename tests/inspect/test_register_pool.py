"""The books against every order of events of small CTAs, and their words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.inspect.pool_automaton import Route, Step
from harness.inspect.pool_proof import name_warps
from harness.inspect.register_pool import SUB_PARTITIONS, books_without_requests, pool_books
from harness.model import PoolAnswer, PoolBooks, PoolSite

COUNTS = (24, 32, 40, 48)
LEAVING = Step(frozenset(), True)


def site(pc: int, kind: str, registers: int) -> PoolSite:
    opcode = "TRY_ALLOC.CTAPOOL UP0," if kind == "alloc" else "DEALLOC.CTAPOOL"
    return PoolSite(kind, pc, registers, f"USETMAXREG.{opcode} {registers:#x}")


def simple(warps: tuple[int, ...], *pcs: int) -> Route:
    """One site after the other, then out."""
    steps = [Step(frozenset({pc}), False) for pc in pcs] + [LEAVING]
    return Route(warps, steps[0], dict(zip(pcs, steps[1:], strict=True)))


# --- every order of events --------------------------------------------------------------------

OUT = -1
Warp = tuple[int | None, int | None]
"""Last site passed (None: launched), and the site it is committed to next, OUT behind the exit."""


class Machine:
    """A CTA as it runs: a warp commits to a way, then waits there until the pool can pay."""

    def __init__(self, held: int, sites: list[PoolSite], routes: list[Route], pools: int) -> None:
        self.held, self.pools = held, pools
        self.sites = {s.pc: s for s in sites}
        self.routes = [route for route in routes for _ in route.warps]
        self.indices = [warp for route in routes for warp in route.warps]

    def holding(self, warp: Warp) -> int:
        return self.held if warp[0] is None else self.sites[warp[0]].registers

    def following(self, state: tuple[Warp, ...]) -> Iterator[tuple[Warp, ...]]:
        for position, (route, warp) in enumerate(zip(self.routes, state, strict=True)):
            node, pending = warp
            step = route.start if node is None else route.after[node]
            moved: list[Warp] = []
            if pending is None:
                moved = [(node, pc) for pc in step.sites] + ([(node, OUT)] if step.leaves else [])
            elif pending != OUT and self.payable(state, position):
                moved = [(pending, None)]
            for new in moved:
                yield (*state[:position], new, *state[position + 1 :])

    def payable(self, state: tuple[Warp, ...], position: int) -> bool:
        pool = self.indices[position] % self.pools
        members = [i for i, index in enumerate(self.indices) if index % self.pools == pool]
        left = self.held * len(members) - sum(self.holding(state[i]) for i in members)
        pending = state[position][1]
        assert pending is not None and left >= 0
        return self.sites[pending].registers - self.holding(state[position]) <= left

    def explore(self) -> tuple[bool, bool]:
        """(some order lets all leave, some order ends in a deadlock)."""
        start: tuple[Warp, ...] = ((None, None),) * len(self.routes)
        seen, todo = {start}, [start]
        ends = deadlocks = False
        while todo:
            state = todo.pop()
            following = list(self.following(state))
            if all(pending == OUT for _, pending in state):
                ends = True
            elif not following:
                deadlocks = True
            for new in following:
                if new not in seen:
                    seen.add(new)
                    todo.append(new)
        return ends, deadlocks


@st.composite
def ctas(draw: st.DrawFn) -> tuple[int, list[PoolSite], list[Route]]:
    held = draw(st.sampled_from(COUNTS))
    sites = [
        site(16 * i, draw(st.sampled_from(("alloc", "dealloc"))), draw(st.sampled_from(COUNTS)))
        for i in range(draw(st.integers(1, 3)))
    ]
    indices = draw(st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True))
    some = st.frozensets(st.sampled_from([s.pc for s in sites]), max_size=2)
    routes = []
    for index in sorted(indices):

        def step() -> Step:
            following = draw(some)
            return Step(following, draw(st.booleans()) or not following)

        start, after = step(), {}
        todo = list(start.sites)
        while todo:
            pc = todo.pop()
            if pc not in after:
                after[pc] = step()
                todo.extend(after[pc].sites)
        routes.append(Route((index,), start, after))
    return held, sites, routes


def close(held: int, sites: list[PoolSite], routes: list[Route]) -> PoolBooks:
    return pool_books(held, 32 * sum(len(route.warps) for route in routes), sites, routes)


@given(ctas())
def test_answers_hold_for_every_order_of_events(cta: tuple[int, list[PoolSite], list[Route]]) -> None:
    books = close(*cta)
    assume(not any("undocumented" in line for line in books.proof))
    for pools in (1, SUB_PARTITIONS):
        ends, deadlocks = Machine(*cta, pools).explore()
        if books.answer is PoolAnswer.IMPOSSIBLE:
            assert not ends
        if books.answer is PoolAnswer.BALANCED:
            assert not deadlocks


@st.composite
def one_site_each(draw: st.DrawFn) -> tuple[int, list[PoolSite], list[Route]]:
    held = draw(st.sampled_from(COUNTS))
    sites, routes = [], []
    for index in range(draw(st.integers(1, 4))):
        registers = draw(st.sampled_from(COUNTS))
        assume(registers != held)
        sites.append(site(16 * index, "alloc" if registers > held else "dealloc", registers))
        routes.append(simple((4 * index,), 16 * index))
    return held, sites, routes


@given(one_site_each())
def test_nothing_is_left_open_where_each_warp_passes_one_site(
    cta: tuple[int, list[PoolSite], list[Route]],
) -> None:
    books = close(*cta)
    ends, deadlocks = Machine(*cta, 1).explore()
    assert ends != deadlocks
    assert books.answer is (PoolAnswer.BALANCED if ends else PoolAnswer.IMPOSSIBLE)
    assert books.freed_at_least == books.freed_at_most
    assert (books.needed <= books.freed_at_most) == ends


@given(ctas())
def test_sums_are_in_order_and_conserved(cta: tuple[int, list[PoolSite], list[Route]]) -> None:
    held, sites, routes = cta
    books = close(held, sites, routes)
    assert 0 <= books.freed_at_least <= max(books.freed_at_most, 0)
    assert books.freed_at_most <= 32 * held * len(routes)
    assert books.needed >= 0
    for group, route in zip(books.groups, routes, strict=True):
        assert set(group.must) <= set(group.may) == set(route.after)


@given(ctas(), st.sampled_from(COUNTS))
def test_another_giver_makes_nothing_impossible(
    cta: tuple[int, list[PoolSite], list[Route]], registers: int
) -> None:
    held, sites, routes = cta
    before = close(held, sites, routes).answer
    assume(before is not PoolAnswer.IMPOSSIBLE and registers <= held)
    giver = simple((9,), 1600)
    after = close(held, [*sites, site(1600, "dealloc", registers)], [*routes, giver]).answer
    assert after is not PoolAnswer.IMPOSSIBLE
    if before is PoolAnswer.UNKNOWN:
        return
    assert after is PoolAnswer.BALANCED


# --- the books of known kernels ---------------------------------------------------------------


def test_the_reported_deadlock() -> None:
    sites = [site(0x8D80, "alloc", 32), site(0x8FB0, "alloc", 32)]
    routes = [Route((0, 1, 2, 3), LEAVING, {}), simple((4,), 0x8D80), simple((5, 6, 7), 0x8FB0)]
    books = pool_books(24, 256, sites, routes)
    assert books.answer is PoolAnswer.IMPOSSIBLE
    assert (books.needed, books.freed_at_least, books.freed_at_most) == (1024, 0, 0)
    assert books.proof == (
        "launch: 24 registers × 256 threads = 6,144 handed out, pool 0",
        "warps 0-3 meet no pool instruction",
        "warp 4 must pass TRY_ALLOC 32 at 0x8d80: needs 8 × 32 = 256",
        "warps 5-7 must pass TRY_ALLOC 32 at 0x8fb0: need 3 × 8 × 32 = 768",
        "nothing in the kernel gives registers back",
        "so warps 4-7 wait for ever",
    )


@pytest.mark.parametrize(
    ("launch", "takers", "grown", "givers"),
    [(128, 4, 224, 4), (64, 4, 96, 4), (168, 8, 232, 4)],
)
def test_kernels_that_run_on_an_h200(launch: int, takers: int, grown: int, givers: int) -> None:
    sites = [site(0x120, "alloc", grown), site(0x5600, "dealloc", 32)]
    routes = [
        simple(tuple(range(takers)), 0x120),
        simple(tuple(range(takers, takers + givers)), 0x5600),
    ]
    books = pool_books(launch, 32 * (takers + givers), sites, routes)
    assert books.answer is PoolAnswer.BALANCED
    assert books.needed == takers * (grown - launch) * 32
    assert books.freed_at_least == books.freed_at_most == givers * (launch - 32) * 32
    assert books.proof[-1] == "so every request is paid, in whatever order they come"


def test_one_unit_short() -> None:
    sites = [site(0x120, "alloc", 232), site(0x5600, "dealloc", 32)]
    books = pool_books(128, 256, sites, [simple((0, 1, 2, 3), 0x120), simple((4, 5, 6, 7), 0x5600)])
    assert books.answer is PoolAnswer.IMPOSSIBLE
    assert books.proof[-1] == (
        "behind their exits the 8 warps would hold at least 33,792 of 32,768, so not all of them can leave"
    )


def test_an_unpayable_request_on_a_way_that_may_be_taken() -> None:
    perhaps = Route((0,), Step(frozenset({0x40}), True), {0x40: LEAVING})
    books = pool_books(24, 32, [site(0x40, "alloc", 32)], [perhaps])
    assert books.answer is PoolAnswer.UNKNOWN
    assert books.proof[-1] == (
        "any warp that gets to TRY_ALLOC 32 at 0x40 never leaves, "
        "but whether warp 0 can get there could not be told"
    )


def test_a_payer_in_another_sub_partition() -> None:
    sites = [site(0x40, "dealloc", 40), site(0x80, "alloc", 72)]
    books = pool_books(64, 64, sites, [simple((0,), 0x40), simple((5,), 0x80)])
    assert books.answer is PoolAnswer.UNKNOWN
    assert books.proof[-1] == (
        "warp 5 may ask for 256 when 0 are left and nobody gives more: "
        "only warps whose indices are equal modulo 4 pay one another"
    )


def test_doubts_leave_it_unknown() -> None:
    doubtful = Route((0,), LEAVING, {}, ("the target of BRX at 0x50 is in a register",))
    books = pool_books(24, 32, [site(0x40, "alloc", 32)], [doubtful])
    assert books.answer is PoolAnswer.UNKNOWN
    assert books.proof[-1] == "the target of BRX at 0x50 is in a register"
    assert books.groups[0].note == "the target of BRX at 0x50 is in a register"


def test_an_undocumented_use_leaves_it_unknown() -> None:
    books = pool_books(64, 32, [site(0x40, "alloc", 56)], [simple((0,), 0x40)])
    assert books.answer is PoolAnswer.UNKNOWN
    assert books.proof[-1] == "TRY_ALLOC 56 at 0x40 may be met with 64 held, its effect then is undocumented"


def test_a_form_without_a_pool_of_the_cta_leaves_it_unknown() -> None:
    odd = PoolSite("other", 0x40, 32, "USETMAXREG.TRY_ALLOC UP0, 0x20")
    books = pool_books(24, 32, [odd], [simple((0,), 0x40)])
    assert (
        books.proof[-1] == "USETMAXREG.TRY_ALLOC UP0, 0x20 at 0x40 is of a form that these books do not know"
    )


def test_a_kernel_without_a_way_out_is_unknown() -> None:
    endless = Route((0,), Step(frozenset({0x40}), False), {0x40: Step(frozenset({0x40}), False)})
    books = pool_books(24, 32, [site(0x40, "alloc", 32)], [endless])
    assert books.answer is PoolAnswer.UNKNOWN
    assert books.proof[-1] == "no way out of the kernel was found for warp 0"


def test_a_cubin_without_a_thread_count_is_unknown() -> None:
    books = pool_books(24, 0, [site(0x40, "alloc", 32)], [])
    assert books.answer is PoolAnswer.UNKNOWN
    assert books.proof[-1] == "the cubin does not say how many threads a CTA has"


def test_launch_counts_are_rounded_up_to_a_unit() -> None:
    books = pool_books(60, 32, [site(0x40, "alloc", 64)], [simple((0,), 0x40)])
    assert (books.answer, books.launch_registers) == (PoolAnswer.BALANCED, 60)
    assert books.proof[0] == "launch: 64 registers × 32 threads = 2,048 handed out, pool 0"


def test_only_giving_back_is_balanced_without_a_look_at_the_ways() -> None:
    books = books_without_requests(255, 256, [site(0x40, "dealloc", 32)])
    assert books.answer is PoolAnswer.BALANCED
    assert (books.needed, books.freed_at_least, books.freed_at_most) == (0, 0, 224 * 256)
    assert books.proof[-1] == "no TRY_ALLOC: nothing asks the pool, so no warp can wait for it"


def test_books_survive_json() -> None:
    sites = [site(0x40, "dealloc", 40), site(0x80, "alloc", 72)]
    books = pool_books(64, 64, sites, [simple((0,), 0x40), simple((4,), 0x80)])
    assert PoolBooks.from_json(books.to_json()) == books


def test_names_of_warps() -> None:
    assert name_warps([4]) == "warp 4"
    assert name_warps([3, 0, 1, 2, 8, 9]) == "warps 0-3, 8-9"
    assert name_warps([0, 2]) == "warps 0, 2"
