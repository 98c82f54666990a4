"""A known issue, and which cells it speaks of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from harness import kernels
from harness.known_issues.conditions import Condition, Span
from harness.model import HINT_NAMES, Cell, CellResult, Scalar, Verdict

COMPONENTS = ("cuda_tile", "cuda_toolkit", "tileiras", "nvvm", "ptxas")
"""Properties that are versions, of which a fix names one."""


@dataclass(frozen=True)
class Issue:
    """One entry. It expects `verdicts`, or `advice` of a kind, in the cells that `match`.

    `component` is at fault (one of COMPONENTS); `first_seen` and `fixed_in` are versions of it, and
    nothing is expected from `fixed_in` on. `workaround` lists changes of settings, any of which should
    avoid the fault. `line` is where the entry starts in its file.
    """

    id: str
    title: str
    match: Mapping[str, Condition] = field(default_factory=dict)
    verdicts: frozenset[Verdict] = frozenset()
    advice: str | None = None
    component: str | None = None
    first_seen: str | None = None
    fixed_in: str | None = None
    link: str | None = None
    expires: date | None = None
    workaround: tuple[Mapping[str, Condition], ...] = ()
    line: int | None = None

    @property
    def expected_where(self) -> dict[str, Condition]:
        """What must hold of a cell for the fault to be expected: `match`, before the fix."""
        where = dict(self.match)
        if self.component is not None and self.fixed_in is not None:
            unfixed = Condition((Span(high=Version(self.fixed_in), with_high=False),))
            known = where.get(self.component)
            where[self.component] = unfixed if known is None else known & unfixed
        return where

    def speaks_of(self, result: CellResult, base: Path | None = None) -> bool:
        """Whether the fault is expected of this result's cell, by all that is known of the cell."""
        return fits(self.expected_where, result.cell, result.components, base)

    def would_speak_of(self, result: CellResult, base: Path | None = None) -> bool:
        """The same, had it not been fixed."""
        return fits(self.match, result.cell, result.components, base)

    def shows_in(self, result: CellResult) -> bool:
        """Whether a result has what the entry expects."""
        if self.advice is not None:
            return any(remark.kind == self.advice for remark in result.judgement.advice)
        return result.verdict in self.verdicts


def overlap(one: Issue, other: Issue) -> bool:
    """Whether a cell may be an instance of both, so that it is not clear whose it is."""
    same = one.advice == other.advice if one.advice or other.advice else one.verdicts & other.verdicts
    if not same:
        return False
    mine, theirs = one.expected_where, other.expected_where
    return not any((mine[key] & theirs[key]).is_empty for key in mine.keys() & theirs.keys())


def fits(
    where: Mapping[str, Condition], cell: Cell, components: Mapping[str, str], base: Path | None
) -> bool:
    """Whether all that is said holds of a cell; `components` are the versions it is compiled with."""
    values = facts(cell, components, base)
    return all(
        any(condition.holds(value) for value in values.get(key, (None,))) for key, condition in where.items()
    )


def facts(cell: Cell, components: Mapping[str, str], base: Path | None = None) -> dict[str, tuple[Any, ...]]:
    """Properties of a cell by the keys that conditions use. A setting that was left to the kernel's
    own heuristics is both not asked for (None) and what they choose."""
    case, chain = cell.case, cell.toolchain
    versions = {"cuda_tile": chain.cuda_tile, "cuda_toolkit": chain.cuda_toolkit}
    for name in ("tileiras", "nvvm", "ptxas"):
        versions[name] = components.get(name) or getattr(chain, name) or ""
    asked: dict[str, Scalar] = {**dict.fromkeys(HINT_NAMES), **case.settings}
    values: dict[str, tuple[Any, ...]] = {key: (value,) for key, value in asked.items()}
    for key, chosen in _chosen(cell, base).items():
        own = asked.get(key)
        values[key] = (chosen,) if own == chosen else (own, chosen)
    return {
        **values,
        **{key: (_version(text),) for key, text in versions.items()},
        "kernel": (case.kernel,),
        "dtype": (case.dtype,),
        "layout": (case.layout,),
        "values": (case.values,),
        "arch": (cell.arch,),
        "device": (cell.device.name if cell.device else "none",),
    }


def _chosen(cell: Cell, base: Path | None) -> Mapping[str, Any]:
    """Extents by name, and settings as the kernel's heuristics fill them in."""
    try:
        return kernels.get(cell.case.kernel, base).values(cell.case)
    except (KeyError, ValueError, OSError):
        return {}


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
