"""Drawn cases: the same list every time, weighted to the edges, and few compiles for many cases."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases import VALUE_KINDS, base_cases, draw, vary
from harness.kernels import get, names
from harness.kernels.arrays import LAYOUTS
from harness.matrix.value import Generator
from harness.model import Case

_RMSNORM = tuple(name for name in names() if name.startswith("rmsnorm."))
_OTHERS = tuple(name for name in names() if not name.startswith("rmsnorm."))
_LIMIT = 1 << 20


def generator(count: int, **axes: tuple[object, ...]) -> Generator:
    return Generator(1, count, 7, _LIMIT, tuple(axes.items()))  # type: ignore[arg-type]


def specialisations(cases: tuple[Case, ...]) -> set[str]:
    return {get(case.kernel).specialise(case).digest for case in cases}


def test_a_list_is_drawn_the_same_twice_and_needs_few_compiles() -> None:
    asked = generator(300, kernel=_RMSNORM)
    cases = draw(asked)
    assert cases == draw(asked)
    assert len({case.digest for case in cases}) == len(cases) == 300
    assert len(specialisations(cases)) * 8 <= len(cases)


def test_edges_are_among_the_cases() -> None:
    cases = draw(generator(600, kernel=_RMSNORM))
    columns = [case.shape[1] for case in cases]
    assert any(n & (n - 1) == 0 for n in columns) and any(n & (n - 1) for n in columns)
    assert sum(bool(n & (n - 1)) for n in columns) > len(columns) // 3
    assert any(case.shape[0] == 0 for case in cases)
    assert all(case.shape[0] * case.shape[1] <= _LIMIT for case in cases)
    assert {case.layout for case in cases} == set(LAYOUTS)
    assert {case.values for case in cases} <= set(VALUE_KINDS)


def test_axes_that_are_spelled_out_are_kept_to() -> None:
    cases = draw(
        generator(50, kernel=_RMSNORM[:1], dtype=("float16",), occupancy=(4, None), allow_tma=(False,))
    )
    assert {case.dtype for case in cases} == {"float16"}
    assert {case.hints.occupancy for case in cases} <= {4, None}
    assert {case.knob("allow_tma") for case in cases} == {False}


@given(base_cases({"kernel": _RMSNORM}, _LIMIT), st.integers())
def test_a_variant_is_the_same_to_the_compiler(base: Case, seed: int) -> None:
    varied = vary(base, _LIMIT, random.Random(seed))
    kernel = get(base.kernel)
    assert kernel.specialise(varied).digest == kernel.specialise(base).digest


@pytest.mark.parametrize("name", _RMSNORM)
def test_every_kernel_can_be_drawn(name: str) -> None:
    assert {case.kernel for case in draw(generator(12, kernel=(name,)))} == {name}


@pytest.mark.parametrize("name", _OTHERS)
def test_cases_of_every_kernel_can_be_drawn_placed_and_varied(name: str) -> None:
    kernel = get(name)
    cases = draw(generator(60, kernel=(name,)))
    assert len(cases) == 60
    for case in cases:
        assert len(case.shape) == len(kernel.dims)
        assert case.dtype in kernel.dtypes
        assert all(math.prod(placed.shape) <= _LIMIT for placed in kernel.placements(case))
    assert len(specialisations(cases)) * 4 <= len(cases)
