"""The bytecode that goes into a repro, in a version that every place can read, and the PTX it becomes."""

from __future__ import annotations

from dataclasses import replace

from packaging.version import Version

from harness.lab import Lab, opt_level
from harness.model import Cell, TraceOutcome
from harness.oracle import Oracle
from harness.report.files import write_atomically
from harness.repro.laboratory import from_bytecode, question
from harness.repro.request import Note
from harness.repro.scrub import Scrubber
from harness.repro.spec import PTX_FILE, Repro, bytecode_file
from harness.repro.symptom import Symptom
from harness.repro.verify import holds

MAX_PTX_BYTES = 400_000
_PTX_TELLS = (Symptom.DEADLOCK, Symptom.FAILS, Symptom.DEVICE)


def keep_bytecode(lab: Lab, oracle: Oracle, repro: Repro, symptom: Symptom, note: Note) -> Repro:
    """Keep the bytecode in a version that all places can read, or else in the bad one's own."""
    if symptom is Symptom.FRONTEND:
        return repro
    by_arch: dict[str, Cell] = {}
    for place, cell in repro.cells():
        if place.bad:
            by_arch.setdefault(cell.arch, cell)
    own = next(iter(by_arch.values()))
    for version in dict.fromkeys((_common_version(lab, repro), None)):
        traces = {arch: _trace(lab, repro, cell, version) for arch, cell in by_arch.items()}
        if any(trace.bytecode_sha256 is None for trace in traces.values()):
            continue
        kept = replace(repro, bytecode_version=traces[own.arch].bytecode_version)
        for arch, trace in traces.items():
            data = lab.cache.get(trace.bytecode_sha256 or "")
            assert data is not None
            (repro.folder / bytecode_file(arch)).write_bytes(data)
        wrong = _disagreement(lab, oracle, kept)
        if wrong is None:
            _keep_ptx(lab, kept, own, traces[own.arch], symptom)
            return kept
        note(f"bytecode {kept.bytecode_version} does not tell the same: {wrong}")
    for path in repro.bytecode:
        path.unlink()
    return repro


def _trace(lab: Lab, repro: Repro, cell: Cell, version: str | None) -> TraceOutcome:
    asked = question(repro, cell)
    spec = replace(asked.specialization, bytecode_version=version)
    return lab.trace(replace(asked, specialization=spec))


def _common_version(lab: Lab, repro: Repro) -> str | None:
    """The newest bytecode that every backend reads and every frontend writes."""
    sets = []
    for place in repro.places:
        if place.toolchain is not None:
            tracer = lab.tracer(lab.provisioner.frontend(place.toolchain.cuda_tile))
            sets.append(set(tracer.bytecode_versions()))
            sets.append(set(lab.provisioner.backend(place.toolchain).bytecode_versions))
    return max(set.intersection(*sets), key=Version, default=None) if sets else None


def _disagreement(lab: Lab, oracle: Oracle, repro: Repro) -> str | None:
    for place, cell in repro.cells():
        result = from_bytecode(lab, repro, cell)
        if result is not None:
            held, seen = holds(repro, place, result, oracle)
            if not held:
                return f"{place.name} {cell.arch}: {seen}"
    return None


def _keep_ptx(lab: Lab, repro: Repro, cell: Cell, trace: TraceOutcome, symptom: Symptom) -> None:
    if symptom not in _PTX_TELLS or trace.bytecode_sha256 is None:
        return
    backend = lab.provisioner.backend(cell.toolchain)
    level = opt_level(question(repro, cell), trace)
    told = lab.compiler.diagnose(backend, trace.bytecode_sha256, cell.arch, level, lab.deadlines.compile)
    ptx = lab.cache.get(told["ptx_sha256"]) if told.get("ptx_sha256") else None
    if ptx is not None and len(ptx) <= MAX_PTX_BYTES:
        text = Scrubber.of_this_machine().scrub(ptx.decode("utf-8", "replace"))
        write_atomically(repro.folder / PTX_FILE, text)
