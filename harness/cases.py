"""Property-generated cases: shapes, layouts, values and hints drawn by Hypothesis, weighted to the edges.

A list is drawn once, from a generator's seed, and then written down with the plan: every host and
every toolchain runs the same list, whatever version of Hypothesis it has. A tenth of the list is
drawn freely; each of those seeds is then varied in ways the compiler cannot tell apart (other sizes
in the same tile with the same divisibility, other data), so that thousands of cases need few compiles.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isqrt
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

from harness.kernels import get
from harness.kernels.arrays import LAYOUTS
from harness.kernels.description import ConstantArgument, Kernel
from harness.matrix.value import Generator
from harness.matrix.words import VECTOR_LAYOUTS
from harness.model import HINT_NAMES, Case, Hints, Scalar

VARIANTS = 10
"""Cases drawn per freely drawn one."""

VALUE_KINDS = ("normal", "ones", "tiny", "huge", "wide", "zero_rows", "nan", "inf")
"""What can be in the inputs; see `harness.execute.inputs`."""

_LARGEST_SIDE = 40_000
_LONGEST_OF_THREE = 2048
_PRIMES = (3, 7, 13, 61, 127, 257, 509, 1021, 2053, 4093, 8191, 16381)
EDGES = sorted(
    {1, 2, 5, 15, 17, 20_000, 32_768}
    | {p + d for p in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384) for d in (-1, 0, 1)}
    | {48, 80, 768, 1536, 3072, 5120, 12_288}
    | set(_PRIMES)
)
_HINTS = {"occupancy": (None, 1, 2, 4, 8, 12, 16, 24, 32), "num_ctas": (None,), "opt_level": (3,)}
_KNOBS: dict[str, tuple[Scalar, ...]] = {
    "allow_tma": (True, False),
    "latency": (1, 3, 10),
    "offset": (0.0, 1.0),
    "eps": (1e-6, 1e-5),
}
_DTYPES = ("bfloat16", "float16", "float32")


def draw(generator: Generator) -> tuple[Case, ...]:
    """The generator's list of distinct cases: the same for the same generator and Hypothesis."""
    axes: dict[str, Sequence[Scalar]] = dict(generator.axes)
    bases = _collect(
        base_cases(axes, generator.max_elements), -(-generator.count // VARIANTS), generator.seed
    )
    drawn = {base.digest: base for base in bases}
    chance = random.Random(generator.seed)
    for _ in range(generator.count * 4):
        if len(drawn) >= generator.count:
            break
        similar = vary(chance.choice(bases), generator.max_elements, chance)
        drawn.setdefault(similar.digest, similar)
    return tuple(drawn.values())


def _collect(strategy: st.SearchStrategy[Case], count: int, seed: int) -> list[Case]:
    """Up to `count` distinct draws."""
    found: dict[str, Case] = {}

    @hypothesis_seed(seed)
    @settings(
        max_examples=count * 4,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(case: Case) -> None:
        if len(found) < count:
            found.setdefault(case.digest, case)

    collect()
    return list(found.values())


@st.composite
def base_cases(pick: st.DrawFn, axes: Mapping[str, Sequence[Scalar]], max_elements: int) -> Case:
    """A case from anywhere in the space the axes leave open."""

    def choose(name: str, otherwise: Sequence[Scalar]) -> Any:
        return pick(st.sampled_from(tuple(axes.get(name, otherwise))))

    kernel = get(str(choose("kernel", ("rmsnorm.static_persistent",))))
    shape = pick(shapes(kernel.dims, max_elements))
    knobs = {name: choose(name, otherwise) for name, otherwise in _KNOBS.items() if name in kernel.knobs}
    knobs |= {name: choose(name, ()) for name in kernel.knobs if name in axes and name not in knobs}
    return Case(
        kernel=kernel.name,
        shape=shape,
        dtype=choose("dtype", [d for d in _DTYPES if d in (kernel.dtypes or _DTYPES)]),
        hints=Hints(**{n: choose(n, _HINTS.get(n, ())) for n in HINT_NAMES if n in _HINTS or n in axes}),
        knobs=tuple(sorted(knobs.items())),
        layout=choose("layout", ("contiguous", *(LAYOUTS if len(shape) > 1 else VECTOR_LAYOUTS))),
        values=choose("values", ("normal", "normal", *VALUE_KINDS)),
        seed=pick(st.integers(0, 2**16)),
        engine=str(choose("engine", ())) if "engine" in axes else Case.engine,
    )


def vary(base: Case, max_elements: int, chance: random.Random) -> Case:
    """Another case the compiler cannot tell from `base`: same tile, same divisibility, same hints."""
    kernel = get(base.kernel)
    shape = _similar(base.shape, kernel, max_elements, chance)
    return replace(
        base,
        shape=shape,
        values=chance.choice(("normal", base.values)),
        seed=chance.randrange(2**16),
    )


def _similar(
    shape: tuple[int, ...], kernel: Kernel, max_elements: int, chance: random.Random
) -> tuple[int, ...]:
    """Other extents that make the compiler assume the same."""
    if kernel.dims != ("M", "N"):
        side = _side(kernel.dims, max_elements)
        return tuple(_congruent(extent, 1, side, chance) for extent in shape)
    rows, columns = shape
    if not _bakes_in(kernel, "N"):
        top = 1 << max(columns - 1, 0).bit_length()
        columns = _congruent(columns, top // 2 + 1, min(top, max_elements, _LARGEST_SIDE), chance)
    rows = _like(rows, 0, min(max_elements // columns, chance.choice((40, 300, 70_000))), chance)
    return (rows, columns)


@st.composite
def shapes(pick: st.DrawFn, dims: tuple[str, ...], max_elements: int) -> tuple[int, ...]:
    """An extent per dimension, so that no array of two of them has more than `max_elements`."""
    if dims == ("M", "N"):
        columns = pick(sizes(1, min(_LARGEST_SIDE, max_elements)))
        return (pick(row_counts(max_elements // columns)), columns)
    return tuple(pick(sizes(1, _side(dims, max_elements))) for _ in dims)


def _side(dims: tuple[str, ...], max_elements: int) -> int:
    """The longest side of a vector, or of arrays of any two dimensions."""
    return max_elements if len(dims) == 1 else max(1, min(_LONGEST_OF_THREE, isqrt(max_elements)))


def sizes(low: int, high: int) -> st.SearchStrategy[int]:
    """Sizes of a side: mostly edges (powers of two, multiples of 16, their neighbours)."""
    edges = [edge for edge in EDGES if low <= edge <= high] or [low]
    small = st.integers(low, max(low, min(high, 4096)))
    return st.one_of(st.sampled_from(edges), st.sampled_from(edges), small, st.integers(low, max(low, high)))


def row_counts(most: int) -> st.SearchStrategy[int]:
    """Numbers of rows: none, fewer than a tile, one off a tile, primes, many."""
    edges = [m for m in (0, 1, 2, 3, 15, 16, 17, 31, 33, 64, 127, 128, 1021, 4096, 16_384) if m <= most]
    return st.one_of(
        st.sampled_from(edges), st.integers(0, min(most, 300)), st.integers(0, min(most, 70_000))
    )


def _like(value: int, low: int, high: int, chance: random.Random) -> int:
    """A number in [low, high] that is a multiple of 16 exactly when `value` is; else `value`."""
    found = chance.randint(low, max(low, high))
    if value % 16 == 0:
        found -= found % 16
    elif found % 16 == 0:
        found += 1
    return found if low <= found <= high else value


def _congruent(value: int, low: int, high: int, chance: random.Random) -> int:
    """A number in [low, high] with the same remainder by 16, so that every stride that can follow
    from it, in elements or bytes, is divisible by what it was; else `value`."""
    found = chance.randint(low, max(low, high))
    found += (value - found) % 16
    return found if found <= high else value


def _bakes_in(kernel: Kernel, dimension: str) -> bool:
    return any(isinstance(a, ConstantArgument) and a.of == dimension for a in kernel.arguments)
