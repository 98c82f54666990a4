"""What a bisection asks of the real laboratory: versions, components, and the judgement of a cell.

A cell of a device is compiled, and then run on a GPU here. Where there is none, results that a GPU host
sent back answer for all toolchains that write the same machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.bisect.run import World
from harness.device_stage import run_on_devices, static_key
from harness.execute import PoolOptions
from harness.kernels import get
from harness.lab import Examination, Lab, Question
from harness.matrix.value import Timeouts
from harness.model import Case, Cell, CellResult, Device, Toolchain
from harness.pipeline import judged
from harness.toolchain import InstallError, NotInStore, UnsupportedFrontend
from harness.toolchain.provisioner import refuse_old_frontend

UNAVAILABLE = (NotInStore, InstallError, UnsupportedFrontend)


def world(
    lab: Lab,
    base: Path | None,
    offline: bool,
    note: Callable[[str], None],
    recorded: Sequence[CellResult] = (),
) -> World:
    """Ask `lab`. `base` is the directory that kernel paths are relative to; offline, only what the
    store holds is considered. `recorded` are results seen on devices before."""
    seen = {_machine_code(r): r for r in recorded if r.cell.device is not None and r.observation is not None}

    def ask(cell: Cell, bytecode_version: str | None) -> CellResult:
        static = compiled(replace(cell, device=None), bytecode_version)
        if cell.device is None or static.inspection is None:
            return replace(static, cell=cell)
        result = replace(static, cell=cell)
        known = seen.get(_machine_code(result))
        if known is None:
            known = seen[_machine_code(result)] = _on_device(lab, result, base)
        return replace(result, judgement=known.judgement, observation=known.observation)

    def compiled(cell: Cell, bytecode_version: str | None) -> CellResult:
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


def _machine_code(result: CellResult) -> tuple[Case, Device | None, str | None]:
    """What decides how a case ends on a device: two compilers may well write the same code, and where the
    kernel's file lies and which bytecode the code came from does not matter."""
    code = result.inspection.code_sha256 if result.inspection is not None else None
    case = result.cell.case
    plain = replace(case, kernel=case.kernel.rpartition("/")[2], bytecode_version=None)
    return plain, result.cell.device, code


def _on_device(lab: Lab, compiled: CellResult, base: Path | None) -> CellResult:
    """Run a compiled cell here, or be told why it cannot be run here."""
    found: list[CellResult] = []
    run_on_devices(
        lab.supervisor,
        [compiled.cell],
        {static_key(compiled.cell): compiled},
        lab.cache.intact,
        found.append,
        timeouts=Timeouts(),
        options=PoolOptions(),
        base=base,
        disassembler=lab.disassembler,
    )
    return found[0]


def _locked(lab: Lab, package: str) -> set[str]:
    """Versions of a package that this store ever resolved."""
    pins = (pin for lock in lab.provisioner.lock_report().values() for pin in lock["packages"])
    return {pin["version"] for pin in pins if pin["package"] == package}
