"""`harness triage`: from a file in a bug report to where it fails, how, and what decides."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version
from rich.console import Console

from harness.lab import Deadlines, Lab
from harness.matrix.problems import listing, suggestion
from harness.matrix.words import ARCHS
from harness.model import Cell, RunSettings
from harness.report.files import write_atomically
from harness.triage.asked import Asked, Setting
from harness.triage.data import as_json
from harness.triage.findings import KernelFinding, findings
from harness.triage.gaps import exit_code, gaps, stop
from harness.triage.look import Seen, TriageError, look
from harness.triage.next_steps import (
    commands,
    handed_over,
    launch_settings,
    matrix_text,
    renamed,
    run_command,
)
from harness.triage.show import render
from harness.triage.signatures import Signature, signatures
from harness.triage.sources import with_sources
from harness.triage.sweep import OLDEST_FRONTEND, Scope, Sweep, newest_of_each
from harness.triage.usage import usages

_SIGN_OF_LIFE_SECONDS = 10.0
_LOG_WIDTH = 160
"""Columns of a table where no terminal says how wide it is."""

_USUAL_DEVICE = "sm_90"
"""The architecture to run on where the kernel compiles for it."""


@dataclass(frozen=True)
class Options:
    """How to triage. `arguments` are those of the file itself; `budget`, `deadline` and `patience` are in
    seconds; empty lists mean the usual."""

    out: Path
    parameters: str = ""
    arguments: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    cuda_tile: tuple[str, ...] = ()
    cuda_toolkit: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    budget: float = 150.0
    deadline: float = 15.0
    patience: float = 0.0
    store: Path | None = None
    jobs: int | None = None
    offline: bool = False
    as_json: bool = False


def triage_file(path: Path, options: Options) -> int:
    """Triage the kernels of a file: 0 if all of it was asked about and nothing was found, 1 if something was,
    2 if something could not be asked."""
    try:
        return _triage(path, options)
    except TriageError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(str(error), style="red", markup=False)
        return 2


def _triage(path: Path, options: Options) -> int:
    console = Console(stderr=options.as_json, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _LOG_WIDTH
    begun = time.monotonic()
    folder = options.out / "triage" / path.stem
    with Lab(options.store, offline=options.offline) as lab:
        lab.deadlines = Deadlines(compile=options.deadline, patience=options.patience)
        scope = _scope(lab, options)
        frontend = lab.provisioner.frontend(scope.frontends[-1])
        seen = look(path, frontend, lab.supervisor, arguments=options.arguments)
        chosen = signatures(seen, options.parameters, options.kernels)
        _announce(seen, chosen, console)
        asking, problems = with_sources(seen, chosen, folder)
        for problem in problems:
            console.print(problem, style="yellow", markup=False)
        sweep = Sweep(
            lab=lab,
            signatures=asking,
            scope=scope,
            ends=begun + options.budget,
            jobs=options.jobs or len(os.sched_getaffinity(0)),
            progress=_signs_of_life(console, begun),
        )
        sweep.run()
    asked = list(sweep.asked.values())
    if not asked:
        reasons = "; ".join(sweep.absent.values()) or "the budget was spent before the first answer"
        raise TriageError(f"nothing could be asked: {reasons}")
    found = findings(asked, [signature.label for signature in asking], sweep.unasked)
    missed = gaps(seen, [signature.label for signature in chosen], found)
    notes = [*sweep.absent.values(), *missed, _closing(sweep, time.monotonic() - begun)]
    render(found, asked, console, notes)
    for line in _going_on(found, sweep, seen, folder, options):
        console.print(line, markup=False)
    if options.as_json:
        print(json.dumps(as_json(found, asked, missed)))
    return exit_code(found, missed)


def _signs_of_life(console: Console, begun: float) -> Callable[[Asked], None]:
    """A line now and then while the compilers are being asked."""
    last, count = begun, 0

    def progress(asked: Asked) -> None:
        nonlocal last, count
        now = time.monotonic()
        count += 1
        if now - last >= _SIGN_OF_LIFE_SECONDS:
            last = now
            console.print(f"  {count} settings asked, {now - begun:.0f} s", style="dim", markup=False)

    return progress


def _scope(lab: Lab, options: Options) -> Scope:
    """The newest release of every minor version, unless versions are named. Raises TriageError for an
    architecture, UnknownVersion for a version that there is not."""
    provisioner = lab.provisioner
    frontends = [provisioner.choose("cuda-tile", wanted) for wanted in options.cuda_tile]
    toolkits = [provisioner.choose("cuda-toolkit", wanted) for wanted in options.cuda_toolkit]
    for arch in options.arch:
        if arch not in ARCHS:
            raise TriageError(f"--arch: there is no architecture {arch!r}; {suggestion(arch, ARCHS)}")
    scope = Scope(
        tuple(frontends) or newest_of_each(provisioner.versions("cuda-tile"), OLDEST_FRONTEND),
        tuple(toolkits) or newest_of_each(provisioner.versions("cuda-toolkit")),
        compile_seconds=options.deadline,
    )
    return replace(scope, archs=options.arch, further_archs=()) if options.arch else scope


def _announce(seen: Seen, asking: Sequence[Signature], console: Console) -> None:
    names = ", ".join(dict.fromkeys(signature.kernel.name for signature in asking))
    console.print(f"{seen.path.name}: {names}", markup=False)
    taken = [signature for signature in asking if signature.known_by == "launch"]
    launches = sum(len(kernel.launches) for kernel in {id(s.kernel): s.kernel for s in taken}.values())
    if launches:
        how = "tensors in host memory" if seen.torch == "real" else "stand-ins for what is not installed"
        many = "1 launch" if launches == 1 else f"{launches} launches"
        console.print(f"parameters are taken from {many}, with {how}", style="dim", markup=False)
    if seen.stopped:
        console.print(stop(seen), style="yellow", markup=False)
    for search in seen.searches if launches else ():
        told = (
            f"line {search.line}: {search.asked} of {search.size} configurations of a search are asked about"
        )
        console.print(told, style="dim", markup=False)
    if seen.ended:
        console.print(seen.cut_short, style="yellow", markup=False)
    if seen.error:
        told = f"running it raised {seen.error}"
        if launches:
            told = f"launches after this are not known, for results are not computed here: {seen.error}"
        console.print(told, style="dim", markup=False)


# --- going on ---------------------------------------------------------------------------------


def _going_on(
    found: Sequence[KernelFinding], sweep: Sweep, seen: Seen, folder: Path, options: Options
) -> Iterator[str]:
    """Writes a matrix of what was found, and tells the commands that take it from there."""
    by_label = {signature.label: signature for signature in sweep.signatures}
    worst = next((one for one in found if one.worst is not None), None)
    if worst is not None and worst.worst is not None:
        signature = by_label[worst.kernel]
        cells = {setting: sweep.cell(setting) for setting in sweep.asked}
        handed = handed_over(worst, cells, _relative(signature, folder), _run(seen, signature))
        write_atomically(folder / "matrix.toml", matrix_text(worst.kernel, handed, options.deadline))
        yield "To go on:"
        yield from (f"  {command}" for command in commands(worst, handed[0], folder, options.store))
        return
    good: list[Cell] = []
    plain: list[Cell] = []
    left: list[str] = []
    for one in found:
        signature = by_label[one.kernel]
        run = _run(seen, signature)
        mine = [asked for asked in sweep.asked.values() if asked.setting.kernel == one.kernel]
        settings = [asked.setting for asked in mine if asked.result.verdict.is_good]
        if not settings:
            continue
        best = max(settings, key=_to_run)
        cell = renamed(sweep.cell(best), _relative(signature, folder), run)
        (plain if run is None else good).append(cell)
        if run is None and signature.launch is not None:
            left.append(signature.label)
    if left:
        several = listing(left, limit=4)
        why = "its arrays are not contiguous, or lie in a list"
        yield f"No matrix can launch {several}: {why}. Run the script itself on a GPU."
    if plain and not good and not left:
        write_atomically(folder / "matrix.toml", matrix_text(seen.path.name, plain, options.deadline))
        matrix = folder.absolute() / "matrix.toml"
        wanted = "a [[device]], a grid, and shapes and roles of the arrays (docs/kernels.md)"
        yield f"To run it on a GPU, add to {matrix} {wanted}, and then:"
        yield f"  {run_command(folder, options.store)}"
    if good:
        text = matrix_text(seen.path.name, good, options.deadline, on_device=True)
        write_atomically(folder / "matrix.toml", text)
        yield (
            "To run it on a GPU, with the shapes and the grid of its launch (a reference in the matrix tells "
            "right from wrong, see docs/kernels.md):"
        )
        yield f"  {run_command(folder, options.store)}"


def _to_run(setting: Setting) -> tuple[bool, bool, Version, Version]:
    """What to run first: as reported, where a GPU is likeliest, of the newest versions."""
    plain = setting.level is None and not setting.variant[0]
    return plain, setting.arch == _USUAL_DEVICE, Version(setting.cuda_tile), Version(setting.cuda_toolkit)


def _run(seen: Seen, signature: Signature) -> RunSettings | None:
    kernel = signature.kernel
    module = seen.modules.get(kernel.module or "")
    used = usages(module.text, kernel.function, kernel.line) if module is not None else {}
    return launch_settings(signature, used)


def _relative(signature: Signature, folder: Path) -> str:
    """The kernel's file as the matrix in `folder` names it."""
    file = Path(signature.source.rpartition(":")[0])
    inside = file.is_relative_to(folder.absolute())
    return str(file.relative_to(folder.absolute()) if inside else file)


def _closing(sweep: Sweep, seconds: float) -> str:
    text = f"{len(sweep.asked)} settings in {seconds:.0f} s"
    if sweep.unasked:
        text += f"; the budget was spent with {len(sweep.unasked)} more in mind (--budget SECONDS)"
    return text
