"""The books as a person would write them down: short lines, in the order of the argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..model import PoolBooks, PoolSite
from .pool_automaton import LANES, Route, Warp


def name_warps(warps: Iterable[int]) -> str:
    """ "warp 4", "warps 0-3, 8-11"."""
    runs: list[list[int]] = []
    for warp in sorted(warps):
        if runs and warp == runs[-1][-1] + 1:
            runs[-1].append(warp)
        else:
            runs.append([warp])
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"warp {text}" if len(runs) == 1 and len(runs[0]) == 1 else f"warps {text}"


def name_site(site: PoolSite) -> str:
    """ "TRY_ALLOC 32 at 0x8d80"."""
    return f"{'TRY_ALLOC' if site.kind == 'alloc' else 'DEALLOC'} {site.registers} at {site.pc:#x}"


def opening(held: int, threads: int) -> str:
    return f"launch: {held} registers × {threads} threads = {held * threads:,} handed out, pool 0"


def entries(route: Route, warp: Warp) -> Iterator[str]:
    """One line per site that these warps can meet; `warp` is any of them."""
    who, count = name_warps(route.warps), len(route.warps)
    if not route.after:
        yield f"{who} {'meets' if count == 1 else 'meet'} no pool instruction"
    for pc in sorted(route.after):
        site = warp.sites[pc]
        before = {warp.holding[node] for node, step in warp.steps.items() if pc in step.sites}
        moves = {abs(site.registers - holding) for holding in before} - {0}
        each = max(moves, default=0)
        if site.kind == "alloc":
            verb = "needs" if count == 1 else "need"
        else:
            verb = "gives back" if count == 1 else "give back"
        bound = "up to " if len(moves) > 1 else ""
        factor = f"{count} × " if count > 1 else ""
        yield (
            f"{who} {'must' if pc in route.must else 'may'} pass {name_site(site)}: "
            f"{verb} {bound}{factor}{each} × {LANES} = {count * each * LANES:,}"
        )


def balance(books: PoolBooks) -> str:
    if not any(site.kind == "dealloc" for site in books.sites):
        return "nothing in the kernel gives registers back"
    least, most = f"{books.freed_at_least:,}", f"{books.freed_at_most:,}"
    given = most if least == most else f"{least} to {most}"
    return f"needed {books.needed:,}, given back before being paid {given}"
