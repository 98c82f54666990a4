"""`harness reduce`: from a finding to the smallest kernel and configuration that show it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from harness.command_text import command
from harness.commands.explain import NothingToExplain, find_result
from harness.lab import Lab
from harness.matrix import Matrix, load_matrix
from harness.model import Cell, CellResult, Toolchain
from harness.oracle import OracleError, parse_oracle
from harness.plan import NoSuchCell, describe, match, plan
from harness.reduce.engine import End
from harness.reduce.known_good import nearest_good
from harness.reduce.reduced import MATRIX_FILE, Reduced, given_hints, write
from harness.reduce.reduction import Progress, ReduceError, Request, reduce_cell
from harness.store import FILE_NAME

DEFAULT_DEADLINE = 60.0
"""Seconds for the original's compile where neither results nor matrix say."""

_HEARTBEAT_SECONDS = 15.0


@dataclass(frozen=True)
class Options:
    """How to reduce. `matrix` is where to pick the cell from instead of from the results in `out`.

    `to` is the directory of the result (default: `out`/reduce/<cell>). `good` is the name of a toolchain
    of that run or matrix, or a cuda-toolkit version; None means the nearest known to be good, and
    `no_good` none at all. `budget` is in seconds.
    """

    out: Path
    to: Path | None = None
    store: Path | None = None
    matrix: Path | None = None
    budget: float | None = None
    oracle: str = ""
    good: str | None = None
    no_good: bool = False
    jobs: int | None = None
    offline: bool = False
    as_json: bool = False


def reduce_command(pattern: str, options: Options) -> int:
    """Reduce the cell that `pattern` means, and print the kernel that is left.

    0 once it is done or the budget is spent, 2 for a cell, oracle or toolchain that makes no sense. After
    Ctrl-C the best so far is written before KeyboardInterrupt goes on.
    """
    console = Console(stderr=options.as_json, highlight=False, soft_wrap=True)
    shown = _Shown(console, options.out)
    with Lab(options.store, offline=options.offline, progress=shown.note) as lab:
        try:
            request = _request(pattern, options, lab, shown)
            console.print(f"reduce {request.cell.id}: {describe(request.cell)}", markup=False)
            reduced = reduce_cell(lab, request, shown.progress, shown.note)
        except (NoSuchCell, NothingToExplain, OracleError, ReduceError) as error:
            Console(stderr=True, highlight=False, soft_wrap=True).print(str(error), style="red", markup=False)
            return 2
    folder = options.to or options.out / "reduce" / request.cell.id
    paths = write(reduced, folder)
    shown.result(reduced, paths, folder, options.store)
    if options.as_json:
        print(json.dumps(reduced.to_json()))
    if reduced.end is End.INTERRUPTED:
        raise KeyboardInterrupt
    return 0


def _request(pattern: str, options: Options, lab: Lab, shown: _Shown) -> Request:
    """What is meant by the words of the command line."""
    matrix: Matrix | None = None
    results: tuple[CellResult, ...] = ()
    found: CellResult | None = None
    base: Path | None = None
    if options.matrix is not None:
        matrix = load_matrix(options.matrix, known_versions=lab.provisioner.versions)
        cell, base = match(plan(matrix), pattern), matrix.path.parent
    else:
        known = find_result(pattern, options.out)
        found, results, base = known.result, known.results, known.base
        cell = found.cell
    request = Request(
        cell=replace(cell, device=None),
        oracle=options.oracle,
        budget=options.budget,
        jobs=options.jobs or len(os.sched_getaffinity(0)),
        deadline=matrix.timeouts.compile if matrix else _deadline(found),
        base=base,
    )
    if options.no_good:
        return request
    if options.good is not None:
        chains = matrix.toolchains if matrix else tuple(result.cell.toolchain for result in results)
        return replace(request, good=_named(options.good, request.cell, chains))
    compiled = next((r for r in results if r.cell == request.cell), found)
    if compiled is None:
        return request
    good = nearest_good(results, compiled, parse_oracle(options.oracle, compiled))
    if good is None:
        shown.note("no toolchain of these results is known to be good; --good names one")
    return replace(request, good=good, good_optional=True)


def _deadline(found: CellResult | None) -> float:
    seconds = found.compile.deadline_seconds if found is not None and found.compile is not None else 0.0
    return seconds or DEFAULT_DEADLINE


def _named(words: str, cell: Cell, known: tuple[Toolchain, ...]) -> Toolchain:
    """A toolchain by name or by its cuda-toolkit, else the cell's own with another cuda-toolkit."""
    mine = cell.toolchain
    for chain in known:
        if chain.name == words or (chain.cuda_toolkit == words and chain.cuda_tile == mine.cuda_tile):
            return chain
    name = f"tile{mine.cuda_tile}-ctk{words}"
    return Toolchain(name, mine.cuda_tile, words)


class _Shown:
    """Progress in plain lines: what helped at once, and now and then a sign of life."""

    def __init__(self, console: Console, out: Path) -> None:
        self._console = console
        self._out = out
        self._last = 0.0

    def note(self, text: str) -> None:
        self._console.print(text, style="dim", markup=False)

    def progress(self, progress: Progress) -> None:
        if progress.improved or progress.seconds - self._last >= _HEARTBEAT_SECONDS:
            self._last = progress.seconds
            counts = f"{progress.tried} tried, {progress.kept} kept, {progress.seconds:.0f} s"
            self._console.print(f"  {progress.size}  ({counts})  {progress.phase}", markup=False)

    def result(self, reduced: Reduced, paths: list[Path], folder: Path, store: Path | None) -> None:
        why = {
            End.COMPLETE: "nothing more can go",
            End.BUDGET: "the budget is spent",
            End.INTERRUPTED: "interrupted",
        }[reduced.end]
        say = self._console.print
        say()
        say(reduced.text, markup=False)
        say(
            f"{reduced.original_statements} statements became {reduced.statements} in "
            f"{reduced.seconds:.0f} s; {reduced.tried} candidates tried, {reduced.kept} kept; {why}",
            markup=False,
        )
        say(f"launch arguments: {_arguments(reduced)}", markup=False)
        say(f"on {reduced.toolchain.name}, {reduced.arch}: {reduced.summary}", markup=False)
        if reduced.good is not None:
            say(f"on {reduced.good.name}: good", markup=False)
        say(f"written: {', '.join(map(str, paths))}", markup=False)
        again = command("run", folder / MATRIX_FILE, out=folder / "check", store=store)
        say(f"to see it again: {again}", markup=False)
        new = command(
            *("repro", "new", reduced.original_cell, "--reduced", folder, "--name", "NAME"),
            out=self._out,
            store=store,
        )
        if (self._out / FILE_NAME).is_file():  # a repro starts from results
            say(f"to report it: {new}", markup=False)


def _arguments(reduced: Reduced) -> str:
    """The parameters that a launch passes, in order, with hints."""
    lying = {array.name: "x".join(map(str, array.shape)) for array in reduced.arrays}
    told = []
    for parameter in reduced.parameters:
        dtype = getattr(parameter, "dtype", "")
        told.append(" ".join(filter(None, [parameter.name, dtype, lying.get(parameter.name, "")])))
    hints = [f"{name}={value}" for name, value in given_hints(reduced.hints).items()]
    return f"({', '.join(told)}); hints: {' '.join(hints) or 'none'}"
