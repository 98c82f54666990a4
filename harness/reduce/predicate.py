"""Is a candidate still bad? Answered by the lab's own verdict, with a file for each text it must trace."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from harness.kernels import get
from harness.lab import Lab, Question
from harness.model import Case, Cell, CellResult, KernelSource, Specialization, Toolchain
from harness.oracle import Answer, Oracle
from harness.pipeline import judged
from harness.reduce.candidate import Candidate
from harness.reduce.check import plausible

CANONICAL = "kernels/reduced/kernel.py"
"""The file name the compilers are shown, so that a text compiles to the same bytes everywhere."""


@dataclass(frozen=True)
class Predicate:
    """Bad on `cell`'s toolchain and architecture and, where `good` is given, good on that toolchain.

    `base` is the directory kernel paths are relative to; `scratch` holds the candidates' files.
    Safe to use from many threads.
    """

    lab: Lab
    cell: Cell
    oracle: Oracle
    scratch: Path
    base: Path | None = None
    good: Toolchain | None = None

    def case_is_bad(self, case: Case) -> bool:
        """Whether a configuration of the original kernel shows the fault."""
        try:
            specialization = self.specialise(case)
        except (ValueError, KeyError):
            return False
        return self._is_bad(specialization, case)

    def candidate_is_bad(self, candidate: Candidate) -> bool:
        """Whether a kernel text shows the fault. Costs next to nothing if it makes no sense as Python."""
        if not plausible(candidate):
            return False
        return self._is_bad(self.specialization(candidate), self.cell.case)

    def specialise(self, case: Case) -> Specialization:
        """What a launch of the case would compile. ValueError or KeyError if there is no such launch."""
        return get(case.kernel, self.base).specialise(case)

    def specialization(self, candidate: Candidate) -> Specialization:
        """The candidate as the lab compiles it; writes its file."""
        data = candidate.text.encode()
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.scratch / sha256 / "kernel.py"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        source = KernelSource(str(path), CANONICAL, candidate.function, sha256)
        original = self.specialise(self.cell.case)
        return replace(original, source=source, parameters=candidate.parameters, hints=candidate.hints)

    def examine(self, toolchain: Toolchain, specialization: Specialization, case: Case) -> CellResult:
        """Trace, compile, inspect and judge on a toolchain."""
        hints = specialization.hints
        cell = Cell(toolchain, self.cell.arch, replace(case, hints=hints))
        seen = self.lab.examine(Question(toolchain, self.cell.arch, specialization))
        return judged(cell, seen, self.lab.provisioner.backend(toolchain).components)

    def _is_bad(self, specialization: Specialization, case: Case) -> bool:
        bad = self.examine(self.cell.toolchain, specialization, case)
        if self.oracle.answer(bad) is not Answer.BAD:
            return False
        if self.good is None:
            return True
        return self.oracle.answer(self.examine(self.good, specialization, case)) is Answer.GOOD
