"""What to go on with after a triage: a matrix of what was found, and the commands that take it from there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.command_text import command
from harness.kernels.arrays import ITEMSIZE, contiguous
from harness.matrix.explain import toml
from harness.matrix.write import case_table
from harness.model import (
    Array,
    Case,
    Cell,
    Constant,
    Parameter,
    RunArgument,
    RunSettings,
    ScalarParameter,
    Toolchain,
)
from harness.triage.asked import Setting
from harness.triage.findings import KernelFinding
from harness.triage.look import FoundLaunch
from harness.triage.signatures import Signature
from harness.triage.usage import Usage
from harness.triage.variants import AXES as CHANGES
from harness.triage.variants import HINT_AXES

_GPUS = {
    "sm_80": "A100",
    "sm_86": "A10",
    "sm_89": "L40",
    "sm_90": "H200",
    "sm_100": "B200",
    "sm_103": "B300",
    "sm_120": "RTX",
    "sm_121": "GB10",
}
"""A GPU of each architecture, as part of the name that nvidia-smi prints."""

_ALIGNMENT = 256
"""Bytes that a run aligns every array to."""

_KEPT = ("", *HINT_AXES, "flag", "dtype")
"""Changes to the parameters that leave arrays lying as they were launched."""


def handed_over(
    found: KernelFinding, cells: Mapping[Setting, Cell], file: str, run: RunSettings | None = None
) -> list[Cell]:
    """The newest failure and, behind it, its nearest control and the nearest release that does not fail, as
    cells of the matrix that is written.

    `file` is the kernel's file as that matrix names it; `run` how the kernel was launched.
    """
    assert found.worst is not None
    kept = [one for one in (found.worst, found.control, found.other_release) if one is not None]
    return [
        renamed(cells[asked.setting], file, run if asked.setting.variant[0] in _KEPT else None)
        for asked in kept
    ]


def renamed(cell: Cell, file: str, run: RunSettings | None) -> Cell:
    """The cell with the kernel's file named otherwise, and how to launch it."""
    name = f"{file}:{cell.case.kernel.rpartition(':')[2]}"
    return replace(cell, case=replace(cell.case, kernel=name, run=run))


def launch_settings(signature: Signature, used: Mapping[str, Usage]) -> RunSettings | None:
    """The recorded launch as a matrix tells it; None without one, or where arrays lie as no matrix can tell.

    `used` says what the kernel's text does with its parameters, and so what their roles are.
    """
    launch = signature.launch
    if launch is None or not 1 <= len(launch.grid) <= 3:
        return None
    arguments = []
    for parameter, said in zip(signature.parameters, launch.arguments, strict=True):
        argument = _argument(parameter, said, used.get(parameter.name, Usage()))
        if argument is not None:
            arguments.append(argument)
        elif not isinstance(parameter, Constant):
            return None
    return RunSettings(_grid(launch), tuple(arguments))


def _grid(launch: FoundLaunch) -> tuple[int, int, int]:
    x, y, z = (*launch.grid, 1, 1)[:3]
    return x, y, z


def _argument(parameter: Parameter, said: Mapping[str, object], used: Usage) -> RunArgument | None:
    match parameter:
        case Array():
            shape = tuple(map(int, said["shape"]))  # type: ignore[call-overload]
            lies = zip(shape, said["strides"], contiguous(shape), strict=True)  # type: ignore[call-overload]
            dense = all(size == 1 or stride == usual for size, stride, usual in lies)
            offset = int(said["offset"]) * ITEMSIZE[parameter.dtype]  # type: ignore[call-overload]
            if not dense or offset % _ALIGNMENT or 0 in shape:
                return None
            return RunArgument(parameter.name, shape, used.role)
        case ScalarParameter():
            return RunArgument(parameter.name, value=said["value"])  # type: ignore[arg-type]
    return None


def matrix_text(title: str, cells: Sequence[Cell], compile_seconds: float, *, on_device: bool = False) -> str:
    """A matrix of these cells; `on_device` also names GPUs to run them on."""
    lines = [f"# {title}, as triage found it:   python -m harness run matrix.toml", ""]
    for chain in dict.fromkeys(cell.toolchain for cell in cells):
        lines += [*_toolchain(chain), ""]
    archs = list(dict.fromkeys(cell.arch for cell in cells))
    lines += ["[target]", f"arch = {toml(archs)}", ""]
    for arch in archs if on_device else ():
        gpu = _GPUS.get(arch, arch)
        name = re.sub(r"[^a-z0-9]+", "-", gpu.lower())
        lines += ["[[device]]", f"name = {toml(name)}"]
        lines += [
            f"gpu = {toml(gpu)}   # part of the name that nvidia-smi prints",
            f"arch = {toml(arch)}",
            "",
        ]
    for case in {cell.case.digest: cell.case for cell in cells}.values():
        lines += ["[[case]]", *_keys(case), ""]
    lines += ["[timeouts]", f"compile = {toml(compile_seconds)}", ""]
    return "\n".join(lines)


def _keys(case: Case) -> list[str]:
    """A parameter a line, for readers who go on from here."""
    table = case_table(case)
    parameters = [f"    {toml(told)}," for told in table.pop("parameters", [])]
    return [*(f"{key} = {toml(value)}" for key, value in table.items()), "parameters = [", *parameters, "]"]


def _toolchain(chain: Toolchain) -> list[str]:
    return [
        "[[toolchain]]",
        f"cuda_tile = {toml(chain.cuda_tile)}",
        f"cuda_toolkit = {toml(chain.cuda_toolkit)}",
    ]


def commands(found: KernelFinding, cell: Cell, folder: Path, store: Path | None = None) -> list[str]:
    """What to run next: look again, bisect, reduce, and make a report that stands alone. From anywhere."""
    matrix, results = str(folder.absolute() / "matrix.toml"), str(folder.absolute() / "results")
    places = [d.axis for d in found.decisions if d.axis not in CHANGES]
    over = ["--over", "cuda-tile"] if places == ["frontend"] else []
    name = re.sub(r"[^a-z0-9]+", "-", f"{folder.name}-{cell.case.kernel.rpartition(':')[2]}".lower()).strip(
        "-"
    )
    common = ["--matrix", matrix, "--out", results]
    reduced = str(Path(results) / "reduce" / cell.id)
    words = [
        ["run", matrix, "--out", results],
        ["bisect", cell.id, *over, *common],
        ["reduce", cell.id, *common],
        ["repro", "new", cell.id, *common, "--reduced", reduced, "--name", name],
    ]
    return [command(*line, store=store and store.absolute()) for line in words]


def run_command(folder: Path, store: Path | None = None) -> str:
    """How to run the matrix, from anywhere."""
    place = folder.absolute()
    return command("run", place / "matrix.toml", out=place / "results", store=store and store.absolute())
