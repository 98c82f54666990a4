"""From a finding to the smallest kernel that shows it: configuration first, then source, then names."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from harness.kernels import get
from harness.lab import Deadlines, Lab
from harness.model import Case, Cell, CellResult, CompileOutcome, Toolchain
from harness.oracle import Answer, parse_oracle
from harness.reduce import candidate as source
from harness.reduce import config
from harness.reduce.candidate import Candidate, body_statements
from harness.reduce.check import complaint
from harness.reduce.engine import End, Outcome, Problem, Step, minimise
from harness.reduce.launching import launch_arrays
from harness.reduce.passes import FINAL_PASSES, SOURCE_PASSES
from harness.reduce.predicate import Predicate
from harness.reduce.reduced import Reduced, given_hints

T = TypeVar("T")

SHORTEST_DEADLINE = 5.0
"""Seconds a candidate's trace or compile may always take."""

DEADLINE_FACTOR = 4.0
"""How much longer than the original a candidate may take; a slower one is another matter."""

TIMEOUT_SHARE = 6.0
"""A candidate for "does not end" must outlive this part of the original's deadline; the result all of it."""


class ReduceError(Exception):
    """There is nothing to reduce; the text says why and what to do."""


@dataclass(frozen=True)
class Request:
    """What to reduce and how long it may take. Seconds; `deadline` is that of the original's compile.

    `good` is a toolchain every candidate must be good on; with `good_optional` it is left out where
    the original is not good there today.
    """

    cell: Cell
    oracle: str = ""
    good: Toolchain | None = None
    good_optional: bool = False
    budget: float | None = None
    jobs: int = 1
    deadline: float = 60.0
    base: Path | None = None


@dataclass(frozen=True)
class Progress:
    """Where a reduction stands: what is being done, how large the best is, what it took so far."""

    phase: str
    size: str
    tried: int
    kept: int
    seconds: float
    improved: bool


def reduce_cell(
    lab: Lab,
    request: Request,
    progress: Callable[[Progress], None] = lambda progress: None,
    note: Callable[[str], None] = lambda text: None,
) -> Reduced:
    """Reduce a finding, as far as the budget and Ctrl-C allow; the result has been confirmed.

    Raises ReduceError where the cell shows no fault, OracleError for an oracle that does not fit.
    """
    with lab.supervisor.scratch("reduce-") as scratch:
        return _Reduction(lab, request, scratch, progress, note).run()


