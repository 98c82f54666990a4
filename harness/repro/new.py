"""Make a repro: write the script, ask the laboratory what it shows where, and claim no more than that."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from harness.cluster import arch_key
from harness.kernels import get
from harness.lab import Deadlines, Lab, opt_level
from harness.model import (
    Array,
    Case,
    Cell,
    CellResult,
    CompileOutcome,
    Hints,
    Parameter,
    Toolchain,
    TraceOutcome,
    Verdict,
)
from harness.oracle import Answer, Oracle
from harness.plan import describe
from harness.reduce.reduced import Reduced
from harness.report.files import write_atomically
from harness.repro import launching
from harness.repro.laboratory import from_bytecode, question, retraced
from harness.repro.readme import readme_text
from harness.repro.script import Content, script_text
from harness.repro.scrub import Scrubber
from harness.repro.spec import (
    BISECT_FILE,
    NAME,
    PTX_FILE,
    README_FILE,
    SCRIPT_FILE,
    SPEC_FILE,
    Kind,
    Place,
    Repro,
    ReproError,
    Status,
    bytecode_file,
    duplicate,
    identity,
    remark_of,
    write_spec,
)
from harness.repro.symptom import EXPECTED, Symptom, symptom_of
from harness.repro.verify import holds, script_check

MAX_PTX_BYTES = 400_000
_UNFINISHED_SECONDS = 6 * 3600.0
_LOCATION = re.compile(r" \([^()\s]+\.py, line \d+: .*\)$")
"""Where in the original's file an error was; repro.py has other lines."""

_PTX_TELLS = (Symptom.DEADLOCK, Symptom.FAILS, Symptom.DEVICE)


@dataclass(frozen=True)
class Request:
    """What to make: the result that shows the fault, where else to look, and what to call it.

    `base` is the folder that kernels of the reader's own are relative to; `bisect` the text of a
    bisection's result. `toolchains` and `archs` are tried besides the cell's own. `deadline` in seconds.
    `on_device` are results of the same case on the same device, where only a device can tell.
    """

    result: CellResult
    oracle: Oracle
    name: str
    repros: Path
    toolchains: tuple[Toolchain, ...]
    archs: tuple[str, ...]
    title: str | None = None
    link: str = ""
    base: Path | None = None
    reduced: Reduced | None = None
    bisect: str | None = None
    deadline: float = 60.0
    force: bool = False
    on_device: tuple[CellResult, ...] = ()


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
        look = _recorded if symptom is Symptom.DEVICE else _try
        repro = look(lab, request, repro, symptom, note)
        repro = _keep_bytecode(lab, request.oracle, repro, symptom, note)
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
    summary = remark.text if remark is not None else result.judgement.summary
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
        title=request.title or textwrap.shorten(re.split(r"[.;] ", summary)[0], 100, placeholder=" …"),
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


# --- asking ------------------------------------------------------------------------------------


def _try(lab: Lab, request: Request, repro: Repro, symptom: Symptom, note: Callable[[str], None]) -> Repro:
    """The repro with the places where the script's kernel was seen to be bad or good."""
    assert repro.case is not None
    own = request.result.cell
    archs = sorted({*request.archs, own.arch}, key=lambda arch: (arch != own.arch, arch_key(arch)))
    chains = _distinct(lab, own.toolchain, request.toolchains, symptom)
    places: list[Place] = []
    for chain in chains:
        answers: dict[str, Answer] = {}
        for arch in archs:
            result = retraced(lab, repro, Cell(chain, arch, repro.case))
            answers[arch] = request.oracle.answer(result)
            note(f"{chain.name} {arch}: {answers[arch]}, {result.judgement.summary}")
            if chain == own.toolchain and arch == own.arch and answers[arch] is not Answer.BAD:
                raise ReproError(
                    f"the kernel as written for repro.py does not show it on {chain.name} {arch}: "
                    f"{result.judgement.summary}"
                )
        for answer in (Answer.BAD, Answer.GOOD):
            there = tuple(arch for arch, found in answers.items() if found is answer)
            if there:
                places.append(Place(answer is Answer.BAD, chain, (), there))
    return replace(repro, places=_of_interest(places, own.toolchain), status=_status(places))


