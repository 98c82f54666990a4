"""Pairs of cells that ask the same of baseline and candidate, and how their answers differ. Pure.

Verdicts are told apart as findings are: a cell that is bad on both sides with one signature is the old
bug, with another a new one. Only cells that are good on both sides are measured against each other: what
the machine code takes, how long compiling took and, where both ran, device time and output bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.gate.noise import Measured, measured, shift
from harness.matrix import GateRules
from harness.model import Cell, CellResult, Inspection, Record, Verdict

Key = tuple[str, str, str, str]
"""Case, architecture, device and the toolchain's name in the pairing: what stays the same."""


def question(cell: Cell, name: str, device: str | None = None) -> Key:
    """The key of a cell whose toolchain is paired as `name`, and whose device perhaps as `device`."""
    return cell.case.digest, cell.arch, device or (cell.device.name if cell.device else ""), name


class Change(StrEnum):
    """What became of a cell."""

    GOOD = "good"
    FIXED = "fixed"
    REGRESSED = "regressed"
    STILL_BAD = "still_bad"
    NEWLY_BAD = "newly_bad"
    NEWLY_UNSUPPORTED = "newly_unsupported"
    LOST = "lost"
    GAINED = "gained"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Difference(Record):
    """One measured quantity before and after. `worse` if it grew by more than the rules accept."""

    quantity: str
    baseline: float
    candidate: float
    worse: bool
    note: str = ""

    @property
    def grew(self) -> bool:
        return self.candidate > self.baseline


@dataclass(frozen=True)
class Pair:
    """The two answers to one question; None where a side was never asked."""

    baseline: CellResult | None
    candidate: CellResult | None
    change: Change
    differences: tuple[Difference, ...] = ()

    @property
    def undecided(self) -> bool:
        """True where the candidate may be worse and nobody can say so: it is bad where the baseline
        gave no answer, or the machine failed at it."""
        if self.change is not Change.UNKNOWN or self.candidate is None:
            return False
        return self.candidate.verdict.is_finding or self.candidate.verdict in _MACHINE

    @property
    def compared(self) -> bool:
        """Whether both sides gave an answer."""
        return self.change not in (Change.UNKNOWN, Change.LOST, Change.GAINED)


_MACHINE = (Verdict.NOT_RUN, Verdict.INFRA_ERROR)
"""Nothing was learnt, and the toolchain had no part in that."""

_COMPILE_NOISE_SECONDS = 1.0
"""A compile that is less than this much longer is not longer, whatever the ratio."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: results by key, and device times of earlier runs of the same cells."""

    results: Mapping[Key, CellResult]
    timings: Mapping[Key, Sequence[Measured]]


def compare(baseline: Side, candidate: Side, rules: GateRules) -> tuple[Pair, ...]:
    """Every question that either side was asked, baseline's order first."""
    keys = dict.fromkeys([*baseline.results, *candidate.results])
    times = _Times(baseline), _Times(candidate)
    pairs = []
    for key in keys:
        before, after = baseline.results.get(key), candidate.results.get(key)
        change = classify(before, after)
        differences: list[Difference] = []
        if change is Change.GOOD and before is not None and after is not None:
            if before.cell.device is None or (*key[:2], "", key[3]) not in keys:
                differences += _compiled(before, after, rules)
            if before.cell.device is not None:
                differences += _ran(before, after)
                differences += _timed(before, after, times[0].of(key), times[1].of(key), rules)
        pairs.append(Pair(before, after, change, tuple(differences)))
    return tuple(pairs)


def classify(before: CellResult | None, after: CellResult | None) -> Change:
    """What became of a cell, going by verdicts and signatures alone."""
    if after is None:
        return Change.LOST if before is not None and before.verdict.is_good else Change.UNKNOWN
    if after.verdict.is_good:
        if before is None or before.verdict.is_unknown:
            return Change.GAINED
        return Change.GOOD if before.verdict.is_good else Change.FIXED
    if after.verdict.is_finding:
        if before is None or (before.verdict.is_unknown and before.verdict is not Verdict.UNSUPPORTED):
            return Change.UNKNOWN
        if before.verdict.is_good:
            return Change.REGRESSED
        return Change.STILL_BAD if _fault(before) == _fault(after) else Change.NEWLY_BAD
    if before is None or not before.verdict.is_good or after.verdict in _MACHINE:
        return Change.UNKNOWN
    return Change.NEWLY_UNSUPPORTED if after.verdict is Verdict.UNSUPPORTED else Change.LOST


