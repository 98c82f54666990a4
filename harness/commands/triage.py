"""`harness triage`: from a file in a bug report to where it fails, how, and what decides."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from harness.lab import Deadlines, Lab
from harness.report.files import write_atomically
from harness.triage.extract import extract, stands_alone
from harness.triage.findings import findings
from harness.triage.look import Seen, TriageError, look
from harness.triage.show import as_json, commands, handed_over, matrix_text, render
from harness.triage.signatures import signatures
from harness.triage.sweep import OLDEST_FRONTEND, Asked, Scope, Sweep, newest_of_each

_SIGN_OF_LIFE_SECONDS = 10.0


@dataclass(frozen=True)
class Options:
    """How to triage. `budget`, `deadline` and `patience` are in seconds; empty lists mean the usual."""

    out: Path
    parameters: str = ""
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
    """Triage the kernels of a file; 0 if nothing fails, 1 if something does, 2 for a file that
    cannot be used."""
    try:
        return _triage(path, options)
    except TriageError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(str(error), style="red", markup=False)
        return 2


def _triage(path: Path, options: Options) -> int:
    console = Console(stderr=options.as_json, highlight=False, soft_wrap=True)
    begun = time.monotonic()
    with Lab(options.store, offline=options.offline) as lab:
        lab.deadlines = Deadlines(compile=options.deadline, patience=options.patience)
        scope = _scope(lab, options)
        seen = look(path, lab.provisioner.frontend(scope.frontends[-1]), lab.supervisor)
        asking = signatures(seen, options.parameters, options.kernels)
        folder = options.out / "triage" / path.stem
        source = _source(seen, folder)
        _announce(seen, console)

        last = begun

        def progress(asked: Asked) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _SIGN_OF_LIFE_SECONDS:
                last = now
                told = f"  {len(sweep.asked)} settings asked, {now - begun:.0f} s"
                console.print(told, style="dim", markup=False)

        sweep = Sweep(
            lab=lab,
            signatures=asking,
            path=str(source),
            scope=scope,
            ends=begun + options.budget,
            jobs=options.jobs or len(os.sched_getaffinity(0)),
            progress=progress,
        )
        sweep.run()
    asked = list(sweep.asked.values())
    found = findings(asked)
    notes = [*sweep.absent.values(), _closing(sweep, time.monotonic() - begun)]
    render(found, asked, console, notes)
    worst = next((one for one in found if one.worst is not None), None)
    if worst is not None:
        cells = {setting: sweep.cell(setting) for setting in sweep.asked}
        name = source.name if source.parent == folder.absolute() else str(source)
        handed = handed_over(worst, cells, name)
        write_atomically(folder / "matrix.toml", matrix_text(worst.kernel, handed, options.deadline))
        console.print("To go on:", markup=False)
        for command in commands(worst, handed[0], folder):
            console.print(f"  {command}", markup=False)
    if options.as_json:
        print(json.dumps(as_json(found, asked)))
    return 0 if worst is None else 1


def _scope(lab: Lab, options: Options) -> Scope:
    """The newest release of every minor version, unless versions are named."""
    frontends = options.cuda_tile or newest_of_each(lab.provisioner.versions("cuda-tile"), OLDEST_FRONTEND)
    toolkits = options.cuda_toolkit or newest_of_each(lab.provisioner.versions("cuda-toolkit"))
    scope = Scope(tuple(frontends), tuple(toolkits), compile_seconds=options.deadline)
    if options.arch:
        scope = Scope(scope.frontends, scope.toolkits, options.arch, (), options.deadline)
    return scope


def _source(seen: Seen, folder: Path) -> Path:
    """The file itself where a tracer can take it, else its kernels alone, written to `folder`."""
    if stands_alone(seen.text):
        return seen.path
    alone = folder.absolute() / seen.path.name
    write_atomically(alone, extract(seen.text, [kernel.name for kernel in seen.kernels], seen.values))
    return alone


def _announce(seen: Seen, console: Console) -> None:
    names = ", ".join(kernel.name for kernel in seen.kernels)
    console.print(f"{seen.path.name}: {names}", markup=False)
    launches = sum(len(kernel.launches) for kernel in seen.kernels)
    if launches:
        how = "tensors in host memory" if seen.torch == "real" else "a stand-in for torch"
        told = f"parameters are taken from {launches} launches, with {how}"
        console.print(told, style="dim", markup=False)
    if seen.error:
        console.print(f"running it raised {seen.error}", style="dim", markup=False)
    if seen.unnamed:
        text = f"{seen.unnamed} launches are of kernels without a module-level name; bind them to one"
        console.print(text, style="yellow", markup=False)


def _closing(sweep: Sweep, seconds: float) -> str:
    text = f"{len(sweep.asked)} settings in {seconds:.0f} s"
    if sweep.left:
        text += f"; the budget was spent with {sweep.left} more in mind (--budget SECONDS)"
    return text
