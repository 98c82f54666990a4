"""Does what an entry advises really avoid the fault, and at what cost? Pure.

An advice is a change of settings. Every cell that shows the fault is asked again with the change: with each
value of the matrix that the advice allows, and with the value at its end. The advice holds if
all of them are good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from harness.cluster import value_text
from harness.gate.noise import measured
from harness.known_issues.conditions import DEFAULT, Condition
from harness.known_issues.entry import Issue
from harness.model import HINT_NAMES, Case, Cell, CellResult, Record, Scalar

Change = tuple[tuple[str, Scalar], ...]
"""Settings and their new values."""


@dataclass(frozen=True)
class Cost(Record):
    """What a cell takes: registers a thread, CPU seconds of its compile, device time in µs."""

    registers: int | None
    compile_seconds: float | None
    device_us: float | None


@dataclass(frozen=True)
class Trial(Record):
    """One change tried on one cell that shows the fault.

    `avoids` is None where there was no answer. `mended` is the cost of the unchanged settings with a
    toolchain that has no such fault, where the matrix has one.
    """

    change: str
    faulty: str
    changed: str
    arch: str
    toolchain: str
    verdict: str
    summary: str
    avoids: bool | None
    cost: Cost
    mended: Cost | None
    mended_by: str | None


def changes(advice: Mapping[str, Condition], cases: Iterable[Case]) -> tuple[Change, ...]:
    """The settings to try for an advice: values of these cases it allows, and the value at its end."""
    used: dict[str, list[Scalar]] = {key: [] for key in advice}
    for case in cases:
        for key, values in used.items():
            values.append(case.settings.get(key))
    choices = [[(key, value) for value in _values(advice[key], used[key])] for key in advice]
    return tuple(product(*choices))


def _values(condition: Condition, used: Iterable[Scalar]) -> list[Scalar]:
    named: list[Scalar] = [None if word == DEFAULT else word for word in sorted(condition.words, key=str)]
    ends: list[Scalar] = [
        end for span in condition.spans for end in [span.low if span.high is None else span.high]
    ]
    allowed = [value for value in used if condition.holds(value)]
    return list(dict.fromkeys([*allowed, *named, *(end for end in ends if end is not None)]))


def changed(cell: Cell, change: Change) -> Cell:
    """The cell with other settings."""
    hints: dict[str, Any] = {}
    knobs = dict(cell.case.knobs)
    for key, value in change:
        if key in HINT_NAMES:
            hints[key] = value
        elif value is None:
            knobs.pop(key, None)
        else:
            knobs[key] = value
    case = replace(cell.case, hints=replace(cell.case.hints, **hints), knobs=tuple(sorted(knobs.items())))
    return replace(cell, case=case)


def change_text(change: Change) -> str:
    """ "occupancy=8"."""
    return " ".join(f"{key}={value_text(value)}" for key, value in change)


def trials(
    issue: Issue, tried: Sequence[Change], results: Mapping[str, CellResult], faulty: Sequence[CellResult]
) -> tuple[Trial, ...]:
    """Every change on every cell that shows the fault, as far as it was answered."""
    found = []
    for change in tried:
        for bad in faulty:
            result = results.get(changed(bad.cell, change).id)
            if result is None:
                continue
            mended = _mended(issue, bad, results)
            avoids = (
                None if result.verdict.is_unknown else result.verdict.is_good and not issue.shows_in(result)
            )
            found.append(
                Trial(
                    change=change_text(change),
                    faulty=bad.cell.id,
                    changed=result.cell.id,
                    arch=bad.cell.arch,
                    toolchain=bad.cell.toolchain.name,
                    verdict=str(result.verdict),
                    summary=result.judgement.summary,
                    avoids=avoids,
                    cost=cost(result, results),
                    mended=cost(mended, results) if mended else None,
                    mended_by=mended.cell.toolchain.name if mended else None,
                )
            )
    return tuple(found)


def _mended(issue: Issue, bad: CellResult, results: Mapping[str, CellResult]) -> CellResult | None:
    """The same question to another toolchain, preferably of the same frontend, that answers well."""
    good = [
        result
        for result in results.values()
        if result.cell.case == bad.cell.case
        and (result.cell.arch, result.cell.device) == (bad.cell.arch, bad.cell.device)
        and result.verdict.is_good
        and not issue.shows_in(result)
    ]
    same = [r for r in good if r.cell.toolchain.cuda_tile == bad.cell.toolchain.cuda_tile]
    return next(iter(same or good), None)


def cost(result: CellResult, results: Mapping[str, CellResult]) -> Cost:
    """What a cell takes. Its device time may stand with the cell that ran it on a device."""
    twins = [result, *(r for r in results.values() if r.cell.device and _static(r.cell) == result.cell)]
    times = [measured((twin.observation or {}).get("timing")) for twin in twins]
    compiled = result.compile
    return Cost(
        registers=result.inspection.registers if result.inspection else None,
        compile_seconds=(compiled.cpu_seconds or compiled.wall_seconds) if compiled else None,
        device_us=next((time.median for time in times if time is not None), None),
    )


def _static(cell: Cell) -> Cell:
    return replace(cell, device=None)
