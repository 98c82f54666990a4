"""Simpler configurations: only ones that differ from the case, the simplest first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.kernels import get, names
from harness.kernels.arrays import LAYOUTS
from harness.model import Case, Constant, Hints
from harness.reduce.config import config_passes, cost, simpler_hints
from harness.reduce.engine import Problem, minimise

CASE = Case(
    "rmsnorm.static_persistent",
    (16384, 512),
    "bfloat16",
    Hints(occupancy=16),
    (("allow_tma", False), ("latency", 10)),
    layout="odd_rows",
    values="huge",
    seed=7,
)
STATIC = get(CASE.kernel)


def proposed(name: str, case: Case = CASE) -> list[Case]:
    (each,) = (p for p in config_passes(STATIC) if p.name == name)
    return list(each.variants(case))


def test_sizes_are_powers_of_two_from_one_on() -> None:
    assert [case.shape for case in proposed("smaller N")] == [(16384, 2**k) for k in range(9)]
    assert proposed("smaller M", replace(CASE, shape=(1, 512))) == []


def test_knobs_are_left_to_the_kernel_together_or_alone() -> None:
    assert [case.knobs for case in proposed("default knobs")] == [
        (),
        (("latency", 10),),
        (("allow_tma", False),),
    ]


def test_a_knob_that_must_be_spelled_out_becomes_smaller() -> None:
    assert [case.knob("latency") for case in proposed("smaller latency")] == [1, 2, 4, 8]
    assert proposed("smaller allow_tma") == []


def test_plain_dtypes_come_first() -> None:
    assert [case.dtype for case in proposed("plain dtype")] == ["float32", "float16"]
    eight_bit = proposed("plain dtype", replace(CASE, dtype="float8_e4m3fn"))
    assert [case.dtype for case in eight_bit] == ["float32", "float16", "bfloat16", "float64"]


def test_the_dtype_of_spelled_out_parameters_is_theirs() -> None:
    own = replace(CASE, parameters=(Constant("A", 1),))
    assert proposed("plain dtype", own) == []


def test_hints_go_together_then_alone_then_shrink() -> None:
    found = list(simpler_hints(Hints(occupancy=4, num_ctas=2, opt_level=2)))
    assert found == [
        Hints(),
        Hints(4, None, 2),
        Hints(4, 2, 3),
        Hints(None, 2, 2),
        Hints(4, 1, 2),
        Hints(1, 2, 2),
        Hints(2, 2, 2),
    ]
    assert list(simpler_hints(Hints())) == []


def test_data_and_layout_become_plain() -> None:
    assert [(c.values, c.seed) for c in proposed("plain data")] == [("normal", 0), ("huge", 0)]
    layouts = list(LAYOUTS)
    assert [c.layout for c in proposed("plain layout")] == layouts[: layouts.index("odd_rows")]


def _drawn(kernel: str, sides: tuple[int, ...], **settings: Any) -> Case:
    return Case(kernel, sides[: len(get(kernel).dims)], **settings)


cases = st.builds(
    _drawn,
    kernel=st.sampled_from(names()),
    sides=st.tuples(*[st.integers(1, 40_000)] * 3),
    dtype=st.sampled_from(["bfloat16", "float16", "float32", "float8_e5m2"]),
    hints=st.builds(Hints, st.sampled_from([None, 1, 16, 32]), st.sampled_from([None, 2]), st.integers(0, 3)),
    knobs=st.sampled_from([(), (("latency", 3),), (("eps", 1e-6), ("offset", 1.0), ("tile_n", 256))]),
    layout=st.sampled_from(list(LAYOUTS)),
    values=st.sampled_from(["normal", "nan"]),
    seed=st.integers(0, 3),
)


@given(cases)
def test_with_nothing_to_keep_the_plainest_case_is_left(case: Case) -> None:
    problem = Problem[Case](lambda case: True, cost, lambda case: case.digest)
    outcome = minimise(case, config_passes(get(case.kernel)), problem)
    assert outcome.best == Case(case.kernel, (1,) * len(case.shape), "float32")


@given(cases)
def test_what_the_fault_needs_stays(case: Case) -> None:
    def interesting(candidate: Case) -> bool:
        return candidate.hints.occupancy == case.hints.occupancy and candidate.shape[-1] * 2 > case.shape[-1]

    problem = Problem(interesting, cost, lambda candidate: candidate.digest)
    outcome = minimise(case, config_passes(get(case.kernel)), problem)
    assert interesting(outcome.best)
    assert outcome.best.hints == Hints(case.hints.occupancy)
    assert set(outcome.best.shape[:-1]) <= {1}
    assert outcome.best.knobs == ()


@pytest.mark.parametrize("name", names())
def test_every_knob_of_a_kernel_has_a_pass(name: str) -> None:
    kernel = get(name)
    passes = {each.name for each in config_passes(kernel)}
    assert {f"smaller {knob}" for knob in kernel.knobs} <= passes
