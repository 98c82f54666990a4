"""Since when, and where: versions of one component against architectures, and what each answered. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.cluster import AdviceGroup, Finding, arch_key
from harness.model import Case, CellResult, Verdict
from harness.version_span import AFFECTED, GOOD, OTHER, UNKNOWN, version_key

UNSUPPORTED, UNTESTED = "unsupported", "not tested"
_RANKING = (AFFECTED, OTHER, GOOD, UNSUPPORTED, UNKNOWN, UNTESTED)
"""Where one version was seen in several states, the first of these counts."""

_Question = tuple[Case, str, str]


@dataclass(frozen=True)
class Strip:
    """`versions` pairs each version of `component` with the toolkits that brought it, oldest first;
    `rows` pairs architectures that fared alike with one state a version."""

    component: str
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


class Strips:
    """Builds strips from one run's results, which it sorts by question once."""

    def __init__(self, results: Sequence[CellResult]) -> None:
        self._results = {result.cell.id: result for result in results}
        self._by_question: dict[_Question, list[CellResult]] = defaultdict(list)
        for result in results:
            self._by_question[_question(result)].append(result)

    def of(self, group: Finding | AdviceGroup) -> Strip:
        """What every version answered to the questions at which this group was seen."""
        component = group.versions.component
        affected = set(group.cells)
        asked = dict.fromkeys(_question(self._results[cell]) for cell in group.cells)
        states: dict[tuple[str, str], str] = {}
        toolkits: dict[str, set[str]] = defaultdict(set)
        for question in asked:
            for result in self._by_question[question]:
                version = _version(result, component)
                if version is None:
                    continue
                toolkits[version].add(result.cell.toolchain.cuda_toolkit)
                key = result.cell.arch, version
                state = AFFECTED if result.cell.id in affected else _state(result.verdict)
                states[key] = min(states.get(key, UNTESTED), state, key=_RANKING.index)
        versions = sorted(toolkits, key=version_key)
        alike: dict[tuple[str, ...], list[str]] = {}
        for arch in sorted({arch for arch, _ in states}, key=arch_key):
            seen = tuple(states.get((arch, version), UNTESTED) for version in versions)
            alike.setdefault(seen, []).append(arch)
        return Strip(
            component,
            tuple((version, _sorted(toolkits[version])) for version in versions),
            tuple((tuple(archs), seen) for seen, archs in alike.items()),
        )


def _question(result: CellResult) -> _Question:
    """The case, architecture and device: what stays the same while versions change."""
    device = result.cell.device
    return result.cell.case, result.cell.arch, device.name if device else ""


def _version(result: CellResult, component: str) -> str | None:
    toolchain = result.cell.toolchain
    match component:
        case "cuda-tile":
            return toolchain.cuda_tile
        case "cuda-toolkit":
            return toolchain.cuda_toolkit
    return result.components.get(component) or getattr(toolchain, component, None)


def _state(verdict: Verdict) -> str:
    if verdict.is_good:
        return GOOD
    if verdict is Verdict.UNSUPPORTED:
        return UNSUPPORTED
    return OTHER if verdict.is_finding else UNKNOWN


def _sorted(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=version_key))
