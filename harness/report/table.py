"""The table of a run as values: which rows, which columns, what may be merged. Pure.

Rows are settings, and assumptions where nothing else tells cases apart; columns are backends ×
architectures. Frontends (cuda-tile versions) whose answers are equal everywhere share one grid; where
they differ each gets its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.assumptions import assumptions, telling
from harness.cluster import arch_key, shape_text, value_text
from harness.model import HINT_NAMES, Case, CellResult, Verdict
from harness.version_span import version_key


@dataclass(frozen=True)
class Grid:
    """One table: cells by row and (backend, arch). `heading` says what all its cells share."""

    heading: str
    axes: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    backends: tuple[str, ...]
    archs: tuple[str, ...]
    cells: dict[tuple[tuple[str, ...], str, str], CellResult]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """(backend, arch) pairs that hold anything, ordered by architecture, then by version."""
        held = {(backend, arch) for _, backend, arch in self.cells}
        pairs = ((backend, arch) for arch in self.archs for backend in self.backends)
        return tuple(pair for pair in pairs if pair in held)

    @property
    def toolkits(self) -> dict[str, str]:
        """The exact cuda-toolkit by the version as it was written."""
        return {
            result.cell.toolchain.cuda_toolkit: result.resolved["cuda_toolkit"]
            for result in self.cells.values()
            if "cuda_toolkit" in result.resolved
        }

    def only(self, arch: str) -> Grid:
        """The part of one architecture, empty rows and backends left out."""
        cells = {key: result for key, result in self.cells.items() if key[2] == arch}
        rows = tuple(row for row in self.rows if any(key[0] == row for key in cells))
        backends = tuple(name for name in self.backends if any(key[1] == name for key in cells))
        return Grid(self.heading, self.axes, rows, backends, (arch,), cells)


def grids(results: Iterable[CellResult]) -> tuple[Grid, ...]:
    """All tables of a run. Devices for which every cell was skipped have none."""
    by_device: dict[str, list[CellResult]] = {}
    for result in results:
        by_device.setdefault(result.cell.device.name if result.cell.device else "", []).append(result)
    made: list[Grid] = []
    for device, members in by_device.items():
        if all(result.verdict is Verdict.SKIPPED for result in members):
            continue
        made += _merged(device, members)
    return tuple(made)


def backend_text(result: CellResult) -> str:
    """A backend as a column names it: the toolkit, and components that were replaced alone."""
    toolchain = result.cell.toolchain
    parts = [toolchain.cuda_toolkit]
    for name in ("tileiras", "nvvm", "ptxas"):
        version = getattr(toolchain, name)
        if version is not None:
            parts.append(f"+{name} {version}")
    return " ".join(parts)


def _merged(device: str, results: Sequence[CellResult]) -> list[Grid]:
    constant, axes = _split_axes([result.cell.case for result in results])
    by_frontend: dict[str, list[CellResult]] = {}
    for result in results:
        by_frontend.setdefault(result.cell.toolchain.cuda_tile, []).append(result)
    classes: dict[frozenset[object], list[str]] = {}
    for frontend in sorted(by_frontend, key=version_key):
        answers = frozenset(
            (_row(result, axes), backend_text(result), result.cell.arch, _answer(result))
            for result in by_frontend[frontend]
        )
        classes.setdefault(answers, []).append(frontend)
    made = []
    for frontends in classes.values():
        equal = " (equal answers)" if len(frontends) > 1 else ""
        heading = [constant, f"cuda-tile {' and '.join(frontends)}{equal}"] + [f"on {device}"] * bool(device)
        made.append(_grid(" · ".join(filter(None, heading)), axes, by_frontend[frontends[0]]))
    return made


def _grid(heading: str, axes: tuple[str, ...], results: Sequence[CellResult]) -> Grid:
    rows = dict.fromkeys(_row(result, axes) for result in results)
    backends = sorted(
        {backend_text(result) for result in results}, key=lambda text: (version_key(text.split()[0]), text)
    )
    archs = sorted({result.cell.arch for result in results}, key=arch_key)
    cells = {(_row(result, axes), backend_text(result), result.cell.arch): result for result in results}
    return Grid(heading, axes, tuple(rows), tuple(backends), tuple(archs), cells)


def _answer(result: CellResult) -> object:
    """What makes two cells look equal in a table. Compile times are noise, so they do not count."""
    registers = result.inspection.registers if result.inspection else None
    return (
        result.verdict,
        result.judgement.signature,
        registers,
        tuple(remark.kind for remark in result.judgement.advice if remark.kind != "slow_compile"),
    )


def _axis_values(case: Case) -> dict[str, str]:
    """Of the settings; `assumptions` has what else may be an axis."""
    values = {"kernel": case.kernel, "shape": shape_text(case.shape), "dtype": case.dtype}
    values |= {name: value_text(value) for name, value in case.settings.items()}
    return values | {"layout": case.layout, "values": case.values, "seed": str(case.seed)}


def _split_axes(cases: Sequence[Case]) -> tuple[str, tuple[str, ...]]:
    """What all cases share, in words, and the names of the axes along which they vary."""
    all_values = [_axis_values(case) for case in cases]
    names = dict.fromkeys(name for values in all_values for name in values)
    seen = {name: {values.get(name, "") for values in all_values} for name in names}
    shared = [next(iter(seen[name])) for name in ("kernel", "shape", "dtype") if len(seen[name]) == 1]
    further = telling(cases, lambda case: frozenset(_axis_values(case).items()))
    varying = (name for name in names if len(seen[name]) > 1)
    return " · ".join(filter(None, shared)), (*varying, *further)


def _row(result: CellResult, axes: tuple[str, ...]) -> tuple[str, ...]:
    values = {**assumptions(result.cell.case), **_axis_values(result.cell.case)}
    return tuple(values.get(axis, value_text(None) if axis in HINT_NAMES else "") for axis in axes)
