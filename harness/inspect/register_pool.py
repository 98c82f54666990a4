"""The register pool's books: can every warp of a CTA get the registers it asks for?

What the machine does (sm_90 and newer). A CTA is launched with the same number of registers for every
thread, all of them handed out, and an empty pool. `setmaxnreg.dec n` (SASS `USETMAXREG.DEALLOC.CTAPOOL n`)
shrinks the executing warp to n registers a thread and puts the rest into the CTA's pool. `setmaxnreg.inc n`
(`USETMAXREG.TRY_ALLOC.CTAPOOL UP, n` in a loop) grows the warp to n, and blocks until the pool can
pay. n is a multiple of 8 from 24 to 256, and all warps of a warpgroup are to execute the same
instruction (PTX ISA, "setmaxnreg"). Registers come to a warp in units of 256, so a thread's count is
rounded up to a multiple of 8 (`cuda_occupancy.h`). Measured on an H200, with kernels made for the question:

- one register unit too few in the pool is enough to block a warp for ever;
- a warp that exits returns nothing, whether it shrank before or not;
- a launch with 60 registers counts as 64; no CTA size leaves anything in the pool;
- asking for what is held already is granted at once; asking for less ends in an illegal instruction;
- warps are paid one by one, and only by warps of the same SM sub-partition, which are those with the same
  index modulo 4: what warp 0 gives, warp 4 gets and warp 5 never sees. Whole warpgroups do not notice.

So the accounts are kept per warp, in registers per thread; 32 times that is what moves. Registers are
conserved: what all warps hold plus what is in the pool is what was launched, at every moment.

What is asked. `Route` says for a group of warps which sites can follow on which, starting at launch, and
after which of them the warp can leave without meeting another. A warp that has passed a site holds what
that site says, so a route is a finite automaton and a CTA is the product of its warps' automata.

*Impossible* is answered only if no order of events lets all warps leave. Two bounds, each of them at least
as generous as any order of events with a single pool for the whole CTA, and so as any with one pool per
sub-partition:

1. Let every warp stand at whatever site it can reach that leaves it least. A request for m can be paid
   only if m and the others' least holdings fit into what was launched. Requests that fit may be passed and
   lead to further sites; repeat until nothing changes. By induction over any real order of events, a warp
   never passes a request that this does not let pass. A warp whose way out is still barred waits for ever.
2. All warps have left: each holds what its last site before leaving says, and nothing was returned. If
   even the smallest such holdings add up to more than was launched, they cannot all have left.

*Balanced* is answered only if there is no deadlock: no way to place every warp either behind its exit or
before a request that exceeds the pool, at least one of them before a request, with holdings that sum to no
more than was launched. Whether that state can be reached is ignored, which can only add deadlocks; and it is
checked both for one pool and for one pool per sub-partition. Loops without a site are taken to end, and a
dealloc that waits on a barrier for a warp that waits for the pool is outside these books.

Everything else is *unknown*, with the reason. What was measured on the H200 alone is leant on no further
than needed: that exits return nothing for *impossible*, and pools of either kind for *balanced*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..model import PoolAnswer, PoolBooks, PoolSite, WarpGroup
from .pool_automaton import LANES, Route, Warp
from .pool_proof import balance, entries, name_site, name_warps, opening

SUB_PARTITIONS = 4
_UNIT = 8


def pool_books(
    launch_registers: int, threads: int, sites: Sequence[PoolSite], routes: Sequence[Route]
) -> PoolBooks:
    """Close the books of one CTA. Every warp is in exactly one route."""
    held = -(-launch_registers // _UNIT) * _UNIT
    by_pc = {site.pc: site for site in sites}
    warps = [Warp(index, held, route, by_pc) for route in routes for index in route.warps]
    of_route = {warp.route.warps: warp for warp in warps}
    answer, reasons = _answer(held, warps)
    books = PoolBooks(
        answer=answer,
        launch_registers=launch_registers,
        threads=threads,
        sites=tuple(sites),
        groups=tuple(_group(route) for route in routes),
        needed=LANES * sum(warp.needed for warp in warps),
        freed_at_most=LANES * sum(warp.most for warp in warps),
        freed_at_least=LANES * sum(warp.least for warp in warps),
        proof=(),
    )
    lines = (line for route in routes for line in entries(route, of_route[route.warps]))
    return replace(books, proof=(opening(held, threads), *lines, balance(books), *reasons))


def books_without_requests(launch_registers: int, threads: int, sites: Sequence[PoolSite]) -> PoolBooks:
    """For a kernel that only gives registers back: nobody asks, so nobody waits, whatever the way taken."""
    held = -(-launch_registers // _UNIT) * _UNIT
    return PoolBooks(
        answer=PoolAnswer.BALANCED,
        launch_registers=launch_registers,
        threads=threads,
        sites=tuple(sites),
        groups=(),
        needed=0,
        freed_at_most=max(max((held - site.registers for site in sites), default=0), 0) * threads,
        freed_at_least=0,
        proof=(
            opening(held, threads),
            "no TRY_ALLOC: nothing asks the pool, so no warp can wait for it",
        ),
    )


def _answer(held: int, warps: Sequence[Warp]) -> tuple[PoolAnswer, tuple[str, ...]]:
    doubts = tuple(_doubts(warps))
    if doubts:
        return PoolAnswer.UNKNOWN, doubts
    reached = _generous(held, warps)
    stuck = _stuck(warps, reached)
    if stuck:
        return PoolAnswer.IMPOSSIBLE, (
            f"so {name_warps(stuck)} {'waits' if len(stuck) == 1 else 'wait'} for ever",
        )
    end, launched = _held_at_the_end(warps, reached), held * len(warps)
    if end > launched:
        return PoolAnswer.IMPOSSIBLE, (
            f"behind their exits the {len(warps)} warps would hold at least {end * LANES:,} of "
            f"{launched * LANES:,}, so not all of them can leave",
        )
    one_pool, partitioned = _deadlock(held, warps, 1), _deadlock(held, warps, SUB_PARTITIONS)
    if one_pool is None and partitioned is None:
        return PoolAnswer.BALANCED, ("so every request is paid, in whatever order they come",)
    return PoolAnswer.UNKNOWN, (_undecided(warps, reached, one_pool, partitioned),)


# --- the three answers ------------------------------------------------------------------------


def _generous(held: int, warps: Sequence[Warp]) -> list[set[int | None]]:
    """Bound 1: for each warp, the nodes that some order of events might let it reach."""
    launched = held * len(warps)
    reached = [warp.reach() for warp in warps]
    while True:
        least = [
            min(warp.holding[node] for node in nodes) for warp, nodes in zip(warps, reached, strict=True)
        ]
        total = sum(least)
        wider = [
            warp.reach(pc for pc in warp.route.after if warp.holding[pc] + total - own <= launched)
            for warp, own in zip(warps, least, strict=True)
        ]
        if wider == reached:
            return reached
        reached = wider


def _stuck(warps: Sequence[Warp], reached: Sequence[set[int | None]]) -> tuple[int, ...]:
    """Warps whose way out is barred even so."""
    return tuple(
        warp.index
        for warp, nodes in zip(warps, reached, strict=True)
        if not any(warp.steps[node].leaves for node in nodes)
    )


def _held_at_the_end(warps: Sequence[Warp], reached: Sequence[set[int | None]]) -> int:
    """Bound 2: the least that all warps together hold once all have left."""
    return sum(
        min((warp.holding[node] for node in nodes if warp.steps[node].leaves), default=0)
        for warp, nodes in zip(warps, reached, strict=True)
    )


@dataclass(frozen=True)
class _Deadlock:
    """A warp that may wait for `request` registers a thread while all others have left or wait too."""

    warp: int
    request: int
    left: int


def _deadlock(held: int, warps: Sequence[Warp], pools: int) -> _Deadlock | None:
    """One that cannot be ruled out, if there is any; `pools` splits the warps by index."""
    for pool in range(pools):
        members = [warp for warp in warps if warp.index % pools == pool]
        found = _deadlock_within(held * len(members), members)
        if found is not None:
            return found
    return None


def _deadlock_within(launched: int, warps: Sequence[Warp]) -> _Deadlock | None:
    rests = [warp.rests() for warp in warps]
    for position, warp in enumerate(warps):
        for holding, request in sorted(rests[position]):
            if not request:
                continue
            sums = {holding}
            for other in (*rests[:position], *rests[position + 1 :]):
                still = {theirs for theirs, asked in other if not asked or asked >= request}
                sums = {total + theirs for total in sums for theirs in still if total + theirs <= launched}
            short = [launched - total for total in sums if launched - total < request]
            if short:
                return _Deadlock(warp.index, request, min(short))
    return None


def _doubts(warps: Sequence[Warp]) -> Iterator[str]:
    """Reasons to answer nothing: an unsure route, or an instruction whose effect is not documented."""
    if not warps:
        yield "the cubin does not say how many threads a CTA has"
    for route in {id(warp.route): warp.route for warp in warps}.values():
        yield from route.doubts
        if not any(step.leaves for step in (route.start, *route.after.values())):
            yield f"no way out of the kernel was found for {name_warps(route.warps)}"
    for site in {site.pc: site for warp in warps for site in warp.sites.values()}.values():
        if site.kind not in ("alloc", "dealloc") or not site.registers:
            yield f"{site.text} at {site.pc:#x} is of a form that these books do not know"
    seen = set()
    for warp in warps:
        for node, step in warp.steps.items():
            for pc in step.sites:
                site, holding = warp.sites[pc], warp.holding[node]
                grows = site.registers > holding
                wrong = grows if site.kind == "dealloc" else site.registers < holding
                if wrong and (pc, holding) not in seen:
                    seen.add((pc, holding))
                    yield f"{name_site(site)} may be met with {holding} held, its effect then is undocumented"


def _undecided(
    warps: Sequence[Warp],
    reached: Sequence[set[int | None]],
    one_pool: _Deadlock | None,
    partitioned: _Deadlock | None,
) -> str:
    for warp, nodes in zip(warps, reached, strict=True):
        barred = [pc for pc in sorted(warp.route.after) if pc not in nodes]
        if barred:
            return (
                f"any warp that gets to {name_site(warp.sites[barred[0]])} never leaves, "
                f"but whether {name_warps(warp.route.warps)} can get there could not be told"
            )
    found = one_pool or partitioned
    assert found is not None
    asked, left = found.request * LANES, found.left * LANES
    text = f"warp {found.warp} may ask for {asked:,} when {left:,} are left and nobody gives more"
    if one_pool is None:
        text += f": only warps whose indices are equal modulo {SUB_PARTITIONS} pay one another"
    return text


def _group(route: Route) -> WarpGroup:
    return WarpGroup(
        warps=route.warps,
        must=tuple(sorted(route.must)),
        may=tuple(sorted(route.after)),
        note="; ".join(route.doubts),
    )
