"""`harness explain`: the whole story of one cell of an earlier run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from harness.cluster import findings
from harness.command_text import command
from harness.lab import Lab
from harness.model import CellResult
from harness.plan import NoSuchCell, match
from harness.report.explain import SassContext, explain
from harness.store import KERNELS_FOLDER, Store


class NothingToExplain(ValueError):
    """There is no run, or no such cell in it; the text says what to do."""


def explain_cell(pattern: str, out: Path, store: Path | None) -> int:
    """Print the story of the cell that `pattern` means in the newest run below `out`."""
    found = find_result(pattern, out)
    result = found.result
    group = next((f for f in findings(found.results) if result.cell.id in f.cells), None)
    console = Console(highlight=False)
    with Lab(store, offline=True) as lab:
        bytecode = None
        if result.trace is not None and result.trace.bytecode_sha256 is not None:
            path = lab.cache.path(result.trace.bytecode_sha256)
            bytecode = str(path) if path.is_file() else None
        explain(result, _context(lab, result), console, finding=group, bytecode=bytecode)
    if result.verdict.is_finding:
        _go_on(result, out, store)
    return 0


def _go_on(result: CellResult, out: Path, store: Path | None) -> None:
    """What to type next, and whether somebody was here before."""
    from harness.oracle import SameSignature
    from harness.repro.identity import identity, shipped

    say = Console(highlight=False, soft_wrap=True)
    cell, signature = result.cell.id, result.judgement.signature
    known = shipped(identity(result, SameSignature(signature))) if signature is not None else None
    say.print()
    say.print("Go on with", style="bold")
    if known is not None:
        say.print(f"  the lab ships a repro of this: {known.folder} ({known.status})", markup=False)
    say.print(f"  {command('bisect', cell, out=out, store=store)}", markup=False)
    if result.cell.device is None:
        say.print(f"  {command('reduce', cell, out=out, store=store)}", markup=False)
    say.print(f"  {command('repro', 'new', cell, '--name', 'NAME', out=out, store=store)}", markup=False)


@dataclass(frozen=True)
class Found:
    """A result, all results of its run, and the folder that paths of the reader's own kernels start from."""

    result: CellResult
    results: tuple[CellResult, ...]
    base: Path | None


def find_result(pattern: str, out: Path) -> Found:
    """What `pattern` means in the newest run below `out`. Raises NothingToExplain."""
    if not (out / "harness.sqlite").is_file():
        raise NothingToExplain(f"{out} holds no results; run: {command('run', 'matrix.toml', out=out)}")
    with Store.open(out) as results:
        runs = results.runs()
        judged = results.results(runs[0].id) if runs else []
        folder = runs[0].host.get(KERNELS_FOLDER) if runs else None
    if not judged:
        raise NothingToExplain(f"the newest run in {out} judged no cell; run the matrix again")
    try:
        cell = match([r.cell for r in judged], pattern)
    except NoSuchCell as error:
        raise NothingToExplain(str(error)) from None
    result = next(r for r in judged if r.cell.id == cell.id)
    return Found(result, tuple(judged), Path(folder) if folder is not None else None)


def _context(lab: Lab, result: CellResult) -> SassContext | None:
    """Reads machine code around a program counter, as long as the cubin is still in the store."""
    if result.compile is None or result.compile.cubin_sha256 is None:
        return None
    cubin = lab.cache.get(result.compile.cubin_sha256)
    if cubin is None:
        return None
    return lambda pc: lab.disassembler.context(cubin, pc)
