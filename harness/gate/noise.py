"""Whether one device time is really longer than another. Pure.

Launches of one process scatter a little, and processes scatter more: clocks, memory placement and
neighbours stay the same within one and differ between two. So a ratio of two medians proves nothing
by itself. A shift is `clear` only if

- all launches of one side against all of the other say so (Mann-Whitney), where the launches are
  known, and
- the sides do not interleave: no process of the slower side was as fast as one of the faster side.
  Where a side has a single process, its 10th to 90th percentile stands for the scatter it hides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from statistics import NormalDist, median, quantiles
from typing import Any

from harness.model import Record

SIGNIFICANCE = 0.01
_ENOUGH = 5
"""Launches below which ranks say nothing."""


@dataclass(frozen=True)
class Measured(Record):
    """Device time in one process, in microseconds; `low` and `high` are its 10th and 90th percentile.

    `warm` is the same without flushing the L2 cache before each launch, where that was measured too.
    """

    median: float
    low: float
    high: float
    samples: tuple[float, ...] = ()
    warm: Measured | None = None


@dataclass(frozen=True)
class Shift(Record):
    """Median times in microseconds, and whether the difference stands out of the noise."""

    baseline: float
    candidate: float
    clear: bool

    @property
    def ratio(self) -> float:
        return self.candidate / self.baseline


def measured(timing: Mapping[str, Any] | None) -> Measured | None:
    """What an observation's `timing` says; None where nothing was timed."""
    if not timing or not timing.get("median_us"):
        return None
    middle, spread = float(timing["median_us"]), float(timing.get("spread_us") or 0.0)
    samples = tuple(float(sample) for sample in timing.get("samples_us") or ())
    warm = _sampled(tuple(float(sample) for sample in timing.get("warm_samples_us") or ()))
    if (cold := _sampled(samples)) is not None:
        return replace(cold, median=middle, warm=warm)
    return Measured(middle, middle - spread / 2, middle + spread / 2, warm=warm)


def _sampled(samples: tuple[float, ...]) -> Measured | None:
    """A process by its launches; None where they are too few to show their scatter."""
    if len(samples) < _ENOUGH:
        return None
    deciles = quantiles(samples, n=10, method="inclusive")
    return Measured(median(samples), deciles[0], deciles[-1], samples)


def shift(baseline: Sequence[Measured], candidate: Sequence[Measured]) -> Shift:
    """Compare the processes of one side with those of the other; neither side may be empty."""
    before, after = (median(process.median for process in side) for side in (baseline, candidate))
    slow, fast = (candidate, baseline) if after >= before else (baseline, candidate)
    apart = min(_ends(slow)[0]) > max(_ends(fast)[1])
    ranks = [sample for process in slow for sample in process.samples]
    others = [sample for process in fast for sample in process.samples]
    if len(ranks) >= _ENOUGH and len(others) >= _ENOUGH:
        apart = apart and rank_test(ranks, others) < SIGNIFICANCE
    return Shift(before, after, apart)


def _ends(side: Sequence[Measured]) -> tuple[list[float], list[float]]:
    """Between which times each process lies: its median where there are others to show the scatter."""
    if len(side) > 1:
        medians = [process.median for process in side]
        return medians, medians
    return [side[0].low], [side[0].high]


def rank_test(one: Sequence[float], other: Sequence[float]) -> float:
    """Two-sided p-value of Mann and Whitney's U, by the normal approximation with correction for
    ties and continuity; good from about five samples a side."""
    pooled = sorted([(value, True) for value in one] + [(value, False) for value in other])
    sizes, ranks, seen = [], 0.0, 0
    for _, group in groupby(pooled, key=lambda pair: pair[0]):
        tied = list(group)
        ranks += sum(mine for _, mine in tied) * (seen + (len(tied) + 1) / 2)
        seen += len(tied)
        sizes.append(len(tied))
    count = len(one) * len(other)
    u = ranks - len(one) * (len(one) + 1) / 2
    ties = sum(size**3 - size for size in sizes) / (seen * (seen - 1))
    deviation = sqrt(count / 12 * (seen + 1 - ties))
    if deviation == 0:
        return 1.0
    distance = max(0.0, abs(u - count / 2) - 0.5)
    return 2 * NormalDist().cdf(-distance / deviation)
