"""What the answers of a sweep mean: where it fails, what decides, what changed, what passes nearby. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import Version

from harness.model import Verdict
from harness.triage.asked import Asked, Setting, is_failure, is_rejection, is_unread, short
from harness.triage.contrasts import Decision, contrasts, value_of
from harness.triage.variants import AXES as CHANGES
from harness.triage.variants import HINT_AXES


@dataclass(frozen=True)
class Turn:
    """What became of one input from release to release of the backend."""

    cuda_toolkit: str
    outcome: str


@dataclass(frozen=True)
class OtherKind:
    """Failures of one more kind: the newest, how many, and what turns it into a success."""

    worst: Asked
    failures: int
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class KernelFinding:
    """All about one kernel of the file.

    `worst` is the newest failure of the main kind, None where nothing failed. `decisions` are axes that turn
    it into a success, `ways` those that only change how it fails. `kinds` are other failures of the kernel as
    reported, `others` those that only changed parameters show, `rejected` what frontends say that will not
    have the kernel at all, `unread` why our own copy of it could not be imported, `silent` the answers that
    tell nothing of it, counted.
    """

    kernel: str
    worst: Asked | None
    failures: int
    passes: int
    outcomes: Mapping[str, int]
    decisions: tuple[Decision, ...]
    ways: tuple[str, ...]
    turns: tuple[Turn, ...]
    control: Asked | None
    control_differs: str
    other_release: Asked | None = None
    """The same input on the nearest cuda-toolkit that does not fail."""
    broken: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    kinds: tuple[OtherKind, ...] = ()
    unread: tuple[str, ...] = ()
    silent: Mapping[str, int] = field(default_factory=dict)
    unasked: int = 0
    """Settings that were in mind when the budget was spent."""

    @property
    def is_something(self) -> bool:
        """Whether there is something to report: a failure, or a kernel that no frontend takes."""
        return self.worst is not None or (bool(self.rejected) and not self.passes)


def findings(
    asked: Iterable[Asked], order: Sequence[str] = (), unasked: Iterable[Setting] = ()
) -> list[KernelFinding]:
    """A finding per kernel: those that fail first, and then in this order, or that of the answers.
    `unasked` are settings that there was no time for."""
    every = list(asked)
    answered = dict.fromkeys(a.setting.kernel for a in every)
    kernels = [*(kernel for kernel in order if kernel in answered), *answered]
    left = Counter(setting.kernel for setting in unasked)
    found = [replace(_of_kernel(k, every), unasked=left[k]) for k in dict.fromkeys(kernels)]
    return sorted(found, key=lambda one: one.worst is None)


def _of_kernel(kernel: str, every: Sequence[Asked]) -> KernelFinding:
    mine = [a for a in every if a.setting.kernel == kernel]
    reported = {
        a.result.judgement.signature for a in mine if is_failure(a.result) and not a.setting.variant[0]
    }
    bad = [a for a in mine if is_failure(a.result) and a.result.judgement.signature in reported]
    other = [a for a in mine if is_failure(a.result) and a.result.judgement.signature not in reported]
    good = [a for a in mine if a.result.verdict.is_good]
    known = [*bad, *other, *(a for a in mine if is_rejection(a.result))]
    kinds = _kinds(bad)
    main = kinds[0] if kinds else []
    worst = max(main, key=lambda a: _order(a.setting), default=None)
    decisions, ways = contrasts(main, good, bad)
    control, apart = _control(worst, good, every)
    counts: dict[str, int] = defaultdict(int)
    for one in bad:
        counts[short(one.result)] += 1
    broken = {a.setting.cuda_toolkit for a in mine if a.result.verdict is Verdict.TOOLCHAIN_BROKEN}
    rejections: dict[str, set[str]] = defaultdict(set)
    for one in mine:
        if is_rejection(one.result) and not one.setting.variant[0]:
            summary = one.result.judgement.summary
            words = summary.partition("rejects the kernel with ")[2] or summary
            rejections[words].add(one.setting.cuda_tile)
    unread = dict.fromkeys(a.result.judgement.summary for a in mine if is_unread(a.result))
    return KernelFinding(
        kernel=kernel,
        worst=worst,
        failures=len(bad),
        passes=len(good),
        outcomes=dict(counts),
        decisions=decisions,
        ways=ways,
        turns=_turns(worst, mine),
        control=control,
        control_differs=apart,
        other_release=_other_release(worst, good),
        broken=tuple(sorted(broken, key=Version)),
        others=tuple(sorted({f"{a.setting.variant[1]}: {short(a.result)}" for a in other})),
        rejected=tuple(
            f"cuda-tile {', '.join(sorted(versions, key=Version))}: {words}"
            for words, versions in rejections.items()
        ),
        kinds=tuple(
            OtherKind(max(kind, key=lambda a: _order(a.setting)), len(kind), contrasts(kind, good, kind)[0])
            for kind in kinds[1:]
        ),
        unread=tuple(unread),
        silent=dict(
            Counter(short(a.result) for a in mine if not a.result.verdict.is_good and a not in known)
        ),
    )


def _kinds(bad: Sequence[Asked]) -> list[list[Asked]]:
    """Failures by signature, the main kind first: what ends without an answer comes last, then the kind with
    most settings as reported, then the newest."""
    found: dict[str | None, list[Asked]] = defaultdict(list)
    for one in bad:
        found[one.result.judgement.signature].append(one)

    def weight(kind: list[Asked]) -> tuple[bool, int, tuple[bool, Version, Version]]:
        ends = kind[0].result.verdict is not Verdict.COMPILE_TIMEOUT
        plain = sum(_plain(a.setting) for a in kind)
        return ends, plain, max(_order(a.setting) for a in kind)

    return sorted(found.values(), key=weight, reverse=True)


def _plain(setting: Setting) -> bool:
    return setting.level is None and not setting.variant[0]


def _order(setting: Setting) -> tuple[bool, Version, Version]:
    return _plain(setting), Version(setting.cuda_tile), Version(setting.cuda_toolkit)


# --- what changed, and what to compare with ---------------------------------------------------


def _turns(worst: Asked | None, mine: Sequence[Asked]) -> tuple[Turn, ...]:
    """One input through all backends: the same kernel, frontend, architecture and level."""
    if worst is None:
        return ()
    base = {**worst.setting.axes, "toolchain": None}
    same = [a for a in mine if {**a.setting.axes, "toolchain": None} == base]
    ordered = sorted(same, key=lambda a: Version(a.setting.cuda_toolkit))
    return tuple(Turn(a.setting.cuda_toolkit, short(a.result)) for a in ordered)


def _other_release(worst: Asked | None, good: Sequence[Asked]) -> Asked | None:
    if worst is None:
        return None
    at = worst.setting
    same = [a for a in good if replace(a.setting, cuda_toolkit=at.cuda_toolkit) == at]
    return min(same, key=lambda a: _distance(at, a.setting), default=None)


def _control(worst: Asked | None, good: Sequence[Asked], every: Sequence[Asked]) -> tuple[Asked | None, str]:
    """The nearest setting that passes: of the same kernel, fewest axes apart and nearest in version; else
    another kernel of the file in the very same setting."""
    if worst is None:
        return None, ""
    if good:
        nearest = min(good, key=lambda a: _distance(worst.setting, a.setting))
        return nearest, _difference(worst, nearest)
    others = [
        a
        for a in every
        if a.result.verdict.is_good and a.setting.axes == worst.setting.axes and a is not worst
    ]
    if others:
        return others[0], f"kernel {others[0].setting.kernel} beside it"
    return None, ""


def _distance(bad: Setting, good: Setting) -> tuple[int, int, float]:
    changed = [axis for axis, value in bad.axes.items() if good.axes[axis] != value]
    apart = [good.variant[0] or bad.variant[0] if axis == "variant" else axis for axis in changed]
    rank = (*HINT_AXES, "opt level", *CHANGES, "toolchain", "architecture", "frontend")
    version = abs(_number(bad.cuda_toolkit) - _number(good.cuda_toolkit))
    version += abs(_number(bad.cuda_tile) - _number(good.cuda_tile))
    return len(apart), sum(rank.index(axis) for axis in apart), version


def _number(text: str) -> float:
    version = Version(text)
    return version.major * 1e4 + version.minor * 1e2 + version.micro


def _difference(bad: Asked, good: Asked) -> str:
    told = []
    for axis, value in bad.setting.axes.items():
        if good.setting.axes[axis] == value:
            continue
        named = good.setting.variant[0] or bad.setting.variant[0] if axis == "variant" else axis
        told.append(f"{named} {value_of(good, named)} instead of {value_of(bad, named)}")
    return ", ".join(told)
