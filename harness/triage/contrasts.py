"""Along which axes an answer changed while nothing else did. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from packaging.version import Version

from harness.triage.asked import Asked, Setting
from harness.triage.variants import AXES as CHANGES
from harness.triage.variants import HINT_AXES

AXES = ("frontend", "toolchain", "architecture", "opt level", *CHANGES)
"""The axes that may decide, as reports name them."""


@dataclass(frozen=True)
class Decision:
    """An axis along which the answer changed while nothing else did: values that fail and that do not."""

    axis: str
    bad: tuple[str, ...]
    good: tuple[str, ...]


def contrasts(
    kind: Sequence[Asked], good: Sequence[Asked], every: Sequence[Asked]
) -> tuple[tuple[Decision, ...], tuple[str, ...]]:
    """Axes that turn one kind of failure into a success, and those along which `every` failure only changes
    its kind. Counted are pairs that differ along one axis and nothing else.
    """
    fails: dict[str, set[str]] = defaultdict(set)
    passes: dict[str, set[str]] = defaultdict(set)
    for one, other in product(kind, good):
        axis = _only_axis(one.setting, other.setting)
        if axis is not None:
            fails[axis].add(value_of(one, axis))
            passes[axis].add(value_of(other, axis))
    changed: set[str | None] = {
        _only_axis(one.setting, other.setting)
        for one, other in combinations(every, 2)
        if one.result.judgement.signature != other.result.judgement.signature
    }
    decided = tuple(
        Decision(axis, _sorted(axis, fails[axis]), _sorted(axis, passes[axis]))
        for axis in AXES
        if fails[axis]
    )
    return decided, tuple(axis for axis in AXES if axis in changed and not fails[axis])


def _only_axis(one: Setting, other: Setting) -> str | None:
    """The single axis along which two settings differ. A level that is left to the decorator is not
    compared with one that is named: it may be the same."""
    if one.kernel != other.kernel:
        return None
    apart = [axis for axis, value in one.axes.items() if other.axes[axis] != value]
    if len(apart) != 1:
        return None
    if apart[0] == "opt level" and None in (one.level, other.level):
        return None
    if apart[0] != "variant":
        return apart[0]
    named = {setting.variant[0] for setting in (one, other) if setting.variant[0]}
    return named.pop() if len(named) == 1 else None


def value_of(asked: Asked, axis: str) -> str:
    """A setting's value along an axis, in words."""
    setting = asked.setting
    case = asked.result.cell.case
    if axis in HINT_AXES:
        value = getattr(case.hints, axis)
    elif axis in CHANGES:
        reported = case.dtype if axis == "dtype" else "as reported"
        return setting.variant[1] or reported
    else:
        value = setting.axes[axis]
    return "as decorated" if value is None else str(value)


def _sorted(axis: str, values: Iterable[str]) -> tuple[str, ...]:
    if axis in ("frontend", "toolchain"):
        return tuple(sorted(values, key=Version))
    return tuple(sorted(values, key=lambda value: (value != "as reported", len(value), value)))
