"""Do hints and toolchains agree on the bits? Right answers of one kernel on one set of data, compared. Pure.

Every device cell carries a name for its data and a hash of each output. Cells that passed lie inside
the error bound, so other bits are no fault: another order of additions gives them. They are reported, because
a user who upgrades or tunes sees them too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from harness.model import CellResult, Record, Scalar, Verdict

_MOST_AXES = 2
"""Axes that may together tell variants apart; three say little more than "many things"."""


@dataclass(frozen=True)
class BitVariant(Record):
    """Cells that gave the same bits; the most frequent answer comes first."""

    sha256: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class BitGroup(Record):
    """One output of one kernel on one set of data, with more than one answer.

    `told_by` names the fewest axes (settings, versions, device) whose values decide which answer a cell
    gives; empty where no one or two of them do.
    """

    kernel: str
    shape: tuple[int, ...]
    dtype: str
    values: str
    seed: int
    output: str
    variants: tuple[BitVariant, ...]
    told_by: tuple[str, ...]


@dataclass(frozen=True)
class BitReport(Record):
    """`compared` counts outputs that at least two cells computed from the same data, `agreeing` those
    on which all of them agree; `groups` are the others."""

    compared: int
    agreeing: int
    groups: tuple[BitGroup, ...]


def compare_bits(results: Iterable[CellResult]) -> BitReport:
    """Compare the outputs of all cells that passed on a device."""
    answers: dict[tuple[str, str, str], list[tuple[CellResult, str]]] = defaultdict(list)
    for result in results:
        seen = result.observation
        if result.verdict is not Verdict.PASS or not seen or not seen.get("data"):
            continue
        for output in seen["outputs"]:
            key = (result.cell.case.kernel, seen["data"], output["name"])
            answers[key].append((result, output["sha256"]))
    several = {key: members for key, members in answers.items() if len(members) > 1}
    differing = {key: m for key, m in several.items() if len({sha256 for _, sha256 in m}) > 1}
    groups = [_group(output, members) for (_, _, output), members in differing.items()]
    groups.sort(key=lambda g: (g.kernel, g.output, g.shape, g.dtype, g.values, g.seed))
    return BitReport(len(several), len(several) - len(differing), tuple(groups))


def sentences(report: BitReport) -> list[str]:
    """One line per kind of difference, most frequent first; none where all agree."""
    kinds = Counter((g.kernel, g.output, g.told_by) for g in report.groups)
    lines = []
    for (kernel, output, told_by), count in kinds.most_common():
        apart = (
            f"told apart by {' and '.join(told_by)}" if told_by else "not told apart by one or two settings"
        )
        sets = f"{count} {'set' if count == 1 else 'sets'} of data"
        lines.append(f"{kernel}, {output}: more than one right answer on {sets}, {apart}")
    return lines


def _group(output: str, members: Sequence[tuple[CellResult, str]]) -> BitGroup:
    by_answer: dict[str, list[str]] = defaultdict(list)
    for result, sha256 in members:
        by_answer[sha256].append(result.cell.id)
    variants = [BitVariant(sha256, tuple(sorted(cells))) for sha256, cells in by_answer.items()]
    case = members[0][0].cell.case
    return BitGroup(
        kernel=case.kernel,
        shape=case.shape,
        dtype=case.dtype,
        values=case.values,
        seed=case.seed,
        output=output,
        variants=tuple(sorted(variants, key=lambda v: (-len(v.cells), v.sha256))),
        told_by=_told_by([(_axes(result), sha256) for result, sha256 in members]),
    )


def _axes(result: CellResult) -> dict[str, Scalar]:
    """What may set one cell of a group apart from another."""
    cell = result.cell
    return {
        "cuda_tile": cell.toolchain.cuda_tile,
        "cuda_toolkit": cell.toolchain.cuda_toolkit,
        "toolchain": cell.toolchain.name,
        "device": cell.device.name if cell.device else None,
        **cell.case.settings,
        "layout": cell.case.layout,
    }


def _told_by(members: Sequence[tuple[Mapping[str, Scalar], str]]) -> tuple[str, ...]:
    names = list(dict.fromkeys(name for axes, _ in members for name in axes))
    varying = [n for n in names if len({_key(axes, n) for axes, _ in members}) > 1]
    for size in range(1, _MOST_AXES + 1):
        for chosen in combinations(varying, size):
            answers: dict[Any, set[str]] = defaultdict(set)
            for axes, sha256 in members:
                answers[tuple(_key(axes, name) for name in chosen)].add(sha256)
            if all(len(found) == 1 for found in answers.values()):
                return chosen
    return ()


def _key(axes: Mapping[str, Scalar], name: str) -> tuple[str, str]:
    """Tells True from 1 and a missing setting from None."""
    return (type(axes.get(name)).__name__, str(axes.get(name)))
