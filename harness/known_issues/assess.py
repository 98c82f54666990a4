"""Results against known issues: what was expected, and what is news. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from harness.advice import SLOW_COMPILE_SECONDS
from harness.known_issues.entry import Issue
from harness.model import CellResult, Record


@dataclass(frozen=True)
class Seen(Record):
    """Cells of one issue that fared alike, and the sentence about them."""

    issue: str
    text: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Assessment(Record):
    """What known issues make of results.

    `expected` maps the cells whose fault is known to the issue. `fixed` are faults that are unexpectedly
    gone, as loud as a failure; `returned` shows again although it was fixed, `expired` although its
    entry is out of date: both are findings like any other. `stale` issues speak of no answered cell.
    """

    expected: dict[str, str]
    fixed: tuple[Seen, ...] = ()
    returned: tuple[Seen, ...] = ()
    expired: tuple[Seen, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def loud(self) -> tuple[Seen, ...]:
        """Everything that somebody should act on."""
        return (*self.fixed, *self.returned, *self.expired)


NOTHING_KNOWN = Assessment({})


def assess(
    results: Sequence[CellResult], issues: Sequence[Issue], today: date, base: Path | None = None
) -> Assessment:
    """Compare all results with all issues. `base` is what kernel paths are relative to."""
    expected: dict[str, str] = {}
    fixed, returned, expired, stale = [], [], [], []
    answered = [result for result in results if not result.verdict.is_unknown]
    for issue in issues:
        shown = [r for r in answered if issue.shows_in(r) and issue.would_speak_of(r, base)]
        due = [r for r in answered if issue.speaks_of(r, base)]
        ids = {r.cell.id for r in due}
        known = [r for r in shown if r.cell.id in ids]
        back = [r for r in shown if r.cell.id not in ids]
        gone = [r for r in due if r.verdict.is_good and not issue.shows_in(r) and not _hard_to_say(issue, r)]
        if known and issue.expires is not None and today > issue.expires:
            text = (
                f"known issue {issue.id} expired on {issue.expires}: check it and renew or remove the entry"
            )
            expired.append(_seen(issue, text, known))
        else:
            expected |= {r.cell.id: issue.id for r in known} if issue.advice is None else {}
        if back:
            text = f"known issue {issue.id} is back, though fixed in {issue.component} {issue.fixed_in}"
            returned.append(_seen(issue, text, back))
        if gone:
            remedy = f"set its fixed_in ({_versions(issue, gone)}), or narrow its match"
            fixed.append(_seen(issue, f"known issue {issue.id} is gone: {remedy}", gone))
        if not due and not back:
            stale.append(issue.id)
    return Assessment(expected, tuple(fixed), tuple(returned), tuple(expired), tuple(stale))


def _seen(issue: Issue, text: str, results: Sequence[CellResult]) -> Seen:
    return Seen(issue.id, text, tuple(result.cell.id for result in results))


def _hard_to_say(issue: Issue, result: CellResult) -> bool:
    """Compiling says nothing of what only a GPU shows. And compile time varies with the machine: only
    half the time that counts as slow is surely not slow."""
    if issue.verdicts and all(verdict.is_from_device for verdict in issue.verdicts):
        return result.cell.device is None
    compiled = result.compile
    if issue.advice != "slow_compile" or compiled is None:
        return False
    return (compiled.cpu_seconds or compiled.wall_seconds) > SLOW_COMPILE_SECONDS / 2


def _versions(issue: Issue, results: Sequence[CellResult]) -> str:
    name = issue.component or "tileiras"
    own = {"cuda_tile", "cuda_toolkit"}
    found = {
        str(getattr(r.cell.toolchain, name)) if name in own else r.components.get(name, "?") for r in results
    }
    return f"good with {name} {', '.join(sorted(found))}"
