"""The order of stages on a laboratory that plays faults: every cell is reported exactly once."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from made_results import Maker

from harness.lab import Examination, Question
from harness.model import Cell, CellResult, CompileOutcome, TraceOutcome, Verdict
from harness.pipeline import run_cells
from harness.process import Cancelled


class FakeLab:
    """Traces everything to the same bytecode per architecture; compiles as `behaviour` says."""

    def __init__(self, behaviour: Any) -> None:
        self.behaviour = behaviour
        self.compiled: list[str] = []
        self.cancelled = threading.Event()
        self.supervisor = SimpleNamespace(cancel=self.cancelled.set)
        self.provisioner = SimpleNamespace(backend=self._backend, frontend=lambda version: None)

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
