"""What a bisection asks of the real laboratory: versions, components, and the judgement of a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from harness.bisect.run import World
from harness.kernels import get
from harness.lab import Examination, Lab, Question
from harness.model import Cell, CellResult, Toolchain
from harness.pipeline import judged
from harness.toolchain import InstallError, NotInStore, UnsupportedFrontend
from harness.toolchain.provisioner import refuse_old_frontend

UNAVAILABLE = (NotInStore, InstallError, UnsupportedFrontend)


def world(lab: Lab, base: Path | None, offline: bool, note: Callable[[str], None]) -> World:
    """Ask `lab`. `base` is the directory that kernel paths are relative to; offline, only what the
    store holds is considered."""

    def ask(cell: Cell, bytecode_version: str | None) -> CellResult:
        specialization = get(cell.case.kernel, base).specialise(cell.case)
        if bytecode_version is not None:
            specialization = replace(specialization, bytecode_version=bytecode_version)
        question = Question(cell.toolchain, cell.arch, specialization)
        try:
            components = lab.provisioner.backend(cell.toolchain).components
            return judged(cell, lab.examine(question), components)
        except (NotInStore, InstallError) as absent:
            return judged(cell, Examination(), {}, infra=str(absent))

    def components_of(toolchain: Toolchain) -> dict[str, str]:
        refuse_old_frontend(toolchain.cuda_tile)
        if offline:
            lab.provisioner.frontend(toolchain.cuda_tile)
            return lab.provisioner.backend(toolchain).components
        return lab.provisioner.component_versions(toolchain)

    def versions(over: str) -> Iterable[str]:
        try:
            return lab.provisioner.versions(over)
        except NotInStore:
            if not offline:
                note(f"the list of {over} versions cannot be asked for; taking those this store has")
            return _locked(lab, over)

    return World(ask, versions, components_of, UNAVAILABLE)


def _locked(lab: Lab, package: str) -> set[str]:
    """Versions of a package that this store ever resolved."""
    pins = (pin for lock in lab.provisioner.lock_report().values() for pin in lock["packages"])
    return {pin["version"] for pin in pins if pin["package"] == package}