class _Reduction:
    def __init__(
        self,
        lab: Lab,
        request: Request,
        scratch: Path,
        progress: Callable[[Progress], None],
        note: Callable[[str], None],
    ) -> None:
        self.lab = lab
        self.request = request
        self.scratch = scratch
        self.progress = progress
        self.note = note
        self.begun = time.monotonic()
        self.tried = self.kept = 0
        self.reserve = 0.0
        self.end = End.COMPLETE
        self.kernel = get(request.cell.case.kernel, request.base)

    def run(self) -> Reduced:
        predicate, original = self._prepare()
        outlives = original.compile is not None and original.compile.status == "timeout"
        case = self._configuration(predicate)
        predicate = replace(predicate, cell=replace(predicate.cell, case=case))
        specialization = predicate.specialise(case)
        text = Path(specialization.source.path).read_text(encoding="utf-8")
        start = Candidate(
            text, specialization.source.function, specialization.parameters, specialization.hints
        )
        shown: tuple[Candidate, ...] = (start,)
        alone = complaint(start) is None and self._guarded(lambda: predicate.candidate_is_bad(start), True)
        if alone:
            shown = self._search("source", start, predicate)
        else:
            self.note(
                "only the configuration was reduced: alone in its file, the kernel does not show the fault"
            )
        small, steps = shown[-1], len(shown)
        shown += self._search("names", small, predicate, final=True)[1:]
        if outlives and self.end is not End.INTERRUPTED:
            self.lab.deadlines = replace(self.lab.deadlines, compile=self.request.deadline)
            self.note(f"confirming with the full deadline of {self.request.deadline:g} s")
            found = shown
            shown = self._guarded(lambda: _latest_bad(found, predicate), found)
        final = shown[-1]
        if len(shown) <= steps:
            small = final  # the names are still the original's
        seen = self._guarded(
            lambda: predicate.examine(predicate.cell.toolchain, predicate.specialization(final), case),
            original,
        )
        return Reduced(
            text=final.text,
            function=final.function,
            parameters=final.parameters,
            hints=final.hints,
            arch=predicate.cell.arch,
            toolchain=predicate.cell.toolchain,
            good=predicate.good,
            oracle=str(predicate.oracle),
            verdict=str(seen.verdict),
            signature=seen.judgement.signature,
            summary=seen.judgement.summary,
            case=case,
            arrays=launch_arrays(self.kernel, case, small, final),
            original_cell=self.request.cell.id,
            original_case=self.request.cell.case,
            original_statements=body_statements(start.text, start.function),
            statements=body_statements(final.text, final.function),
            tried=self.tried,
            kept=self.kept,
            seconds=round(time.monotonic() - self.begun, 1),
            end=self.end,
            deadline=self.request.deadline,
            calling_convention=specialization.calling_convention,
            bytecode_version=specialization.bytecode_version,
        )

    def _guarded(self, ask: Callable[[], T], otherwise: T) -> T:
        """The answer, unless Ctrl-C comes first: what was found until then must not be lost."""
        try:
            return ask()
        except KeyboardInterrupt:
            self.end = End.INTERRUPTED
            return otherwise

    # --- the fault, as it shows today ---------------------------------------------------------

    def _prepare(self) -> tuple[Predicate, CellResult]:
        request, cell = self.request, replace(self.request.cell, device=None)
        self.lab.deadlines = Deadlines(compile=request.deadline)
        blind = Predicate(self.lab, cell, _Anything(), self.scratch, request.base)
        specialization = blind.specialise(cell.case)
        original = blind.examine(cell.toolchain, specialization, cell.case)
        oracle = parse_oracle(request.oracle, original)
        good, seen = request.good, [original]
        if good is not None:
            healthy = blind.examine(good, specialization, cell.case)
            seen.append(healthy)
            if oracle.answer(healthy) is not Answer.GOOD:
                if not request.good_optional:
                    raise ReduceError(
                        f"{good.name} is not good on this cell ({healthy.judgement.summary.rstrip('.')}); "
                        "name another toolchain with --good, or none with --no-good"
                    )
                good = None
        self.lab.deadlines = self._deadlines(seen)
        outlived = [r.compile.status == "timeout" for r in seen if r.compile]
        once = sum(min(sum(r.seconds.values()), self.lab.deadlines.compile) for r in seen)
        self.reserve = len(FINAL_PASSES) * once + any(outlived) * request.deadline
        self.note(original.judgement.summary)
        if good is not None:
            self.note(f"every candidate must also be good on {good.name}")
        return replace(blind, oracle=oracle, good=good), original

    def _deadlines(self, seen: list[CellResult]) -> Deadlines:
        """What a candidate gets: some times the original's need; of a deadline outlived a part."""
        most = self.request.deadline
        trace = max(result.trace.wall_seconds for result in seen if result.trace)
        compiles = [result.compile for result in seen if result.compile]
        need = max((outcome.wall_seconds for outcome in compiles if outcome.status != "timeout"), default=0.0)
        wanted = max(SHORTEST_DEADLINE, DEADLINE_FACTOR * need)
        for outcome in compiles:
            if outcome.status == "timeout":
                wanted = max(wanted, most / TIMEOUT_SHARE + DEADLINE_FACTOR * _before_the_last(outcome))
        return Deadlines(
            trace=max(SHORTEST_DEADLINE, DEADLINE_FACTOR * trace), compile=min(wanted, max(most, need))
        )

    # --- the searches -------------------------------------------------------------------------

    def _configuration(self, predicate: Predicate) -> Case:
        problem = Problem(predicate.case_is_bad, config.cost, lambda case: case.digest)
        outcome = minimise(
            predicate.cell.case,
            config.config_passes(self.kernel),
            problem,
            jobs=self.request.jobs,
            deadline=self._until,
            report=self._reporter("configuration", _case_size),
        )
        self._settle(outcome)
        return outcome.best

    def _search(
        self, phase: str, start: Candidate, predicate: Predicate, *, final: bool = False
    ) -> tuple[Candidate, ...]:
        """All bests on the way, the start first. Renaming is given its time after the budget, too."""
        if self.end is End.INTERRUPTED or (self.end is End.BUDGET and not final):
            return (start,)
        problem = Problem(
            predicate.candidate_is_bad,
            (lambda candidate: (len(candidate.text),)) if final else source.cost,
            lambda candidate: candidate.digest,
        )
        outcome = minimise(
            start,
            FINAL_PASSES if final else SOURCE_PASSES,
            problem,
            jobs=self.request.jobs,
            deadline=None if final else self._until,
            report=self._reporter(phase, _text_size),
        )
        self._settle(outcome)
        return outcome.history

    @property
    def _until(self) -> float | None:
        """When searching must end, so that names and confirmation still fit into the budget."""
        if self.request.budget is None:
            return None
        return self.begun + max(self.request.budget - self.reserve, self.request.budget / 2)

    def _settle(self, outcome: Outcome[Case] | Outcome[Candidate]) -> None:
        self.tried += outcome.tried
        self.kept += len(outcome.history) - 1
        if outcome.end is not End.COMPLETE:
            self.end = outcome.end

    def _reporter(self, phase: str, size: Callable[[T], str]) -> Callable[[Step[T]], None]:
        def report(step: Step[T]) -> None:
            self.progress(
                Progress(
                    phase=f"{phase}: {step.pass_name}",
                    size=size(step.best),
                    tried=self.tried + step.tried,
                    kept=self.kept + step.kept,
                    seconds=time.monotonic() - self.begun,
                    improved=step.improved,
                )
            )

        return report


def _before_the_last(outcome: CompileOutcome) -> float:
    """CPU seconds of the processes that had done their part before the one that held the CPU at the end:
    a shorter deadline must still reach that one."""
    spent = sorted(usage.cpu_seconds for usage in outcome.usage)
    return sum(spent[:-1])


class _Anything:
    """Stands in for the oracle until the original has been seen."""

    def answer(self, result: CellResult) -> Answer:
        return Answer.UNKNOWN


def _latest_bad(history: tuple[Candidate, ...], predicate: Predicate) -> tuple[Candidate, ...]:
    """The history up to the smallest candidate that is bad by today's deadline, found by halving.

    Small ones may end a little after the short deadline they were found with; the first is the original.
    """
    if predicate.candidate_is_bad(history[-1]):
        return history
    low, high = 0, len(history) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if predicate.candidate_is_bad(history[middle]):
            low = middle
        else:
            high = middle
    return history[: low + 1]


def _case_size(case: Case) -> str:
    shape = "x".join(map(str, case.shape))
    told = [f"{key}={value}" for key, value in {**given_hints(case.hints), **dict(case.knobs)}.items()]
    return " ".join(filter(None, [shape, case.dtype, *told]))


def _text_size(candidate: Candidate) -> str:
    statements = body_statements(candidate.text, candidate.function)
    counts = {
        "statement": statements,
        "parameter": len(candidate.parameters),
        "character": len(candidate.text),
    }
    return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())
