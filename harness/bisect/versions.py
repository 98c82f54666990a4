"""The axis a bisection walks: versions in order, those that cannot differ folded into one.

cuda-toolkit versions often share a component: 13.4.2 and 13.4.3 bring the same tileiras. Where one
component is under suspicion, neighbours with the same version of it are one candidate; otherwise
neighbours are one only where all components are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from harness.judge import KERNEL, MATRIX
from harness.model import Record, Toolchain

TOOLKIT, TILE = "cuda-toolkit", "cuda-tile"
AXES = (TOOLKIT, TILE)
BACKEND_COMPONENTS = ("tileiras", "nvvm", "ptxas")

ComponentsOf = Callable[[Toolchain], dict[str, str]]
"""Component → version of a toolchain; may raise whatever says that the toolchain cannot be had."""


class BisectError(ValueError):
    """The question cannot be bisected; the text says why and what to do."""


@dataclass(frozen=True)
class Candidate(Record):
    """One position on the axis: what is probed, and every version it stands for, oldest first."""

    toolchain: Toolchain
    components: dict[str, str]
    stands_for: tuple[str, ...]


@dataclass(frozen=True)
class Axis(Record):
    """Candidates, oldest first. `component` is what their names and the folding go by, None for all
    components of the backend. `left_out` are (version, reason) of those that cannot be had."""

    over: str
    component: str | None
    candidates: tuple[Candidate, ...]
    start: int
    left_out: tuple[tuple[str, str], ...] = ()

    def label(self, position: int) -> str:
        """The version at a position, by the component under suspicion where there is one."""
        candidate = self.candidates[position]
        if self.component in candidate.components:
            return candidate.components[self.component]
        return candidate.stands_for[-1]


def default_over(component: str | None) -> str:
    """The axis to walk when the judge blames this component: what is refused of the reader's own text may
    be taken by another frontend."""
    return TILE if component in (TILE, KERNEL, MATRIX) else TOOLKIT


def check_over(over: str) -> None:
    """Raises BisectError for an axis that does not exist."""
    if over not in AXES:
        raise BisectError(f'cannot bisect over "{over}"; it can be {" or ".join(AXES)}')


def plan_axis(
    toolchain: Toolchain,
    over: str,
    versions: Iterable[str],
    components_of: ComponentsOf,
    unavailable: tuple[type[Exception], ...],
    component: str | None = None,
) -> Axis:
    """The axis through a bad toolchain, everything but `over` as it is there.

    Versions for which `components_of` raises one of `unavailable` are left out with the reason, unless
    it is the toolchain's own. Raises BisectError where nothing but its own version is left.
    """
    check_over(over)
    own = _version(toolchain, over)
    found: list[tuple[str, Toolchain, dict[str, str]]] = []
    left_out: list[tuple[str, str]] = []
    for version in sorted({*versions, own}, key=Version):
        placed = toolchain if version == own else _at(toolchain, over, version)
        try:
            found.append((version, placed, components_of(placed)))
        except unavailable as reason:
            if version == own:
                raise
            left_out.append((version, str(reason)))
    if len(found) < 2:
        why = f": {left_out[0][1]}" if left_out else ""
        raise BisectError(f"there is no {over} version but {own} to compare with{why}")
    key = component if over == TOOLKIT and component in BACKEND_COMPONENTS else None
    candidates = _folded(found, over, own, key)
    start = next(at for at, candidate in enumerate(candidates) if own in candidate.stands_for)
    return Axis(over, TILE if over == TILE else key, candidates, start, tuple(left_out))


def _folded(
    found: Sequence[tuple[str, Toolchain, dict[str, str]]], over: str, own: str, component: str | None
) -> tuple[Candidate, ...]:
    """Neighbours with equal components as one, probed by the newest of them or by the start's own."""
    folded: list[Candidate] = []
    for version, toolchain, components in found:
        everything = {TILE: toolchain.cuda_tile, **components}
        last = folded[-1] if folded else None
        if last is None or over == TILE or not _same(last.components, everything, component):
            folded.append(Candidate(toolchain, everything, (version,)))
        elif own in last.stands_for:
            folded[-1] = replace(last, stands_for=(*last.stands_for, version))
        else:
            folded[-1] = Candidate(toolchain, everything, (*last.stands_for, version))
    return tuple(folded)


def _same(one: dict[str, str], other: dict[str, str], component: str | None) -> bool:
    return all(one[name] == other[name] for name in ([component] if component else BACKEND_COMPONENTS))


def _version(toolchain: Toolchain, over: str) -> str:
    return toolchain.cuda_tile if over == TILE else toolchain.cuda_toolkit


def _at(toolchain: Toolchain, over: str, version: str) -> Toolchain:
    tile, toolkit = (version, toolchain.cuda_toolkit) if over == TILE else (toolchain.cuda_tile, version)
    overrides = {name: getattr(toolchain, name) for name in BACKEND_COMPONENTS if getattr(toolchain, name)}
    suffix = "".join(f"+{name}{version}" for name, version in overrides.items())
    return Toolchain(f"tile{tile}-ctk{toolkit}{suffix}", tile, toolkit, **overrides)
