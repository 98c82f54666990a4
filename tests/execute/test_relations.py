"""Second ways to the same answer: which hold, and what a kernel that breaks one looks like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver
from hypothesis import given
from hypothesis import strategies as st
from test_session import KERNELS, launch_of, observe, rmsnorm

from harness.execute.launches import RELATED, relations_of
from harness.execute.launches import launch_of as real_launch_of
from harness.execute.protocol import Relation, Timeouts
from harness.execute.relations import SCALE_STEP, least_rmsnorm_scale
from harness.execute.verdict import judge_run
from harness.kernels import get, names
from harness.kernels.arrays import LAYOUTS
from harness.model import Case, Cell, Inspection, Toolchain, Verdict

AXES = {"x": 0, "y": 0, "rstd": 0}
KINDS = ("rows_permuted", "rows_split", "scaled")


def relations_for(rows: int) -> tuple[Relation, ...]:
    whole, half = (rows, (4, 1, 1)), rows // 2
    parts = ((half, (4, 1, 1)), (rows - half, (4, 1, 1)))
    return tuple(Relation(k, AXES, parts if k == "rows_split" else (whole,)) for k in KINDS)


def observed(tmp_path: Path, symbol: str, spoil: Any = None, values: str = "normal", **changes: Any) -> Any:
    launch = launch_of(tmp_path, symbol, relations=relations_for(12), **changes)
    arguments = tuple(replace(a, values=values) if a.name == "x" else a for a in launch.arguments)
    driver = FakeDriver({**KERNELS, "spoilt": rmsnorm(spoil)})
    return observe(replace(launch, arguments=arguments), driver), driver


@pytest.mark.parametrize("values", ["normal", "ones", "zero_rows", "tiny"])
def test_a_right_kernel_keeps_all_relations(tmp_path: Path, values: str) -> None:
    seen, driver = observed(tmp_path, "good", values=values)
    assert [(r.kind, r.output) for r in seen.relations] == [(k, o) for k in KINDS for o in ("y", "rstd")]
    assert all(r.differing == r.beyond_bound == r.outside_bytes == 0 for r in seen.relations)
    assert driver.launches == 3 + 1 + 2 + 2
    judgement = judge_run(seen)
    assert judgement.verdict is Verdict.PASS
    assert judgement.advice == ()
    assert len(judgement.evidence["relations"]) == 6


@pytest.mark.parametrize("values", ["huge", "nan", "inf"])
def test_scaling_is_left_out_where_it_does_not_hold(tmp_path: Path, values: str) -> None:
    seen, _ = observed(tmp_path, "good", values=values)
    assert {r.kind for r in seen.relations} == {"rows_permuted", "rows_split"}
    assert all(not r.differing for r in seen.relations)


def test_a_relation_broken_beyond_the_bound_is_a_wrong_result_of_its_own(tmp_path: Path) -> None:
    def spoil(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
        if driver.launches == 4:
            y[3] = y[3] * 2

    seen, _ = observed(tmp_path, "spoilt", spoil)
    assert seen.looks_bad
    judgement = judge_run(seen)
    assert judgement.verdict is Verdict.WRONG_RESULT
    assert judgement.signature == "wrong_result: y with rows permuted"
    assert judgement.summary == (
        "y with rows permuted: 40 of 480 elements are outside the error bound, though the plain launch is "
        "right; 40 of 480 elements: 1 whole rows, only 3"
    )


def test_other_bits_inside_the_bound_are_a_remark(tmp_path: Path) -> None:
    def spoil(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
        if driver.launches > 6:
            rstd.view(np.uint32)[2] += driver.launches - 6

    seen, _ = observed(tmp_path, "spoilt", spoil)
    assert not seen.looks_bad
    judgement = judge_run(seen)
    assert judgement.verdict is Verdict.PASS
    assert [(a.kind, a.text) for a in judgement.advice] == [
        (
            "relation_broken",
            "rstd with x scaled by a power of two has other bits, within the error bound (1 of 12 elements)",
        )
    ]


def test_a_write_outside_in_a_short_launch_is_seen(tmp_path: Path) -> None:
    def spoil(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
        if driver.launches == 5:  # the first half
            wide = np.lib.stride_tricks.as_strided(rstd, (rstd.size + 1,), rstd.strides)
            wide[-1] = 1.0

    seen, _ = observed(tmp_path, "spoilt", spoil)
    judgement = judge_run(seen)
    assert judgement.signature == "wrong_result: rstd with rows in two launches"
    assert "4 bytes around or between its elements were overwritten" in judgement.summary


@given(
    columns=st.integers(1, 300),
    eps=st.sampled_from([0.0, 1e-12, 1e-6, 1e-3]),
    binade=st.integers(-20, 20),
    seed=st.integers(0, 1000),
)
def test_float32_arithmetic_keeps_the_scaling_relation(
    columns: int, eps: float, binade: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    x = (random.standard_normal((3, columns)) * 2.0**binade).astype(np.float32)
    least = least_rmsnorm_scale(x, {"eps": eps})
    if least is None:
        return
    order = random.permutation(columns)

    def kernel(exponent: int) -> tuple[Any, Any]:
        scaled = np.ldexp(x, exponent)[:, order]
        total = np.add.accumulate(scaled * scaled, axis=1, dtype=np.float32)[:, -1]
        r = np.float32(1) / np.sqrt(total / np.float32(columns) + np.float32(eps))
        return scaled * r[:, None], r

    (y, r), (y_larger, r_larger) = kernel(least), kernel(least + SCALE_STEP)
    assert np.array_equal(y, y_larger)
    assert np.array_equal(np.ldexp(r, -SCALE_STEP), r_larger)


@st.composite
def cases(pick: st.DrawFn) -> Case:
    kernel = get(pick(st.sampled_from(names())))
    flat = len(kernel.dims) == 1
    return Case(
        kernel=kernel.name,
        shape=tuple(pick(st.integers(1 if n else 0, 200)) for n in range(len(kernel.dims))),
        dtype=pick(st.sampled_from(["bfloat16", "float32"])),
        layout=pick(st.sampled_from(["contiguous", "offset"] if flat else list(LAYOUTS))),
        seed=pick(st.integers(0, 50)),
    )


@given(cases())
def test_every_launch_keeps_to_what_the_cubin_assumes(case: Case) -> None:
    kernel = get(case.kernel)
    rows = case.shape[0]
    for relation in relations_of(case, kernel, 132):
        assert sum(n for n, _ in relation.parts) == rows
        for n, grid in relation.parts:
            assert n > 0
            assert min(grid) >= 1
            if rows % 16 == 0:
                part = replace(case, shape=(n, *case.shape[1:]))
                assert kernel.specialise(part).digest == kernel.specialise(case).digest
            assert Relation.from_json(relation.to_json()) == relation


def test_a_share_of_the_cases_is_related_for_every_toolchain_alike() -> None:
    inspection = Inspection("k", "sm_90", 32, 256, 0, 0)
    kernel = get("rmsnorm.tiled")
    share = {}
    for name in ("one", "other"):
        cells = [
            Cell(Toolchain(name, "1.5.0", "13.3.1"), "sm_90", Case(kernel.name, (64, 64), "float32", seed=n))
            for n in range(400)
        ]
        launches = [real_launch_of(c, kernel, inspection, Path("k"), "0", 132, Timeouts()) for c in cells]
        share[name] = [bool(launch.relations) for launch in launches]
    assert share["one"] == share["other"]
    assert 400 / RELATED * 0.5 < sum(share["one"]) < 400 / RELATED * 1.6
