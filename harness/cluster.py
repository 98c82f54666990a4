"""A thousand cells of one bug, read as one finding. Pure.

Results with one signature become a `Finding`; remarks of one kind become an `AdviceGroup`. Both say
which versions of the guilty component were seen to be affected and which good. Only versions that were
tested are named, and a version is good only where the same case on the same architecture was judged
good with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from harness.assumptions import assumptions, telling
from harness.judge import KERNEL, MATRIX
from harness.model import Case, CellResult, Record, Scalar, Verdict
from harness.signature import is_mute, normalise
from harness.version_span import AFFECTED, GOOD, OTHER, RANKING, UNKNOWN, VersionSpan, version_key

_READERS = (KERNEL, MATRIX)
"""What is the reader's own, not a component of a toolchain; a frontend judges it."""


@dataclass(frozen=True)
class Finding(Record):
    """All cells that show one fault. `example` is the id of the simplest of them.

    `name` tells findings apart: the signature, and the kernel too where the signature says nothing of
    the fault.
    """

    name: str
    signature: str
    verdict: Verdict
    component: str | None
    summary: str
    cells: tuple[str, ...]
    kernels: tuple[str, ...]
    archs: tuple[str, ...]
    settings: str
    versions: VersionSpan
    example: str

    @property
    def is_about_versions(self) -> bool:
        """False where no version can be at fault: the machine failed, or every frontend that answered
        refuses the reader's own text."""
        if self.component in _READERS:
            return any(seen == GOOD for _, seen in self.versions.states)
        return self.verdict is not Verdict.INFRA_ERROR

    @property
    def blame(self) -> str:
        """Whom to blame, in words."""
        if self.component in _READERS and self.is_about_versions:
            return f"{self.component} or {self.versions.component}, whose versions disagree"
        return self.component or "not known"

    @property
    def first_affected(self) -> str | None:
        return self.versions.first_affected

    @property
    def last_affected(self) -> str | None:
        return self.versions.last_affected

    @property
    def good_from(self) -> str | None:
        return self.versions.good_from


@dataclass(frozen=True)
class AdviceGroup(Record):
    """All cells that carry one remark. `texts` are its wordings, most frequent first."""

    kind: str
    texts: tuple[str, ...]
    cells: tuple[str, ...]
    archs: tuple[str, ...]
    settings: str
    versions: VersionSpan
    example: str


