"""What a repro asks of the laboratory: its kernel traced anew, or its bytecode as it was kept."""

from __future__ import annotations

from harness.kernels import get
from harness.lab import Examination, Lab, Question
from harness.model import Cell, CellResult, TraceOutcome
from harness.pipeline import judged
from harness.repro.spec import Repro, bytecode_file


def question(repro: Repro, cell: Cell) -> Question:
    """The kernel in repro.py, as the cell wants it compiled."""
    spec = get(cell.case.kernel, repro.folder).specialise(cell.case)
    return Question(cell.toolchain, cell.arch, spec)


def retraced(lab: Lab, repro: Repro, cell: Cell) -> CellResult:
    """Trace, compile and judge the kernel in repro.py. Raises ProvisionError."""
    components = lab.provisioner.backend(cell.toolchain).components
    return judged(cell, lab.examine(question(repro, cell)), components)


def from_bytecode(lab: Lab, repro: Repro, cell: Cell) -> CellResult | None:
    """Compile and judge the bytecode that was kept; None where there is none this backend can read."""
    backend = lab.provisioner.backend(cell.toolchain)
    path = repro.folder / bytecode_file(cell.arch)
    if repro.bytecode_version not in backend.bytecode_versions or not path.is_file():
        return None
    sha256 = lab.cache.put(path.read_bytes())
    trace = TraceOutcome("ok", bytecode_sha256=sha256, bytecode_version=repro.bytecode_version)
    seen: Examination = lab.finish(question(repro, cell), trace)
    return judged(cell, seen, backend.components)