def _recorded(
    lab: Lab, request: Request, repro: Repro, symptom: Symptom, note: Callable[[str], None]
) -> Repro:
    """The repro with the places where a device was seen to run its machine code, wrong or right."""
    assert repro.case is not None
    own = request.result.cell
    places: list[Place] = []
    for result in request.on_device:
        answer = request.oracle.answer(result)
        code = result.inspection.code_sha256 if result.inspection is not None else None
        if answer is Answer.UNKNOWN or code is None:
            continue
        chain, arch = result.cell.toolchain, result.cell.arch
        place = Place(answer is Answer.BAD, chain, (), (arch,), code)
        again = retraced(lab, repro, Cell(chain, arch, repro.case))
        held, seen = holds(repro, place, again, request.oracle)
        note(f"{chain.name} {arch}: {answer} on the device; the script's kernel {seen}")
        if held:
            places.append(place)
        elif result.cell == own:
            raise ReproError(
                f"the kernel as written for repro.py is another on {chain.name} {arch}: it {seen}"
            )
    return replace(repro, places=_of_interest(places, own.toolchain), status=_status(places))


def _distinct(lab: Lab, own: Toolchain, others: Iterable[Toolchain], symptom: Symptom) -> list[Toolchain]:
    """All that may tell something new, oldest first: toolkits may ship the same files.

    A fault of the frontend is asked of all frontends on one backend, any other of all backends with the
    cell's own frontend and the newest.
    """
    kept: dict[tuple[str, ...], Toolchain] = {}
    newest = max((chain.cuda_tile for chain in (own, *others)), key=Version)
    by_likeness = sorted(
        set(others), key=lambda chain: (chain.cuda_toolkit != own.cuda_toolkit, *_order(chain))
    )
    for chain in [own, *by_likeness]:
        components = tuple(lab.provisioner.component_versions(chain).values())
        if symptom is Symptom.FRONTEND:
            kept.setdefault((chain.cuda_tile,), chain)
        elif chain.cuda_tile in (own.cuda_tile, newest):
            kept.setdefault((chain.cuda_tile, *components), chain)
    return sorted(kept.values(), key=_order)


def _order(chain: Toolchain) -> tuple[Version, Version, str]:
    return Version(chain.cuda_tile), Version(chain.cuda_toolkit), chain.name


def _of_interest(places: Iterable[Place], own: Toolchain) -> tuple[Place, ...]:
    """The cell's own place first, then the bad ones; good ones only for targets where some are bad."""
    every = list(places)
    affected = {target for place in every if place.bad for target in place.targets}
    kept = []
    for place in every:
        targets = tuple(t for t in place.targets if t in affected)
        if targets:
            kept.append(replace(place, targets=targets))
    return tuple(sorted(kept, key=lambda place: (not place.bad, place.toolchain != own)))


def _status(places: Iterable[Place]) -> Status:
    """Fixed if, on every target, something newer than all that is bad is good."""
    every = [(target, place) for place in places for target in place.targets]

    def newest(target: str, bad: bool) -> tuple[Version, Version, str] | None:
        found = (_order(p.toolchain) for t, p in every if t == target and p.bad is bad and p.toolchain)
        return max(found, default=None)

    for target in {target for target, place in every if place.bad}:
        good, bad = newest(target, False), newest(target, True)
        if good is None or (bad is not None and good < bad):
            return Status.OPEN
    return Status.FIXED


def _keep_bytecode(
    lab: Lab, oracle: Oracle, repro: Repro, symptom: Symptom, note: Callable[[str], None]
) -> Repro:
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