def _fault(result: CellResult) -> str:
    return result.judgement.signature or str(result.verdict)


# --- measurements -----------------------------------------------------------------------------


def _compiled(before: CellResult, after: CellResult, rules: GateRules) -> Iterable[Difference]:
    if before.inspection is not None and after.inspection is not None:
        accepted = {
            "registers": rules.registers,
            "spills": rules.spills,
            "shared_memory": rules.shared_memory,
        }
        old, new = _resources(before.inspection), _resources(after.inspection)
        for name, extra in accepted.items():
            if old[name] != new[name]:
                yield Difference(name, old[name], new[name], new[name] > old[name] + extra)
    short, long = compile_seconds(before), compile_seconds(after)
    if short is None or long is None:
        return
    low, high = sorted((short, long))
    if high > low * rules.compile_seconds and high - low > _COMPILE_NOISE_SECONDS:
        yield Difference("compile_seconds", short, long, long > short)


def _resources(inspection: Inspection) -> dict[str, int]:
    return {
        "registers": inspection.registers,
        "spills": inspection.spill_instructions or 0,
        "shared_memory": inspection.shared_bytes + inspection.dynamic_shared_bytes,
    }


def compile_seconds(result: CellResult) -> float | None:
    """Seconds of a compile that ended: of CPU where known, as they do not grow with the machine's load."""
    if result.compile is None or result.compile.status != "ok":
        return None
    return result.compile.cpu_seconds or result.compile.wall_seconds or None


def _ran(before: CellResult, after: CellResult) -> Iterable[Difference]:
    """Outputs whose bits differ. Another order of summation does that, so it is no fault by itself."""
    old, new = _bits(before), _bits(after)
    changed = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    if changed:
        yield Difference("output_bits", 0, len(changed), True, ", ".join(changed))


def _bits(result: CellResult) -> dict[str, str]:
    outputs = (result.observation or {}).get("outputs") or ()
    return {str(output["name"]): str(output["sha256"]) for output in outputs if output.get("sha256")}


def _timed(
    before: CellResult,
    after: CellResult,
    old: Sequence[Measured],
    new: Sequence[Measured],
    rules: GateRules,
) -> Iterable[Difference]:
    """A clear change of device time. Equal machine code under one driver is equally fast by nature."""
    if not old or not new:
        return
    same_code = _cubin(before) is not None and _cubin(before) == _cubin(after)
    if same_code and _driver(before) == _driver(after):
        return
    warm_old, warm_new = ([m.warm for m in side if m.warm] for side in (old, new))
    for one, other, how in ((old, new, ""), (warm_old, warm_new, "with a warm L2 cache")):
        if not one or not other:
            continue
        moved = shift(one, other)
        if moved.clear and max(moved.ratio, 1 / moved.ratio) > rules.device_time:
            processes = f"{len(one)} and {len(other)} processes" if len(one) + len(other) > 2 else ""
            note = ", ".join(filter(None, (how, processes)))
            yield Difference("device_time", moved.baseline, moved.candidate, moved.ratio > 1, note)


class _Times:
    """Device times of one side. Cells of one case whose machine code is the same measure the same thing."""

    def __init__(self, side: Side) -> None:
        self._cubins = {key: _cubin(result) for key, result in side.results.items()}
        self._pooled: dict[tuple[str | None, ...], list[Measured]] = defaultdict(list)
        for key, result in side.results.items():
            own = measured((result.observation or {}).get("timing"))
            self._pooled[self._group(key)] += [*([own] if own else []), *side.timings.get(key, ())]

    def of(self, key: Key) -> Sequence[Measured]:
        return self._pooled.get(self._group(key), ())

    def _group(self, key: Key) -> tuple[str | None, ...]:
        cubin = self._cubins.get(key)
        return (*key[:3], cubin) if cubin else key


def _cubin(result: CellResult) -> str | None:
    return result.compile.cubin_sha256 if result.compile else None


def _driver(result: CellResult) -> str | None:
    gpu = (result.observation or {}).get("gpu") or {}
    return gpu.get("driver")