def findings(results: Iterable[CellResult]) -> tuple[Finding, ...]:
    """Group findings by signature, the one with most cells first.

    Where the signature says nothing of the fault behind it, every kernel has a finding of its own, and
    what a version mended is not to be hidden behind what none did.
    """
    everything = list(results)
    versions: dict[tuple[Any, ...], set[str | None]] = defaultdict(set)
    reported: list[tuple[CellResult, str]] = []
    for result in everything:
        name = result.judgement.signature
        if name is not None and _is_reportable(result.verdict):
            reported.append((result, name))
            version = _version(result, result.judgement.component)
            versions[name, result.cell.case.kernel, _question(result)].add(version)
    groups: dict[tuple[str, ...], dict[frozenset[str | None], list[CellResult]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for result, name in reported:
        kernel = result.cell.case.kernel
        affected = frozenset(versions[name, kernel, _question(result)]) if is_mute(name) else frozenset()
        groups[(name, kernel) if is_mute(name) else (name,)][affected].append(result)
    found = [
        _finding(name, members, everything) for name, parts in groups.items() for members in parts.values()
    ]
    return tuple(sorted(found, key=lambda finding: (-len(finding.cells), finding.name)))


def advice_groups(results: Iterable[CellResult]) -> tuple[AdviceGroup, ...]:
    """Group remarks by kind, wording without its numbers, and the versions that earn them: what a
    version mended is not to be hidden behind what none did."""
    everything = list(results)
    remarks = [(r, a.text, _advice_key(a.kind, a.text)) for r in everything for a in r.judgement.advice]
    versions: dict[tuple[Any, ...], set[str | None]] = defaultdict(set)
    for result, _, key in remarks:
        versions[key, _question(result)].add(_version(result, "tileiras"))
    groups: dict[tuple[Any, ...], list[tuple[CellResult, str]]] = defaultdict(list)
    for result, text, key in remarks:
        groups[key, frozenset(versions[key, _question(result)])].append((result, text))
    found = [_advice_group(key, members, everything) for (key, _), members in groups.items()]
    return tuple(sorted(found, key=lambda group: (group.kind, -len(group.cells), group.texts)))


def describe_settings(affected: Sequence[CellResult], everything: Sequence[CellResult]) -> str:
    """The settings that tell affected cells from the rest, as "occupancy=16, allow_tma=false".

    A setting is named where the affected values are fewer than all that were tested with the same
    kernels and toolchains of the matrix; empty where nothing tells them apart.
    """
    kernels = {result.cell.case.kernel for result in affected}
    peers = [result for result in everything if result.cell.case.kernel in kernels]
    apart = telling((result.cell.case for result in peers), lambda case: frozenset(_axes(case).items()))
    names = dict.fromkeys([*(name for result in affected for name in _axes(result.cell.case)), *apart])
    parts = []
    for name in names:
        hit = {_value(result.cell.case, name) for result in affected}
        tested = {_value(result.cell.case, name) for result in peers}
        if hit != tested:
            values = sorted(hit, key=lambda value: (value is not None, str(type(value)), value))
            parts.append(f"{name}={'/'.join(map(value_text, values))}")
    return ", ".join(parts)


def value_text(value: object) -> str:
    """A setting's value as tables and sentences show it; as TOML spells it;
    None is the compiler's choice."""
    if isinstance(value, bool):
        return str(value).lower()
    return "default" if value is None else str(value)


def shape_text(shape: Sequence[int]) -> str:
    """A problem shape, "16384×512"."""
    return "×".join(map(str, shape))


def arch_key(arch: str) -> tuple[int, str]:
    """Sorts sm_90 before sm_100."""
    digits = "".join(character for character in arch if character.isdigit())
    return int(digits or 0), arch


def simplest(results: Sequence[CellResult], component: str | None) -> CellResult:
    """The cell to look at first: least data, no device, fewest settings, then the newest version."""
    newest = sorted(results, key=lambda r: version_key(_version(r, component) or ""), reverse=True)
    return min(
        newest,
        key=lambda r: (
            prod(r.cell.case.shape),
            r.cell.device is not None,
            sum(value is not None for value in r.cell.case.settings.values()),
            arch_key(r.cell.arch),
        ),
    )


# --- inside -----------------------------------------------------------------------------------


def _is_reportable(verdict: Verdict) -> bool:
    """Findings, and broken toolchains: nobody's kernel is at fault, but someone has to know."""
    return verdict.is_finding or verdict in (Verdict.TOOLCHAIN_BROKEN, Verdict.INFRA_ERROR)


def _finding(name: tuple[str, ...], members: list[CellResult], everything: list[CellResult]) -> Finding:
    component = members[0].judgement.component
    span = _span(members, everything, component, lambda result: result.judgement.signature == name[0])
    example = simplest(members, component)
    return Finding(
        name=" of ".join(name),
        signature=name[0],
        verdict=example.verdict,
        component=component,
        summary=example.judgement.summary,
        cells=tuple(result.cell.id for result in members),
        kernels=tuple(sorted({result.cell.case.kernel for result in members})),
        archs=_archs(members),
        settings=describe_settings(members, everything),
        versions=span,
        example=example.cell.id,
    )


def _advice_key(kind: str, text: str) -> tuple[str, str]:
    """Times and spill counts differ in every cell; what limits an occupancy is worth telling apart."""
    return kind, normalise(text) if kind == "occupancy_missed" else ""


def _advice_group(
    key: tuple[str, str], members: list[tuple[CellResult, str]], everything: list[CellResult]
) -> AdviceGroup:
    kind, _ = key
    affected = [result for result, _ in members]
    wordings = [text for _, text in members]
    distinct = sorted(set(wordings), key=lambda text: (-wordings.count(text), text))

    def carries(result: CellResult) -> bool:
        return any(_advice_key(remark.kind, remark.text) == key for remark in result.judgement.advice)

    return AdviceGroup(
        kind=kind,
        texts=tuple(distinct),
        cells=tuple(result.cell.id for result in affected),
        archs=_archs(affected),
        settings=describe_settings(affected, everything),
        versions=_span(affected, everything, "tileiras", carries),
        example=simplest(affected, "tileiras").cell.id,
    )


def _span(
    affected: list[CellResult],
    everything: list[CellResult],
    component: str | None,
    is_affected: Callable[[CellResult], bool],
) -> VersionSpan:
    asked = {_question(result) for result in affected}
    seen: dict[str, str] = {}
    for result in everything:
        version = _version(result, component)
        if version is None or _question(result) not in asked:
            continue
        state = _state(result, is_affected)
        seen[version] = min(seen.get(version, UNKNOWN), state, key=RANKING.index)
    ordered = sorted(seen.items(), key=lambda pair: version_key(pair[0]))
    return VersionSpan(_named(component), tuple(ordered))


def _state(result: CellResult, is_affected: Callable[[CellResult], bool]) -> str:
    if is_affected(result):
        return AFFECTED
    if result.verdict.is_good:
        return GOOD
    return OTHER if result.verdict.is_finding else UNKNOWN


def _question(result: CellResult) -> tuple[str, str, str]:
    """The case, architecture and device: what stays the same while versions change."""
    device = result.cell.device
    return result.cell.case.digest, result.cell.arch, device.name if device else ""


def _named(component: str | None) -> str:
    if component in _READERS:
        return "cuda-tile"
    return component if component in ("cuda-tile", "tileiras", "nvvm", "ptxas") else "cuda-toolkit"


def _version(result: CellResult, component: str | None) -> str | None:
    toolchain = result.cell.toolchain
    match _named(component):
        case "cuda-tile":
            return toolchain.cuda_tile
        case "cuda-toolkit":
            return toolchain.cuda_toolkit
        case name:
            override = {"tileiras": toolchain.tileiras, "nvvm": toolchain.nvvm, "ptxas": toolchain.ptxas}
            return result.components.get(name) or override[name]


def _archs(results: Iterable[CellResult]) -> tuple[str, ...]:
    return tuple(sorted({result.cell.arch for result in results}, key=arch_key))


def _value(case: Case, name: str) -> Scalar:
    """Of a setting, or else of an assumption."""
    axes = _axes(case)
    return axes[name] if name in axes else assumptions(case).get(name)


def _axes(case: Case) -> dict[str, Scalar]:
    return {"shape": shape_text(case.shape), "dtype": case.dtype, **case.settings}
