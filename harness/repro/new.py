"""Make a repro: write the script, ask the laboratory what it shows where, and claim no more than that."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.kernels import get
from harness.lab import Deadlines, Lab
from harness.model import (
    Array,
    Case,
    CellResult,
    CompileOutcome,
    Hints,
    Parameter,
    Verdict,
)
from harness.plan import describe
from harness.report.files import write_atomically
from harness.repro import launching, places
from harness.repro.bytecode import keep_bytecode
from harness.repro.identity import duplicate, identity, remark_of
from harness.repro.readme import readme_text
from harness.repro.request import Request
from harness.repro.script import Content, script_text
from harness.repro.scrub import Scrubber
from harness.repro.spec import (
    BISECT_FILE,
    NAME,
    README_FILE,
    SCRIPT_FILE,
    SPEC_FILE,
    Kind,
    Repro,
    ReproError,
    Status,
)
from harness.repro.spec_text import write_spec
from harness.repro.symptom import EXPECTED, PHRASES, Symptom, symptom_of
from harness.repro.verify import script_check

_UNFINISHED_SECONDS = 6 * 3600.0
_LONGEST_TITLE = 90
_LOCATION = re.compile(r" \([^()\s]+\.py, line \d+: .*\)$")
"""Where in the original's file an error was; repro.py has other lines."""


class Duplicate(ReproError):
    """The finding has its repro already."""


@dataclass(frozen=True)
class _Kernel:
    """What the script is about: the shipped or reduced kernel, and how it is launched."""

    text: str
    function: str
    parameters: tuple[Parameter, ...]
    hints: Hints
    launch: launching.Launch
    origin: str
    calling_convention: str
    reference: tuple[tuple[str, str], ...] = ()


def make(lab: Lab, request: Request, note: Callable[[str], None] = lambda text: None) -> Repro:
    """Write the folder, complete or not at all. Raises ReproError, Duplicate and every ProvisionError."""
    if not NAME.fullmatch(request.name):
        raise ReproError(f'"{request.name}" is no name for a repro; use small letters, digits and -')
    known = identity(request.result, request.oracle)
    other = duplicate(request.repros, known)
    if other is not None and not request.force:
        raise Duplicate(f"{other.folder} is about this finding already ({known}); --force makes another")
    if (request.repros / request.name).exists() and not request.force:
        raise ReproError(f"{request.repros / request.name} exists already; choose another --name")
    lab.deadlines = Deadlines(lab.deadlines.trace, request.deadline)
    symptom, bound = symptom_of(request.result, request.oracle)
    kernel = _kernel(request)
    request.repros.mkdir(parents=True, exist_ok=True)
    _forget_unfinished(request.repros)
    with tempfile.TemporaryDirectory(dir=request.repros, prefix=".new-") as scratch:
        folder = Path(scratch) / request.name
        folder.mkdir()
        repro = _draft(folder, request, known, symptom)
        case = _case(request.result.cell.case, kernel, symptom)
        repro = replace(repro, case=case, origin=kernel.origin)
        content = _content(request, repro, kernel, symptom, bound)
        # What a kernel's comments say goes public with it.
        text = Scrubber.of_this_machine(request.base).scrub_code(script_text(content))
        write_atomically(folder / SCRIPT_FILE, text)
        look = places.recorded if symptom is Symptom.DEVICE else places.tried
        repro = look(lab, request, repro, symptom, note)
        repro = keep_bytecode(lab, request.oracle, repro, symptom, note)
        if request.bisect is not None:
            write_atomically(folder / BISECT_FILE, Scrubber.of_this_machine().scrub(request.bisect))
        write_atomically(folder / SPEC_FILE, write_spec(repro))
        write_atomically(folder / README_FILE, readme_text(repro))
        _run(lab, repro)
        return _publish(repro, request.repros / request.name)


def _forget_unfinished(repros: Path) -> None:
    """Remove what runs left that were killed; others may be at work."""
    for stale in repros.glob(".new-*"):
        if time.time() - stale.stat().st_mtime > _UNFINISHED_SECONDS:
            shutil.rmtree(stale, ignore_errors=True)


def _run(lab: Lab, repro: Repro) -> None:
    """Run the script where it is bad. Raises ReproError if it does not say so."""
    check = script_check(lab, repro, repro.bad[0])
    if not check.held:
        raise ReproError(f"repro.py does not show it on {check.place.name}: {check.seen}")


def _publish(repro: Repro, final: Path) -> Repro:
    if final.exists():
        shutil.rmtree(final)
    os.rename(repro.folder, final)
    return replace(repro, folder=final)


def _kernel(request: Request) -> _Kernel:
    cell = request.result.cell
    if request.reduced is not None:
        made, original = request.reduced, get(request.reduced.case.kernel, request.base)
        launch = launching.of_reduced(made, original)
        size = f"{made.original_statements} statements became {made.statements}"
        origin = f"{describe(replace(cell, case=made.original_case))}; {size}"
        convention = made.calling_convention
        return _Kernel(made.text, made.function, made.parameters, made.hints, launch, origin, convention)
    kernel = get(cell.case.kernel, request.base)
    trace = request.result.trace
    level = cell.case.hints.opt_level
    if level is None and trace is not None:
        level = trace.opt_level
    return _Kernel(
        kernel.path.read_text(encoding="utf-8"),
        kernel.function,
        kernel.specialise(cell.case).parameters,
        replace(cell.case.hints, opt_level=level),
        launching.of_case(kernel, cell.case),
        describe(cell),
        cell.case.calling_convention,
        cell.case.run.reference if cell.case.run is not None else kernel.formulas,
    )


