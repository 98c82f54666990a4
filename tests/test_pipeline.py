"""The order of stages on a laboratory that plays faults: every cell is reported exactly once."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from made_results import Maker

from harness import pipeline
from harness.judge import judge_compile
from harness.kernels import get
from harness.lab import Examination, Question
from harness.model import Cell, CellResult, CompileOutcome, Judgement, TraceOutcome, Verdict
from harness.pipeline import run_cells
from harness.process import Cancelled


class FakeLab:
    """Traces everything to the same bytecode per architecture; compiles as `behaviour` says."""

    def __init__(self, behaviour: Any) -> None:
        self.behaviour = behaviour
        self.compiled: list[str] = []
        self.cancelled = threading.Event()
        self.supervisor = SimpleNamespace(cancel=self.cancelled.set)
        self.provisioner = SimpleNamespace(
            backend=self._backend,
            frontend=lambda version: None,
            choose=lambda package, wanted: f"{wanted} of {package}",
        )

    @staticmethod
    def _backend(toolchain: Any) -> Any:
        return SimpleNamespace(
            identity=toolchain.cuda_toolkit, components={"tileiras": toolchain.cuda_toolkit}
        )

    def trace(self, question: Question) -> TraceOutcome:
        return TraceOutcome("ok", bytecode_sha256=f"{question.arch}-{question.specialization.digest}")

    def finish(self, question: Question, trace: TraceOutcome) -> Examination:
        self.compiled.append(question.digest)
        return Examination(trace=trace, compile=self.behaviour(question))


def failed(question: Question) -> CompileOutcome:
    return CompileOutcome("failed", exit_code=1, stderr="error: something specific is wrong")


def run(lab: FakeLab, cells: list[Cell]) -> list[CellResult]:
    reported: list[CellResult] = []
    run_cells(lab, cells, reported.append, jobs=2)  # type: ignore[arg-type]
    return reported


def test_every_cell_is_reported_once(make: Maker) -> None:
    cells = list(make.cells())
    reported = run(FakeLab(failed), cells)
    assert Counter(r.cell.id for r in reported) == Counter(cell.id for cell in cells)
    assert {r.verdict for r in reported} == {Verdict.COMPILE_ERROR}
    assert reported[0].resolved == {
        "cuda_tile": f"{reported[0].cell.toolchain.cuda_tile} of cuda-tile",
        "cuda_toolkit": f"{reported[0].cell.toolchain.cuda_toolkit} of cuda-toolkit",
    }
    assert {r.kernel_sha256 for r in reported} == {get(cells[0].case.kernel).source().sha256}


def test_a_fault_of_ours_costs_one_cell_its_verdict(make: Maker) -> None:
    cells = list(make.cells())
    broken = cells[3]

    def behaviour(question: Question) -> CompileOutcome:
        if question.toolchain == broken.toolchain and question.arch == broken.arch:
            raise RuntimeError("planted")
        return failed(question)

    reported = run(FakeLab(behaviour), cells)
    assert len(reported) == len(cells)
    bad = [r for r in reported if r.verdict is Verdict.INFRA_ERROR]
    assert bad and all(r.cell.toolchain == broken.toolchain for r in bad)
    assert "planted" in bad[0].judgement.evidence["message"] + bad[0].judgement.summary


def test_a_cell_that_cannot_be_traced_or_judged_costs_only_itself(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = list(make.cells())[:4]
    lab = FakeLab(failed)
    traced = lab.trace

    def trace(question: Question) -> TraceOutcome:
        if question.specialization.hints.occupancy is None:
            raise ValueError("planted in the trace")
        return traced(question)

    def judge(cell: Cell, *seen: Any, **further: Any) -> Judgement:
        if cell == cells[3]:
            raise KeyError("planted in the judge")
        return judge_compile(cell, *seen, **further)

    monkeypatch.setattr(lab, "trace", trace)
    monkeypatch.setattr(pipeline, "judge_compile", judge)
    summaries = {r.cell.id: r.judgement.summary for r in run(lab, cells) if r.verdict is Verdict.INFRA_ERROR}
    untraced = [cell for cell in cells if cell.case.hints.occupancy is None]
    assert summaries == {cells[3].id: "KeyError: 'planted in the judge'."} | {
        cell.id: "ValueError: planted in the trace." for cell in untraced
    }


def test_a_result_that_cannot_be_reported_costs_only_its_verdict(make: Maker) -> None:
    cells = list(make.cells())[:6]
    reported: list[CellResult] = []

    def report(result: CellResult) -> None:
        if result.cell == cells[2] and result.verdict is not Verdict.INFRA_ERROR:
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "planted")
        reported.append(result)

    run_cells(FakeLab(failed), cells, report, jobs=2)  # type: ignore[arg-type]
    assert Counter(r.cell.id for r in reported) == Counter(cell.id for cell in cells)
    assert [r.cell for r in reported if r.verdict is Verdict.INFRA_ERROR] == [cells[2]]


def test_an_interrupt_leaves_no_cell_without_a_word(make: Maker) -> None:
    cells = list(make.cells())
    done = threading.Event()

    def behaviour(question: Question) -> CompileOutcome:
        if done.is_set():
            raise Cancelled("cancelled")
        done.set()
        return failed(question)

    lab = FakeLab(behaviour)
    reported: list[CellResult] = []
    with pytest.raises(KeyboardInterrupt):
        run_cells(lab, cells, reported.append, jobs=1)  # type: ignore[arg-type]
    assert lab.cancelled.is_set()
    assert Counter(r.cell.id for r in reported) == Counter(cell.id for cell in cells)
    assert {r.verdict for r in reported} == {Verdict.COMPILE_ERROR, Verdict.NOT_RUN}
