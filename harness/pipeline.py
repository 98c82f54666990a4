"""The order of the stages, and nothing else: plan, provision, trace, compile, inspect, judge, record.

Work is shared before it is done. Cells that ask the same question are one question; questions
whose bytecode and backend are equal are one compile. Whatever happens, every planned cell is
reported: what an interrupt left undone is `not_run`.
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from harness.compile.cache import CacheError
from harness.inspect import CubinError, DisassemblyError
from harness.judge import judge_compile, judge_infra, judge_not_run
from harness.kernels import get
from harness.lab import Examination, Lab, Question, opt_level
from harness.model import Cell, CellResult, Toolchain
from harness.plan import describe
from harness.process import Cancelled
from harness.store import StoreError
from harness.toolchain import UnsupportedFrontend

Report = Callable[[CellResult], None]


@dataclass(frozen=True)
class Counters:
    """How much work the cells came down to."""

    cells: int
    questions: int
    compiles: int


class Watch(Protocol):
    """Somebody who wants to see what is being worked on."""

    def stage(self, name: str, total: int) -> None:
        """The run goes on to its next stage, of `total` steps."""

    def running(self, what: str) -> AbstractContextManager[None]:
        """One step of the stage, for as long as it takes."""


class _Nobody:
    def stage(self, name: str, total: int) -> None:
        pass

    def running(self, what: str) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass
class _Progress:
    """Cells still owed a verdict, so that none is ever lost."""

    report: Report
    watch: Watch
    owed: dict[str, Cell] = field(default_factory=dict)

    def settle(self, result: CellResult) -> None:
        """Report a result that is owed. One that cannot be reported costs its cell the verdict, no more."""
        if self.owed.pop(result.cell.id, None) is None:
            return
        try:
            self.report(result)
        except (Cancelled, StoreError):
            raise
        except Exception:
            self.report(CellResult(result.cell, judge_infra(traceback.format_exc(limit=-6))))


def run_cells(
    lab: Lab,
    cells: Sequence[Cell],
    report: Report,
    *,
    jobs: int,
    base: Path | None = None,
    announce: Callable[[str], None] = lambda text: None,
    watch: Watch | None = None,
) -> Counters:
    """Judge how every cell compiles, and report each exactly once.

    `base` is the directory kernel paths are relative to. Raises KeyboardInterrupt after reporting
    what an interrupt left undone.
    """
    progress = _Progress(report, watch or _Nobody(), {cell.id: cell for cell in cells})
    questions: dict[str, Question] = {}
    asking: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        question = Question(cell.toolchain, cell.arch, get(cell.case.kernel, base).specialise(cell.case))
        questions.setdefault(question.digest, question)
        asking[question.digest].append(cell)

    compiles = 0
    try:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                _provision(lab, pool, [q.toolchain for q in questions.values()], announce, progress.watch)
                traced = _trace(lab, pool, questions, asking, progress)
                compiles = len(traced)
                progress.watch.stage("compile", compiles)
                pending: dict[Future[None], str] = {}
                for group in traced.values():
                    pending[pool.submit(_finish_watched, lab, group, asking, progress)] = group[0][0].digest
                _drain(pending)
            except BaseException:
                lab.supervisor.cancel()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    except (KeyboardInterrupt, Cancelled):
        for cell in list(progress.owed.values()):
            progress.settle(CellResult(cell, judge_not_run(cell, "the run was interrupted")))
        raise KeyboardInterrupt from None
    for cell in list(progress.owed.values()):
        progress.settle(CellResult(cell, judge_not_run(cell, "no stage reported on it")))
    return Counters(len(cells), len(questions), compiles)


def _drain(pending: Iterable[Future[None]]) -> None:
    """Wait in short steps, so that Ctrl-C is heard, and let the first error through."""
    left = set(pending)
    while left:
        done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()


def _provision(
    lab: Lab,
    pool: ThreadPoolExecutor,
    toolchains: Iterable[Toolchain],
    announce: Callable[[str], None],
    watch: Watch,
) -> None:
    """Install what is missing before anything is compiled; a refusal to start is cheaper than half a run."""

    def one(toolchain: Toolchain) -> None:
        with watch.running(toolchain.name):
            lab.provisioner.backend(toolchain)
            try:
                lab.provisioner.frontend(toolchain.cuda_tile)
            except UnsupportedFrontend as refusal:
                announce(str(refusal))

    distinct = {t.digest: t for t in toolchains}
    announce(f"toolchains: {len(distinct)}")
    watch.stage("install", len(distinct))
    _drain({pool.submit(one, t) for t in distinct.values()})


Traced = tuple[Question, Examination]


def _trace(
    lab: Lab,
    pool: ThreadPoolExecutor,
    questions: dict[str, Question],
    asking: dict[str, list[Cell]],
    progress: _Progress,
) -> dict[tuple[str, ...], list[Traced]]:
    """Trace all questions, one thread a frontend, and group them by the compile they come down to."""
    by_frontend: dict[str, list[Question]] = defaultdict(list)
    for question in questions.values():
        by_frontend[question.toolchain.cuda_tile].append(question)
    groups: dict[tuple[str, ...], list[Traced]] = defaultdict(list)

    progress.watch.stage("trace", len(questions))

    def traced(question: Question) -> Examination | str:
        with progress.watch.running(describe(asking[question.digest][0])):
            return _trace_one(lab, question)

    def all_of(frontend: list[Question]) -> list[tuple[Question, Examination | str]]:
        return [(question, traced(question)) for question in frontend]

    futures = [pool.submit(all_of, frontend) for frontend in by_frontend.values()]
    left = set(futures)
    while left:
        _, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
    for future in futures:
        for question, seen in future.result():
            if isinstance(seen, str):
                _settle(lab, question, Examination(), asking, progress, infra=seen)
                continue
            sha256 = seen.trace.bytecode_sha256 if seen.trace else None
            if sha256 is None:
                _settle(lab, question, seen, asking, progress)
                continue
            backend = lab.provisioner.backend(question.toolchain)
            level = str(opt_level(question, seen.trace))
            groups[backend.identity, sha256, question.arch, level].append((question, seen))
    return groups


def _trace_one(lab: Lab, question: Question) -> Examination | str:
    """What tracing gave, or a sentence about what the machine failed at."""
    try:
        return Examination(trace=lab.trace(question))
    except UnsupportedFrontend as refusal:
        return Examination(unsupported=str(refusal))
    except Cancelled:
        raise
    except (OSError, CacheError) as failure:
        return str(failure)
    except Exception:
        return traceback.format_exc(limit=-6)


def _finish(lab: Lab, group: Sequence[Traced], asking: dict[str, list[Cell]], progress: _Progress) -> None:
    """Compile once for the whole group; the other questions of it find the outcome remembered."""
    for question, seen in group:
        assert seen.trace is not None
        try:
            examined = lab.finish(question, seen.trace)
        except Cancelled:
            raise
        except (OSError, CacheError, CubinError, DisassemblyError) as failure:
            _settle(lab, question, seen, asking, progress, infra=str(failure))
        except Exception:
            # A fault of ours costs this cell its verdict, never the run.
            _settle(lab, question, seen, asking, progress, infra=traceback.format_exc(limit=-6))
        else:
            _settle(lab, question, examined, asking, progress)


def _finish_watched(
    lab: Lab, group: Sequence[Traced], asking: dict[str, list[Cell]], progress: _Progress
) -> None:
    """The same, under the name of the group's first cell."""
    with progress.watch.running(describe(asking[group[0][0].digest][0])):
        _finish(lab, group, asking, progress)


