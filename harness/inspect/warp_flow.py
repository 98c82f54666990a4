"""Which pool sites each warp of a CTA meets, by following its index through the code.

Warp-specialised code works out its warp index from SR_TID.X, compares it with constants and branches to the
code of its role. So the code is followed from entry with the index known and all else unknown
(conditional constant propagation on basic blocks): a branch whose condition is known goes one way, any
other both ways, and where ways meet, what they agree on stays known. Sites end a walk and the next one starts
behind them: behind TRY_ALLOC once with its answer true, and once with false, to see that a refused request
is only ever repeated.

Warps are followed together until a branch tells them apart. A CTA is taken to have the threads that the cubin
insists on, in that shape. Code from which no site can be reached is not followed; it counts as a way out.

A call may enter its callee, and may return with whatever the callee writes unknown. Where a branch's
target is in a register, everything may follow, and the route says so as a doubt.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from .code_graph import Block, CodeGraph
from .effects import both, branch_condition, truth
from .lanes import State, Threads, Value
from .pool_automaton import LANES, Route, Step
from .words import BYTES_PER_INSTRUCTION


def warp_routes(graph: CodeGraph, block: tuple[int, int, int]) -> tuple[Route, ...]:
    """The routes of all warps of a CTA of (x, y, z) threads, warps of equal routes together."""
    todo = [tuple(range(-(-prod(block) // LANES)))]
    found: dict[tuple[object, ...], Route] = {}
    while todo:
        warps = todo.pop()
        try:
            route = _route(graph, Threads(warps, block))
        except _Parting as parting:
            todo.extend(parting.groups)
            continue
        same = (route.start, tuple(sorted(route.after.items(), key=lambda item: item[0])), route.doubts)
        earlier = found.get(same)
        joined = warps if earlier is None else tuple(sorted((*earlier.warps, *warps)))
        found[same] = Route(joined, route.start, route.after, route.doubts)
    return tuple(sorted(found.values(), key=lambda route: route.warps))


class _Parting(Exception):
    """A branch sends some of the warps one way and some another: follow each group by itself."""

    def __init__(self, groups: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self.groups = groups


@dataclass
class _Walk:
    """Where a walk ended: states before the sites it met, and whether a way leads out."""

    arrivals: dict[int, State] = field(default_factory=dict)
    leaves: bool = False
    doubts: set[str] = field(default_factory=set)

    @property
    def step(self) -> Step:
        return Step(frozenset(self.arrivals), self.leaves)


def _route(graph: CodeGraph, threads: Threads) -> Route:
    start = _walk(graph, threads, 0, {})
    before: dict[int, State] = dict(start.arrivals)
    after: dict[int, Step] = {}
    doubts = set(start.doubts)
    todo = sorted(before, reverse=True)
    while todo:
        pc = todo.pop()
        walk, refused = _behind(graph, threads, pc, before[pc])
        if refused is not None and (refused.leaves or set(refused.arrivals) != {pc}):
            doubts.add(f"TRY_ALLOC at {pc:#x} is not simply repeated when it is refused")
        after[pc] = walk.step
        doubts |= walk.doubts
        for arrivals in (walk.arrivals, refused.arrivals if refused is not None else {}):
            for site, state in arrivals.items():
                merged = _joined(before.get(site), state)
                if site not in before or merged != before[site]:
                    before[site] = merged
                    todo.append(site)
    return Route(threads.warps, start.step, after, tuple(sorted(doubts)))


def _behind(graph: CodeGraph, threads: Threads, pc: int, state: State) -> tuple[_Walk, _Walk | None]:
    """The walk behind a site; for a request also the walk behind its refusal."""
    answer = graph.answers[pc]
    following = pc + BYTES_PER_INSTRUCTION
    if answer is None:
        return _walk(graph, threads, following, state), None
    paid, refused = ({**state, answer: granted} for granted in (1, 0))
    return _walk(graph, threads, following, paid), _walk(graph, threads, following, refused)


def _walk(graph: CodeGraph, threads: Threads, pc: int, state: State) -> _Walk:
    """Follow the code from `pc` to the next sites."""
    walk = _Walk()
    states: dict[int, State] = {}
    todo: list[int] = []

    def enter(target: int, arriving: Mapping[str, Value]) -> None:
        if target not in graph.before_sites:
            walk.leaves = True
            return
        merged = _joined(states.get(target), arriving)
        if target not in states or merged != states[target]:
            states[target] = merged
            heapq.heappush(todo, target)

    enter(pc, state)
    while todo:
        start = heapq.heappop(todo)
        block, current = graph.blocks[start], dict(states[start])
        for effect in graph.effects(block):
            effect.apply(current, threads)
        for target, known in _exits(graph, block, current, threads, walk):
            enter(target, known)
    return walk


def _exits(
    graph: CodeGraph, block: Block, state: State, threads: Threads, walk: _Walk
) -> Iterator[tuple[int, Mapping[str, Value]]]:
    """Where a block leads, and with what known there. Sites and ways out are noted in the walk."""
    last = block.last
    if block.kind == "fork":
        yield from ((target, state) for target in (*block.targets, block.end))
        return
    taken = _decision(branch_condition(last), state, threads) if block.kind != "plain" else False
    if taken is not True:
        yield block.end, state
    if taken is False:
        return
    if block.kind == "site":
        walk.arrivals[last.pc] = _joined(walk.arrivals.get(last.pc), state)
    elif block.kind == "exit":
        walk.leaves = True
    elif block.kind == "call":
        yield from ((target, state) for target in block.targets if target in graph.before_sites)
        walk.leaves |= graph.call_may_exit(block)
        yield (
            block.end,
            {name: value for name, value in state.items() if name not in graph.written_by_call(block)},
        )
    elif block.kind == "anywhere":
        walk.doubts.add(f"the target of {last.opcode} at {last.pc:#x} is in a register")
        yield from ((target, {}) for target in block.targets)
    else:
        yield from ((target, state) for target in block.targets)


def _decision(conditions: Sequence[tuple[str, bool] | None], state: State, threads: Threads) -> bool | None:
    """True or False where all threads agree, None where both ways must be followed."""
    value: Value | None = 1
    for condition in conditions:
        value = both(value, None if condition is None else truth(state, condition))
    ways = threads.per_warp(value)
    if len(set(ways.values())) > 1:
        raise _Parting([tuple(w for w in threads.warps if ways[w] == way) for way in set(ways.values())])
    way = next(iter(ways.values()))
    return None if way is None else bool(way)


def _joined(known: Mapping[str, Value] | None, arriving: Mapping[str, Value]) -> State:
    """What two ways to the same place agree on."""
    if known is None:
        return dict(arriving)
    return {name: value for name, value in known.items() if arriving.get(name) == value}
