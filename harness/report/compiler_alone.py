"""Commands that compile a cell's bytecode again with the packages of its backend: no harness, no GPU."""

from __future__ import annotations

import shlex

from harness.matrix.words import COMPONENTS
from harness.model import CellResult, Verdict
from harness.report.jsonl import row

_TREE = "backend/nvidia/cu13"
_DISASSEMBLER = "nvidia-cuda-nvdisasm"


def compiler_alone(result: CellResult, bytecode: str | None = None) -> tuple[str, ...]:
    """Lines for a shell, in order: install, compile, disassemble. None where there is nothing to compile.

    `bytecode` is where the bytecode lies; by default a file named by its SHA-256 beside the backend.
    """
    trace, components = result.trace, row(result)["components"]
    sha256 = trace.bytecode_sha256 if trace is not None else None
    if trace is None or sha256 is None or components["tileiras"] is None:
        return ()
    if result.verdict in (Verdict.SKIPPED, Verdict.NOT_RUN):
        return ()
    asked, decorated = result.cell.case.hints.opt_level, trace.opt_level
    level = next((value for value in (asked, decorated) if value is not None), 3)
    pins = [f"{COMPONENTS[name]}=={version}" for name, version in components.items() if version]
    commands = [["python", "-m", "pip", "install", "--target", "backend", *pins, _DISASSEMBLER]]
    if components["tileiras"].startswith("13.1."):
        # This one looks for libnvvm where no package puts it.
        commands.append(["mkdir", "-p", f"{_TREE}/nvvm/lib64"])
        commands.append(["ln", f"{_TREE}/lib/libnvvm.so.4", f"{_TREE}/nvvm/lib64/libnvvm.so"])
    source = bytecode or f"{sha256}.bc"
    tileiras = [f"{_TREE}/bin/tileiras", source, "-o", "kernel.cubin", "--gpu-name", result.cell.arch]
    commands.append([*tileiras, f"-O{level}", "--lineinfo"])
    commands.append([f"{_TREE}/bin/nvdisasm", "-g", "-c", "kernel.cubin"])
    return tuple(map(shlex.join, commands))
