"""The bisection itself: asks for cells until the search and the mixes have nothing left to ask.

It knows no compiler: `ask` judges a cell, `components_of` says what a toolchain is made of. So it is
tested with made-up compilers, and works for whatever `ask` does, be it compiling or running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from packaging.version import Version

from harness.bisect import components as mixing
from harness.bisect.components import Bad, Blame, blame, differing, mixed, next_mix
from harness.bisect.result import Accusation, BisectResult, Point, Probe, Side
from harness.bisect.search import Edge, Ending, conclude, next_step
from harness.bisect.versions import (
    BACKEND_COMPONENTS,
    TILE,
    TOOLKIT,
    Axis,
    BisectError,
    Candidate,
    ComponentsOf,
    default_over,
    plan_axis,
)
from harness.model import Cell, CellResult, Toolchain
from harness.oracle import Answer, Oracle, parse_oracle

Ask = Callable[[Cell, str | None], CellResult]
"""Judge a cell, with its bytecode in a given version or in the one a JIT launch would pick."""

BYTECODE = "bytecode"


@dataclass(frozen=True)
class Request:
    """What to look for and how. `over` None: the axis that suits the blamed component."""

    oracle: str = "signature"
    over: str | None = None
    exhaustive: bool = False
    components: bool = True


@dataclass(frozen=True)
class World:
    """What a bisection asks of its surroundings. `versions` lists an axis's versions; `unavailable` are
    the errors by which `components_of` says that a toolchain cannot be had."""

    ask: Ask
    versions: Callable[[str], Iterable[str]]
    components_of: ComponentsOf
    unavailable: tuple[type[Exception], ...] = ()
    clock: Callable[[], float] = time.monotonic


class Bisection:
    """One search. `run` may be cut short at any step; `result` then tells what is known so far."""

    def __init__(
        self,
        cell: Cell,
        original: CellResult | None,
        request: Request,
        world: World,
        listener: Callable[[Probe], None] = lambda probe: None,
    ) -> None:
        self._cell = cell
        self._request = request
        self._world = world
        self._listener = listener
        self._began = world.clock()
        self._known: dict[tuple[str, str | None], CellResult] = {}
        self._probes: list[Probe] = []
        self._answers: dict[int, Answer] = {}
        self._accusations: list[Accusation] = []
        self._complete = False
        known = parse_oracle(request.oracle, original) if original is not None else None
        now = world.ask(cell, None)
        self._original = original or now
        self._oracle: Oracle = known or parse_oracle(request.oracle, now)
        if self._oracle.answer(now) is not Answer.BAD:
            raise BisectError(
                f'cell {cell.id} does not show "{self._oracle}" any more, now it is {now.verdict} '
                f"({now.judgement.summary.rstrip('.')}); run the matrix again"
            )
        self._over = request.over or default_over(self._original.judgement.component)
        self._axis = self._plan(self._original.judgement.component)
        took = world.clock() - self._began
        self._take(now, "version", self._axis.label(self._axis.start), cell.toolchain, None, took)

    def run(self) -> BisectResult:
        """Search to the end."""
        self._search()
        self._accuse()
        guilty = self.result().component
        if guilty in BACKEND_COMPONENTS and guilty != self._axis.component:
            # Versions are told apart, and named, by the component that turned out to be guilty.
            self._axis = self._plan(guilty)
            self._accusations = []
            self._search()
            self._accuse()
        self._complete = True
        return self.result()

    def result(self) -> BisectResult:
        """What is known so far."""
        axis = self._axis
        found = conclude(len(axis.candidates), axis.start, self._answers)
        return BisectResult(
            cell=self._cell,
            oracle=str(self._oracle),
            verdict=self._original.verdict,
            signature=self._original.judgement.signature,
            summary=self._original.judgement.summary,
            over=self._over,
            named_by=axis.component or axis.over,
            older=self._side(found.older),
            newer=self._side(found.newer),
            flips=tuple((axis.label(one), axis.label(other)) for one, other in found.flips),
            left_out=axis.left_out,
            accusations=tuple(self._accusations),
            probes=tuple(self._probes),
            seconds=self._world.clock() - self._began,
            complete=self._complete,
        )

    # --- versions -----------------------------------------------------------------------------

    def _plan(self, component: str | None) -> Axis:
        world = self._world
        versions = world.versions(self._over)
        toolchain = self._cell.toolchain
        axis = plan_axis(toolchain, self._over, versions, world.components_of, world.unavailable, component)
        self._answers = {axis.start: Answer.BAD}
        return axis

    def _search(self) -> None:
        axis = self._axis
        count, exhaustive = len(axis.candidates), self._request.exhaustive
        while (step := next_step(count, axis.start, self._answers, exhaustive)) is not None:
            toolchain = axis.candidates[step.position].toolchain
            probe = self._probe("version", axis.label(step.position), toolchain, None, step.left - 1)
            self._answers[step.position] = probe.answer

    def _side(self, edge: Edge) -> Side:
        return Side(
            ending=edge.ending,
            bad=self._point(edge.bad),
            good=None if edge.good is None else self._point(edge.good),
            gap=tuple(map(self._point, sorted(edge.gap))),
            untested=tuple(map(self._point, sorted(edge.untested))),
        )

    def _point(self, position: int) -> Point:
        candidate: Candidate = self._axis.candidates[position]
        known = self._known.get((candidate.toolchain.digest, None))
        unknown = known is not None and self._answers.get(position) is Answer.UNKNOWN
        return Point(
            version=self._axis.label(position),
            stands_for=candidate.stands_for,
            toolchain=candidate.toolchain,
            components=candidate.components,
            reason=known.judgement.summary if known is not None and unknown else "",
        )

    # --- components ---------------------------------------------------------------------------

    def _accuse(self) -> None:
        if not self._request.components:
            return
        result = self.result()
        for name, side in (("older", result.older), ("newer", result.newer)):
            if side.ending is not Ending.FOUND or side.good is None:
                continue
            if self._over == TILE:
                accusation = Accusation(name, side.good, side.bad, Blame(((TILE,),), True), ())
            else:
                accusation = self._accuse_backend(name, side.good, side.bad)
            self._accusations.append(accusation)

    def _accuse_backend(self, edge: str, good: Point, bad: Point) -> Accusation:
        common, evidence, changed = self._common_bytecode(good, bad)
        if changed:
            return Accusation(edge, good, bad, Blame(((BYTECODE,),), True), tuple(evidence))
        differ = differing(good.components, bad.components)
        answers: dict[Bad, Answer] = {}
        proving: list[Toolchain] = []
        suspected, exhaustive = self._axis.component, self._request.exhaustive
        while (mix := next_mix(differ, answers, suspected, exhaustive)) is not None:
            toolchain = mixed(bad.toolchain, good.components, bad.components, mix)
            left = sum(other not in answers for other in mixing.mixes(differ)) - 1
            label = _mix_label(differ, mix, good.components, bad.components)
            probe = self._probe("mix", label, toolchain, common, left)
            answers[mix] = probe.answer
            if probe.answer is not Answer.UNKNOWN:
                proving.append(toolchain)
            evidence.append(probe.evidence)
        return Accusation(edge, good, bad, blame(differ, answers), tuple(evidence), tuple(proving))

    def _common_bytecode(self, good: Point, bad: Point) -> tuple[str | None, list[str], bool]:
        """A bytecode version that both take, what was found out about it, and whether it is to blame."""
        theirs, its = self._bytecode_version(good), self._bytecode_version(bad)
        if theirs is None or its is None or theirs == its:
            return theirs or its, [], False
        older = min(theirs, its, key=Version)
        newer, own, expected = (good, theirs, Answer.GOOD) if older == its else (bad, its, Answer.BAD)
        label = f"{self._axis.component or TOOLKIT} {newer.version} on bytecode {older} instead of {own}"
        probe = self._probe("bytecode", label, newer.toolchain, older, 0)
        evidence = [probe.evidence]
        if probe.answer is Answer.UNKNOWN:
            return None, [*evidence, "so a component and the bytecode version cannot be told apart"], False
        return older, evidence, probe.answer is not expected

    def _bytecode_version(self, point: Point) -> str | None:
        known = self._known.get((point.toolchain.digest, None))
        return known.trace.bytecode_version if known is not None and known.trace is not None else None

    # --- asking -------------------------------------------------------------------------------

    def _probe(self, stage: str, label: str, toolchain: Toolchain, bytecode: str | None, left: int) -> Probe:
        key = (toolchain.digest, bytecode)
        began = self._world.clock()
        if key in self._known:
            result = self._known[key]
        else:
            result = self._world.ask(replace(self._cell, toolchain=toolchain), bytecode)
        took = self._world.clock() - began
        return self._take(result, stage, label, toolchain, bytecode, took, left)

    def _take(
        self,
        result: CellResult,
        stage: str,
        label: str,
        toolchain: Toolchain,
        bytecode: str | None,
        seconds: float,
        left: int | None = None,
    ) -> Probe:
        if left is None:
            step = next_step(
                len(self._axis.candidates), self._axis.start, self._answers, self._request.exhaustive
            )
            left = step.left if step else 0
        probe = Probe(
            stage=stage,
            label=label,
            toolchain=toolchain,
            components=result.components,
            answer=self._answer(result, stage),
            verdict=result.verdict,
            summary=result.judgement.summary,
            seconds=seconds,
            left=left,
            bytecode_version=bytecode,
            bytecode_sha256=result.trace.bytecode_sha256 if result.trace else None,
            opt_level=result.trace.opt_level if result.trace else None,
        )
        repeated = (toolchain.digest, bytecode) in self._known
        self._known[toolchain.digest, bytecode] = result
        if not repeated:
            self._probes.append(probe)
            self._listener(probe)
        return probe

    def _answer(self, result: CellResult, stage: str) -> Answer:
        failed = result.compile is not None and result.compile.status == "failed"
        if stage == "mix" and failed and mixing.is_known_not_to_work(result.components):
            return Answer.UNKNOWN
        return self._oracle.answer(result)


def _mix_label(differ: tuple[str, ...], mix: Bad, good: dict[str, str], bad: dict[str, str]) -> str:
    """The odd component first: "tileiras 13.4.59 in the bad toolchain"."""
    fresh = [name for name in differ if name not in mix]
    stale = [name for name in differ if name in mix]
    if len(fresh) <= len(stale):
        names, versions, host = fresh, good, "bad"
    else:
        names, versions, host = stale, bad, "good"
    return f"{' and '.join(f'{name} {versions[name]}' for name in names)} in the {host} toolchain"
