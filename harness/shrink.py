"""A failing case made small: the least shape, the plainest data and settings that still fail alike.

Hypothesis does the shrinking. Every choice is an index into a list that begins with the simplest; the
failing case's own value fills the end of each list, so that Hypothesis draws that case at once and
then moves towards the beginning. What a compiler would have to see first is never tried: candidates come
from what has a cubin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from harness.cases import EDGES, VALUE_KINDS
from harness.kernels.arrays import LAYOUTS
from harness.model import Case

_EVERY_SIZE_UP_TO = 300
_SEEDS = (0, 1, 2, 3)

T = TypeVar("T")


@dataclass
class Search:
    """What may be tried: `can_run` is cheap and asked first, `fails` runs the case, at most `most` times.

    A case that is not run for want of budget counts as one that does not fail.
    """

    can_run: Callable[[Case], bool]
    fails: Callable[[Case], bool]
    most: int = 60
    known: dict[str, bool] = field(default_factory=dict)
    runs: int = 0

    def __call__(self, case: Case) -> bool:
        if case.digest not in self.known:
            answer = False
            if self.runs < self.most and self.can_run(case):
                self.runs += 1
                answer = self.fails(case)
            self.known[case.digest] = answer
        return self.known[case.digest]


def shrink(failing: Case, templates: Sequence[Case], search: Search) -> Case:
    """The simplest case found that fails as `failing` does; `failing` itself where there is none.

    `templates` are cases of which those of the same kernel lend their dtype, hints and knobs.
    """
    search.known[failing.digest] = True
    try:
        return find(
            _candidates(failing, templates, search.can_run),
            search,
            settings=settings(
                max_examples=1000,
                database=None,
                deadline=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
                verbosity=Verbosity.quiet,
            ),
            random=Random(0),
        )
    except NoSuchExample:
        return failing


def _candidates(
    failing: Case, templates: Sequence[Case], can_run: Callable[[Case], bool]
) -> st.SearchStrategy[Case]:
    """Cases no larger than `failing`. A value that cannot run in place of the case's own is left out
    beforehand: Hypothesis moves along a list in steps, and would be stopped by gaps."""
    shape = failing.shape

    def usable(values: Sequence[T], place: Callable[[T], Case]) -> list[T]:
        return [value for value in values if can_run(place(value))]

    frames = sorted({_bare(t) for t in templates if t.kernel == failing.kernel}, key=_complexity)
    data = {"shape": shape, "values": failing.values, "layout": failing.layout, "seed": failing.seed}

    def extents(axis: int) -> st.SearchStrategy[int]:
        sizes = _sizes(0 if axis == 0 else 1, shape[axis])  # there may be no rows, but not no columns
        resized = usable(sizes, lambda n: replace(failing, shape=(*shape[:axis], n, *shape[axis + 1 :])))
        return _rising(shape[axis], resized)

    return st.builds(
        lambda shape, values, layout, seed, frame: replace(
            frame, shape=shape, values=values, layout=layout, seed=seed
        ),
        shape=st.tuples(*(extents(axis) for axis in range(len(shape)))),
        values=_rising(failing.values, VALUE_KINDS),
        layout=_rising(failing.layout, usable(list(LAYOUTS), lambda name: replace(failing, layout=name))),
        seed=_rising(failing.seed, [seed for seed in _SEEDS if seed < failing.seed]),
        frame=_rising(_bare(failing), usable(frames, lambda frame: replace(frame, **data))),
    )


def _rising(own: T, simpler: Sequence[T]) -> st.SearchStrategy[T]:
    """The simpler values, as far as they come before `own`, then `own` many times over."""
    before = list(simpler)
    if own in before:
        before = before[: before.index(own)]
    return st.sampled_from([*before, *[own] * (8 * len(before) + 1)])


def _sizes(low: int, high: int) -> list[int]:
    small = range(low, min(high, _EVERY_SIZE_UP_TO + 1))
    return sorted({*small, *(edge for edge in EDGES if low <= edge < high)})


def _bare(case: Case) -> Case:
    """The kernel and its settings, without shape and data."""
    return replace(case, shape=(0,) * len(case.shape), values="normal", layout="contiguous", seed=0)


def _complexity(case: Case) -> tuple[int, str]:
    """How much there is to say about a case, and something that makes the order total."""
    said = [value for value in case.settings.values() if value is not None]
    return (len(said) + sum(len(str(value)) for value in said), case.digest)
