"""`harness history`: what the runs recorded in one directory say of their cells over time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.command_text import Place, command
from harness.commands.explain import NothingToExplain
from harness.history import causes, flakiness, learnt, slowest_compiles, turns
from harness.model import Cell
from harness.plan import NoSuchCell, describe, match
from harness.report.words import LOOKS, count_text, is_ascii, plain
from harness.store import FILE_NAME, Sighting, Store

SHOWN = 20
SLOWEST = 10


def tell_history(pattern: str, out: Path, as_json: bool) -> int:
    """Print the story of all cells, or of the one that `pattern` means."""
    if not (out / FILE_NAME).is_file():
        raise NothingToExplain(f"{out} holds no results; run: {command('run', 'matrix.toml', out=out)}")
    console = Console(highlight=False)
    with Store.open(out) as store:
        cells = {cell.id: cell for cell in store.cells()}
        runs = len(store.runs())
        chosen = _chosen(pattern, list(cells.values()))
        sightings = store.sightings(chosen)
    if as_json:
        print(json.dumps(_plain(sightings)))
    elif chosen is not None:
        _tell_one(cells[chosen], sightings, console, Place(out))
    else:
        _tell_all(cells, sightings, runs, console)
    return 0


def _chosen(pattern: str, cells: Sequence[Cell]) -> str | None:
    if not pattern:
        return None
    try:
        return match(cells, pattern).id
    except NoSuchCell as error:
        raise NothingToExplain(str(error)) from None


def _plain(sightings: Sequence[Sighting]) -> dict[str, object]:
    return {
        "sightings": [sighting.to_json() for sighting in sightings],
        "turns": [turn.to_json() for turn in turns(sightings)],
        "flaky": [{**flake.to_json(), "rate": flake.rate} for flake in flakiness(sightings)],
        "slowest_compiles": [one.to_json() for one in slowest_compiles(sightings, SLOWEST)],
    }


# --- what a person sees -----------------------------------------------------------------------


def _tell_all(cells: Mapping[str, Cell], sightings: Sequence[Sighting], runs: int, console: Console) -> None:
    _line(console, f"{count_text(runs, 'run')}, {count_text(len(cells), 'cell')}", "bold")
    turned = turns(sightings)
    _line(console, "")
    _line(console, f"Verdicts that changed: {len(turned)}" + _of(turned), "bold")
    for turn in turned[:SHOWN]:
        why = ", ".join(turn.causes) or "nothing that was recorded"
        _line(console, f"{_when(turn.recorded)}  {turn.before} → {turn.after}", LOOKS[turn.after].style)
        _line(console, f"  {_name(cells, turn.cell)}")
        _line(console, f"  with {why}")
    _line(console, "")
    flakes = flakiness(sightings)
    _line(console, f"Flaky cells: {len(flakes)}" + _of(flakes), "bold")
    table = _table("rate", "flakes", "cell")
    for flake in flakes[:SHOWN]:
        times = f"{flake.flakes} of {count_text(flake.repeats, 'repeat')}"
        _row(console, table, f"{flake.rate:.0%}", times, _name(cells, flake.cell))
    _show(console, table)
    _line(console, "Slowest compiles, CPU seconds", "bold")
    table = _table("seconds", "cell")
    for one in slowest_compiles(sightings, SLOWEST):
        _row(console, table, f"{one.seconds:.1f}", _name(cells, one.cell))
    _show(console, table)


def _tell_one(cell: Cell, sightings: Sequence[Sighting], console: Console, place: Place) -> None:
    _line(console, f"{cell.id}  {describe(cell)}", "bold")
    table = _table("when", "verdict", "run", "with")
    told = learnt(sightings).get(cell.id, [])
    before: Sighting | None = None
    for sighting in sightings:
        changed = ""
        if sighting in told:
            changed = ", ".join(causes(before, sighting)) if before else _versions(sighting)
            if before and before.verdict is not sighting.verdict and not changed:
                changed = "nothing that was recorded changed"
            before = sighting
        _row(console, table, _when(sighting.recorded), sighting.verdict, sighting.run, changed)
    _show(console, table)
    for flake in flakiness(sightings):
        _line(console, f"flaky: {flake.flakes} of {count_text(flake.repeats, 'repeat')}", "yellow")
    _line(console, place.explain(cell.id), "dim")


def _versions(sighting: Sighting) -> str:
    return ", ".join(f"{name} {version}" for name, version in sighting.made_with.items())


def _of(items: Sequence[object]) -> str:
    return f"; the first {SHOWN} of them:" if len(items) > SHOWN else ""


def _name(cells: Mapping[str, Cell], cell_id: str) -> str:
    return f"{cell_id} {describe(cells[cell_id])}" if cell_id in cells else cell_id


def _when(recorded: float) -> str:
    return datetime.fromtimestamp(recorded).isoformat(" ", "minutes")


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=column not in ("cell", "with"), overflow="fold")
    return table


def _row(console: Console, table: Table, *values: object) -> None:
    styles = {str(verdict): look.style for verdict, look in LOOKS.items()}
    texts = [plain(str(value), is_ascii(console)) for value in values]
    table.add_row(*(Text(text, style=styles.get(text, "")) for text in texts))


def _show(console: Console, table: Table) -> None:
    if table.row_count:
        console.print(table)
    _line(console, "")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(plain(text, is_ascii(console)), style=style), soft_wrap=True)