def _case(original: Case, kernel: _Kernel, symptom: Symptom) -> Case:
    """The case as one of a reader's own kernel, which lies in repro.py."""
    knobs = tuple(pair for pair in original.knobs if pair[0] == "allow_tma" and pair[1] is False)
    knobs = knobs if symptom is Symptom.TMA else ()
    arrays = [p.dtype for p in kernel.parameters if isinstance(p, Array)]
    dtype = arrays[0] if arrays else ""
    name = f"{SCRIPT_FILE}:{kernel.function}"
    run = kernel.launch.settings(kernel.parameters)
    if run is not None and symptom is Symptom.DEVICE:
        run = replace(run, reference=kernel.reference)
    return Case(
        name,
        (),
        dtype,
        kernel.hints,
        knobs,
        parameters=kernel.parameters,
        run=run,
        calling_convention=kernel.calling_convention,
    )


def _draft(folder: Path, request: Request, known: str, symptom: Symptom) -> Repro:
    result = request.result
    remark = remark_of(result, request.oracle)
    # What was reduced shows the same fault in words of its own.
    told = request.reduced.summary if request.reduced is not None else result.judgement.summary
    summary = remark.text if remark is not None else told
    if symptom is Symptom.SLOW and result.compile is not None:
        summary = _cpu_words(result.compile)
    if remark is not None:
        summary = f"{summary[:1].upper()}{summary[1:]}."
    summary = _LOCATION.sub("", summary)
    bisected = json.loads(request.bisect).get("component") if request.bisect is not None else None
    component = bisected or result.judgement.component or ("tileiras" if remark is not None else "")
    # Where the identity is more than the signature, the oracle has to spell the latter.
    own = str(request.oracle) == f"signature={known}"
    return Repro(
        folder=folder,
        kind=Kind.CELL,
        title=request.title or _title(result, symptom, summary),
        status=Status.OPEN,
        link=request.link,
        summary=" ".join(summary.split()),
        expected=EXPECTED[symptom],
        identity=known,
        oracle="signature" if own else str(request.oracle),
        verdict=str(result.verdict),
        component=component,
        origin="",
        observed=_observed(result) if symptom is Symptom.DEVICE else "",
        deadline=request.deadline,
        bytecode_version=None,
        case=None,
        places=(),
    )


def _title(result: CellResult, symptom: Symptom, summary: str) -> str:
    """The summary's first clause, or if that is long, the kernel, what it shows, and with which settings."""
    first = re.split(r"[.;] ", summary)[0].rstrip(".")
    if len(first) <= _LONGEST_TITLE:
        return first
    case = result.cell.case
    kernel = re.split(r"[.:]", case.kernel)[-1]
    hints = [f"{name}={value}" for name, value in case.hints.to_json().items() if value is not None]
    told = f" with {', '.join(hints)}" if hints else ""
    return f"{kernel}{told}: {PHRASES[symptom]}"


def _observed(result: CellResult) -> str:
    """On which GPU a verdict was given."""
    seen = result.observation or {}
    gpu = seen.get("gpu") or {}
    where = f"{gpu.get('name', 'a GPU')}, driver {gpu.get('driver', 'unknown')}"
    again = ", and again in a fresh process" if result.judgement.evidence.get("confirmed") else ""
    return f"Seen on {where}{again}."


def _cpu_words(compile: CompileOutcome) -> str:
    """How long a compile took, and which process took it."""
    shares = sorted(compile.usage, key=lambda usage: -usage.cpu_seconds)
    listed = ", ".join(f"{usage.name} {usage.cpu_seconds:.1f} s" for usage in shares)
    return f"Compiling takes {compile.cpu_seconds:.1f} s of CPU" + (f" ({listed})." if listed else ".")


def _content(
    request: Request, repro: Repro, kernel: _Kernel, symptom: Symptom, bound: float | None
) -> Content:
    cell = request.result.cell
    chain = cell.toolchain
    trace = request.result.trace
    backend = f"'cuda-toolkit[nvcc,nvvm,tileiras]=={chain.cuda_toolkit}'"
    return Content(
        title=repro.title,
        summary=repro.summary,
        text=kernel.text,
        function=kernel.function,
        parameters=kernel.parameters,
        hints=kernel.hints,
        launch=kernel.launch,
        symptom=symptom,
        arch=cell.arch,
        bad=f"    pip install cuda-tile=={chain.cuda_tile} {backend}",
        deadline=request.deadline,
        bound=bound,
        error_type=trace.error_type if trace is not None else None,
        calling_convention=kernel.calling_convention,
        reference=kernel.reference,
        fault=request.result.verdict is Verdict.DEVICE_FAULT,
    )
