"""A warp's way through the pool's sites as a finite automaton, and what can be read off it alone.

Nodes are the launch (None) and the sites (their PCs). A warp that has passed a site holds what that site
says, so a node determines the holding. Holdings are registers per thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..model import PoolSite

LANES = 32
"""Threads of a warp."""


@dataclass(frozen=True)
class Step:
    """What can come next: sites (by PC) that may be met first, and whether the warp may leave without one."""

    sites: frozenset[int]
    leaves: bool


@dataclass(frozen=True)
class Route:
    """The way of some warps through the pool's sites.

    `start` is what follows the launch, `after` what follows each site that can be met. `doubts` are
    reasons for which the route may be wrong; with any of them no answer but `unknown` is given.
    """

    warps: tuple[int, ...]
    start: Step
    after: Mapping[int, Step]
    doubts: tuple[str, ...] = ()

    @property
    def must(self) -> frozenset[int]:
        """Sites without which there is no way out."""
        return frozenset(pc for pc in self.after if not self._leaves_without(pc))

    def _leaves_without(self, barred: int) -> bool:
        seen, todo = {barred}, [self.start]
        while todo:
            step = todo.pop()
            if step.leaves:
                return True
            for pc in step.sites - seen:
                seen.add(pc)
                todo.append(self.after[pc])
        return False


class Warp:
    """One warp's automaton. Nodes are None (launched) and the PCs of sites; holdings are per thread."""

    def __init__(self, index: int, held: int, route: Route, sites: Mapping[int, PoolSite]) -> None:
        self.index = index
        self.route = route
        self.sites = sites
        self.holding: dict[int | None, int] = {None: held} | {pc: sites[pc].registers for pc in route.after}
        self.steps: dict[int | None, Step] = {None: route.start} | dict(route.after)

    def asks(self, node: int | None, pc: int) -> int:
        """What the pool has to pay for going on from `node` to the site at `pc`; 0 where it gives back."""
        site = self.sites[pc]
        return max(site.registers - self.holding[node], 0) if site.kind == "alloc" else 0

    def reach(self, passable: Iterable[int] = ()) -> set[int | None]:
        """Nodes that can be reached by free steps and through the requests given as passable."""
        allowed = set(passable)
        found: set[int | None] = {None}
        todo: list[int | None] = [None]
        while todo:
            node = todo.pop()
            for pc in self.steps[node].sites:
                if pc not in found and (self.asks(node, pc) == 0 or pc in allowed):
                    found.add(pc)
                    todo.append(pc)
        return found

    def rests(self) -> set[tuple[int, int]]:
        """(holding, request) of every place where the warp can stand still; 0 is asked behind the exit."""
        exits = {(self.holding[node], 0) for node, step in self.steps.items() if step.leaves}
        waits = {
            (self.holding[node], self.asks(node, pc))
            for node, step in self.steps.items()
            for pc in step.sites
        }
        return exits | {(holding, request) for holding, request in waits if request}

    @property
    def needed(self) -> int:
        """The least that has to be paid on any way out; 0 where there is none."""
        cost: dict[int | None, int] = {None: 0}
        changed = True
        while changed:
            changed = False
            for node in list(cost):
                for pc in self.steps[node].sites:
                    price = cost[node] + self.asks(node, pc)
                    if price < cost.get(pc, price + 1):
                        cost[pc], changed = price, True
        return min((price for node, price in cost.items() if self.steps[node].leaves), default=0)

    @property
    def most(self) -> int:
        """The most this warp can give back before anybody pays it."""
        return max(self.holding[None] - self.holding[node] for node in self.reach())

    @property
    def least(self) -> int:
        """What it has surely given back when it leaves or first waits."""
        ends = [
            self.holding[None] - self.holding[node]
            for node in self.reach()
            if self.steps[node].leaves or any(self.asks(node, pc) for pc in self.steps[node].sites)
        ]
        return max(min(ends, default=0), 0)
