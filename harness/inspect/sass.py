"""Disassembly: nvdisasm on a bare code section, remembered by what went in.

nvdisasm costs 0.3 to 0.8 s, more than many compiles, so `words.py` decides first whether it is needed. It is
given the code alone (`--binary`), not the cubin: cubins of several cuda-tile versions often carry the same
code, and every branch target comes out as a number.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ..process import StartError, Supervisor
from .cubin import Cubin, read_cubin
from .lines import line_at
from .words import BYTES_PER_INSTRUCTION

_PACKAGE = "nvidia-cuda-nvdisasm"
_DEADLINE_SECONDS = 120.0
_MAX_OUTPUT = 1 << 28


class DisassemblyError(Exception):
    """nvdisasm is missing or failed; the text says which and what to do."""


class Undecodable(DisassemblyError):
    """nvdisasm ran, and refused the code: it met an instruction that it does not know."""


class Memo(Protocol):
    """The part of the compile cache that is used here: plain values, remembered by kind and key."""

    def recall(self, kind: str, key: str) -> dict[str, Any] | None: ...

    def remember(self, kind: str, key: str, value: dict[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Instruction:
    """One SASS instruction at byte `pc`. `predicate` is "", "@P0" or "@!UP1"; operands are as spelt."""

    pc: int
    predicate: str
    opcode: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.opcode} {', '.join(self.operands)}".rstrip()
        return f"{self.predicate} {text}".lstrip()


class Disassembler:
    """Runs nvdisasm under the supervisor's eye. `nvdisasm` overrides the installed one."""

    def __init__(self, supervisor: Supervisor, cache: Memo, nvdisasm: str | Path | None = None) -> None:
        self.cache = cache
        self._supervisor = supervisor
        self._given = None if nvdisasm is None else Path(nvdisasm)
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    @cached_property
    def tool(self) -> Path:
        """The nvdisasm that will run. Raises `DisassemblyError` where there is none."""
        path = self._given or _packaged() or _on_path()
        if path is None or not path.is_file():
            raise DisassemblyError(
                f"no nvdisasm at {path}; name another, or leave it out to use the package {_PACKAGE}"
                if self._given
                else f"no nvdisasm here; install the package {_PACKAGE} or put nvdisasm on PATH"
            )
        return self._runnable(path)

    @cached_property
    def identity(self) -> str:
        """Changes with the tool, so that what an older one said is not remembered for a newer one."""
        return hashlib.sha256(self.tool.read_bytes()).hexdigest()[:16]

    def listing(self, cubin: Cubin) -> tuple[Instruction, ...]:
        """The kernel's whole code section, in order. Raises `DisassemblyError`."""
        key = f"{cubin.code_sha256} sm_{cubin.arch} {self.identity}"
        known = self.cache.recall("sass", key)
        if known is not None:
            try:
                return _listed(known["instructions"])
            except (LookupError, TypeError, ValueError, AttributeError):
                pass  # what this version cannot read is made again
        found = self._disassemble(cubin)
        self.cache.remember("sass", key, {"instructions": found})
        return _listed(found)

    def context(
        self,
        data: bytes,
        pc: int,
        before: int = 6,
        after: int = 4,
        symbol: str | None = None,
        source_names: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """Instructions around `pc` for a report, that one marked, under the source lines they come from."""
        cubin = read_cubin(data, symbol)
        listing = self.listing(cubin)
        middle = pc // BYTES_PER_INSTRUCTION
        table = cubin.source_lines()
        lines, last = [], None
        for instruction in listing[max(0, middle - before) : middle + after + 1]:
            source = line_at(table, instruction.pc, source_names or {})
            if source is not None and source != last:
                lines.append(f"  {source}")
            last = source
            mark = ">" if instruction.pc == pc else " "
            lines.append(f"{mark} {instruction.pc:#07x}  {instruction}")
        return tuple(lines)

    def _disassemble(self, cubin: Cubin) -> list[tuple[str, str, str]]:
        with self._supervisor.scratch("sass-") as scratch:
            code = scratch / "code.bin"
            code.write_bytes(cubin.code)
            argv: Sequence[str | Path] = (self.tool, "-json", "--binary", _binary_name(cubin.arch), code)
            try:
                done = self._supervisor.run(argv, deadline=_DEADLINE_SECONDS, max_output=_MAX_OUTPUT)
            except StartError as error:
                raise DisassemblyError(f"{self.tool} could not be started: {error}") from error
        if not done.ok:
            how = (
                f"took longer than {_DEADLINE_SECONDS:.0f} s"
                if done.timed_out
                else f"ended in {done.exit_code}"
            )
            words = done.stderr.strip().splitlines()
            refused = not done.timed_out and done.exit_code is not None
            errors = [line for line in words if "error" in line] or words[-1:]
            raise (Undecodable if refused else DisassemblyError)(
                f"nvdisasm {how} on the code of sm_{cubin.arch}: {errors[0] if errors else 'it said nothing'}"
            )
        return _parsed(done.stdout, len(cubin.code) // BYTES_PER_INSTRUCTION)

    def _runnable(self, path: Path) -> Path:
        """Installers may drop the executable bit, and the place may be read-only: then a copy runs."""
        if os.access(path, os.X_OK):
            return path
        with contextlib.suppress(OSError):
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            return path
        self._copy = tempfile.TemporaryDirectory(prefix="tile-harness-nvdisasm-")
        copy = Path(self._copy.name) / path.name
        shutil.copyfile(path, copy)
        copy.chmod(0o700)
        return copy


def _listed(found: Sequence[Sequence[str]]) -> tuple[Instruction, ...]:
    return tuple(
        Instruction(
            index * BYTES_PER_INSTRUCTION,
            predicate,
            opcode,
            tuple(operands.split(",")) if operands else (),
        )
        for index, (predicate, opcode, operands) in enumerate(found)
    )


def _packaged() -> Path | None:
    try:
        files = importlib.metadata.files(_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.name == "nvdisasm")
    return next((path for path in found if path.is_file()), None)


def _on_path() -> Path | None:
    found = shutil.which("nvdisasm")
    return None if found is None else Path(found)


def _binary_name(arch: int) -> str:
    """From sm_90 on, code is made for the architecture-specific variant, which knows more instructions."""
    return f"SM{arch}a" if arch >= 90 else f"SM{arch}"


def _parsed(text: str, expected: int) -> list[tuple[str, str, str]]:
    try:
        functions = json.loads(text)[1]
        found = [
            (entry.get("predicate", ""), entry["opcode"], entry.get("operands", ""))
            for function in functions
            for entry in function["sass-instructions"]
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise DisassemblyError(f"nvdisasm wrote something other than its JSON: {error}") from error
    if len(found) != expected:
        raise DisassemblyError(f"nvdisasm listed {len(found)} instructions where the code has {expected}")
    return found
