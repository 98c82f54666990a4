"""`harness doctor`: what this machine can and cannot do, and what to do about it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness import __version__
from harness.inspect import Disassembler
from harness.lab import Lab
from harness.toolchain import ProvisionError, StoreError

_NEEDED_BYTES = 2 << 30
"""Disk a store of four toolkits takes at most, with room for cubins."""


@dataclass(frozen=True)
class Check:
    """One line of the report. `ok` None means that something optional is absent."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""


def examine_machine(store: Path | None, as_json: bool) -> int:
    """Print the checks; 3 if anything needed for compiling is missing, else 0."""
    checks = list(_checks(store))
    if as_json:
        print(json.dumps([vars(check) for check in checks], indent=2))
    else:
        _show(checks)
    return 3 if any(check.ok is False for check in checks) else 0


def _show(checks: list[Check]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = {True: "[green]ok[/]", False: "[red]no[/]", None: "[yellow]--[/]"}[check.ok]
        told = check.found + (f"\n{check.remedy}" if check.remedy else "")
        table.add_row(mark, check.name, Text(told, overflow="fold"))
    console = Console(highlight=False)
    console.print(table)
    can = all(check.ok is not False for check in checks)
    gpu = next(check for check in checks if check.name == "GPU").ok
    console.print(
        f"\nThis machine {'can' if can else 'cannot'} compile and inspect, and "
        f"{'can' if gpu else 'cannot'} run kernels."
    )


def _checks(path: Path | None) -> Iterator[Check]:
    yield Check("harness", True, f"{__version__}, Python {platform.python_version()} at {sys.executable}")
    machine, system = platform.machine(), platform.system()
    fits = (system, machine) in {("Linux", "x86_64"), ("Linux", "aarch64")}
    yield Check(
        "platform", fits, f"{system} {machine}, {os.cpu_count()} cores", "" if fits else "needs Linux"
    )
    try:
        lab = Lab(path)
    except StoreError as error:
        yield Check("store", False, str(error))
        return
    with lab:
        free = shutil.disk_usage(lab.store.root).free
        roomy = free > _NEEDED_BYTES
        remedy = "" if roomy else "set HARNESS_STORE to a disk with at least 2 GiB free"
        yield Check("store", roomy, f"{lab.store.root}, {free / 2**30:.0f} GiB free", remedy)
        yield _try(
            "package index", lambda: _newest(lab), "works offline only with what the store holds", None
        )
        yield _try(
            "disassembler", lambda: _nvdisasm(lab.disassembler), "pip install nvidia-cuda-nvdisasm", False
        )
    yield _gpu()
    gdb = shutil.which("cuda-gdb")
    yield Check("cuda-gdb", True if gdb else None, gdb or "absent: a hang is reported without per-warp PCs")


def _try(name: str, look: Callable[[], str], remedy: str, absent: bool | None) -> Check:
    try:
        return Check(name, True, look())
    except (ProvisionError, OSError, RuntimeError) as error:
        return Check(name, absent, str(error), remedy)


def _newest(lab: Lab) -> str:
    tile = lab.provisioner.versions("cuda-tile")
    toolkit = lab.provisioner.versions("cuda-toolkit")
    return f"reachable; newest cuda-tile {tile[-1]}, cuda-toolkit {toolkit[-1]}"


def _nvdisasm(disassembler: Disassembler) -> str:
    return str(disassembler.tool)


def _gpu() -> Check:
    try:
        import pynvml
    except ImportError:
        return Check("GPU", None, "not looked for", "pip install -e '.[gpu]' on a machine with a GPU")
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        name, driver = pynvml.nvmlDeviceGetName(handle), pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError as error:
        return Check("GPU", None, f"no NVIDIA driver on this machine ({error})")
    return Check("GPU", True, f"{name}, driver {driver}")