def _settle(
    lab: Lab,
    question: Question,
    seen: Examination,
    asking: dict[str, list[Cell]],
    progress: _Progress,
    infra: str | None = None,
) -> None:
    components = lab.provisioner.backend(question.toolchain).components
    resolved = _resolved(lab, question.toolchain)
    kernel = question.specialization.source.sha256
    for cell in asking[question.digest]:
        try:
            result = judged(cell, seen, components, infra)
        except Exception:
            result = CellResult(cell, judge_infra(traceback.format_exc(limit=-6)))
        progress.settle(replace(result, resolved=resolved, kernel_sha256=kernel))


def _resolved(lab: Lab, toolchain: Toolchain) -> dict[str, str]:
    """The exact versions of a toolchain that was provisioned."""
    choose = lab.provisioner.choose
    return {
        "cuda_tile": choose("cuda-tile", toolchain.cuda_tile),
        "cuda_toolkit": choose("cuda-toolkit", toolchain.cuda_toolkit),
    }


def judged(cell: Cell, seen: Examination, components: dict[str, str], infra: str | None = None) -> CellResult:
    """Put a verdict on what was seen, and both into one result."""
    judgement = judge_compile(
        cell,
        seen.trace,
        seen.compile,
        seen.inspection,
        control=seen.control,
        diagnosis=seen.diagnosis,
        unsupported=seen.unsupported,
        infra=infra,
        patient=seen.patient,
    )
    seconds: dict[str, float] = {}
    if seen.trace is not None:
        seconds |= {"trace": seen.trace.wall_seconds, "trace_cpu": seen.trace.cpu_seconds}
    if seen.compile is not None:
        seconds |= {"compile": seen.compile.wall_seconds, "compile_cpu": seen.compile.cpu_seconds}
    return CellResult(
        cell,
        judgement,
        components=components,
        trace=seen.trace,
        compile=seen.compile,
        inspection=seen.inspection,
        seconds=seconds,
    )
