"""The error bound holds for float32 arithmetic in any order, and for nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execute import inputs
from harness.execute.arena import Arena
from harness.execute.bounds import Expectation, gamma
from harness.execute.compare import describe, examine
from harness.execute.formats import format_of, is_nan, numpy_dtype, ordered, round_to
from harness.execute.protocol import ArrayValue, OutputSeen
from harness.execute.reference import rmsnorm

F = np.float32
DTYPES = ("bfloat16", "float16", "float32")
Matrix = np.ndarray[Any, Any]


def total(squares: Matrix, order: str) -> Matrix:
    """A row sum in float32, in one of many orders."""
    if order == "left":
        out = np.zeros(squares.shape[0], F)
        for column in squares.T:
            out = out + column
        return out
    if order == "right":
        return total(squares[:, ::-1], "left")
    if order == "strided":
        lanes = [total(squares[:, k::7], "left") for k in range(7)]
        return total(np.stack(lanes, 1), "left")
    if squares.shape[1] <= 1:  # a tree
        return squares[:, 0] if squares.shape[1] else np.zeros(squares.shape[0], F)
    half = squares.shape[1] // 2
    return total(squares[:, :half], order) + total(squares[:, half:], order)


def nudge(values: Matrix, ulps: int) -> Matrix:
    """Move finite positive numbers by some ULP, as an approximate instruction may."""
    bits = values.view(np.int32) + np.where(np.isfinite(values) & (values > 0), ulps, 0).astype(np.int32)
    return bits.view(F)


def emulate(
    x: Matrix, w: Matrix, dtype: str, eps: float, offset: float, order: str, nudges: tuple[int, int]
) -> tuple[Matrix, Matrix]:
    """A float32 RMSNorm whose division and reciprocal root are off by up to 2 ULP."""
    with np.errstate(all="ignore"):
        wide = x.astype(F)
        mean = nudge(total(wide * wide, order) / F(x.shape[1]), nudges[0])
        r = nudge(F(1) / np.sqrt(mean + F(eps)), nudges[1])
        scale = w.astype(F) if offset == 0 else F(offset) + w.astype(F)
        y = wide * r[:, None] * scale
        return y.astype(numpy_dtype(dtype)), r


def seen(name: str, dtype: str, values: Matrix, expectation: Expectation) -> OutputSeen:
    strides = (values.shape[1], 1) if values.ndim == 2 else (1,)
    arena = Arena.of(ArrayValue(name, dtype, values.shape, strides, role="out"))
    return examine(arena, [arena.image(values, r) for r in range(2)], expectation)


def case(
    dtype: str, shape: tuple[int, int], kind: str, seed: int, offset: float
) -> tuple[Matrix, Matrix, dict[str, Expectation]]:
    x = inputs.make(seed, "x", dtype, shape, kind)
    w = inputs.make(seed, "w", dtype, shape[1:], "normal")
    expected = rmsnorm({"x": x, "w": w}, {"eps": 1e-6, "offset": offset}, {"y": dtype, "rstd": "float32"})
    return x, w, expected


@given(
    dtype=st.sampled_from(DTYPES),
    rows=st.integers(1, 9),
    columns=st.one_of(st.integers(1, 40), st.sampled_from([127, 128, 129, 257, 511])),
    kind=st.sampled_from(sorted(inputs.KINDS)),
    seed=st.integers(0, 1000),
    offset=st.sampled_from([0.0, 1.0]),
    order=st.sampled_from(["left", "right", "strided", "tree"]),
    nudges=st.tuples(st.integers(-2, 2), st.integers(-1, 1)),
)
def test_float32_arithmetic_in_any_order_stays_inside(
    dtype: str,
    rows: int,
    columns: int,
    kind: str,
    seed: int,
    offset: float,
    order: str,
    nudges: tuple[int, int],
) -> None:
    x, w, expected = case(dtype, (rows, columns), kind, seed, offset)
    y, r = emulate(x, w, dtype, 1e-6, offset, order, nudges)
    for name, kept, values in (("y", dtype, y), ("rstd", "float32", r)):
        got = seen(name, kept, values, expected[name])
        assert not got.wrong, (got, got.examples)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_an_element_off_by_more_than_the_bound_is_outside(dtype: str, offset: float) -> None:
    x, w, expected = case(dtype, (8, 256), "normal", 3, offset)
    y, _ = emulate(x, w, dtype, 1e-6, offset, "tree", (0, 0))
    form = format_of(dtype)
    assert form is not None
    allowed = seen("y", dtype, y, expected["y"]).bound_ulp
    assert allowed is not None
    for step in (allowed + 1, -allowed - 1):
        spoilt = y.copy()
        bits = spoilt.view(form.bits)
        place = (5, 17)
        middle = expected["y"].reference[place]
        sign = 1 if middle > 0 else -1
        bits[place] = (abs(int(middle)) + sign * step) | (0 if middle > 0 else np.iinfo(form.bits).min)
        got = seen("y", dtype, spoilt, expected["y"])
        assert (got.beyond_bound, got.worst_index, got.worst_ulp) == (1, place, abs(step))
        assert got.examples[0].ulp == abs(step)


def test_most_bfloat16_intervals_hold_one_number() -> None:
    _, _, expected = case("bfloat16", (64, 512), "normal", 0, 0.0)
    y = expected["y"]
    assert y.bound_ulp == 1
    assert np.mean(y.high != y.low) < 0.02


def test_swapped_rows_are_found_and_named() -> None:
    x, w, expected = case("bfloat16", (16, 64), "normal", 1, 0.0)
    y, r = emulate(x, w, "bfloat16", 1e-6, 0.0, "tree", (0, 0))
    y[[2, 9]] = y[[9, 2]]
    got = seen("y", "bfloat16", y, expected["y"])
    assert got.beyond_bound > 120
    assert "2 to 9 with gaps" in got.pattern
    r[[2, 9]] = r[[9, 2]]
    assert seen("rstd", "float32", r, expected["rstd"]).beyond_bound == 2


def test_float32_overflow_makes_rstd_and_y_zero() -> None:
    x = np.full((1, 8), 3e38, F)
    expected = rmsnorm(
        {"x": x, "w": np.ones(8, F)}, {"eps": 1e-6, "offset": 0.0}, {"y": "float32", "rstd": "float32"}
    )
    zero = seen("y", "float32", np.zeros((1, 8), F), expected["y"])
    assert not zero.wrong
    assert seen("y", "float32", np.ones((1, 8), F), expected["y"]).beyond_bound == 8
    assert not seen("rstd", "float32", np.zeros(1, F), expected["rstd"]).wrong


def test_nan_belongs_where_it_comes_in_and_nowhere_else() -> None:
    x = np.ones((2, 4), F)
    x[1, 2] = np.nan
    expected = rmsnorm(
        {"x": x, "w": np.ones(4, F)}, {"eps": 1e-6, "offset": 0.0}, {"y": "float32", "rstd": "float32"}
    )
    assert expected["y"].nan.tolist() == [[False] * 4, [True] * 4]
    assert expected["rstd"].nan.tolist() == [False, True]
    good = np.where(expected["y"].nan, np.nan, F(1)).astype(F)
    assert not seen("y", "float32", good, expected["y"]).wrong
    bad = np.array([[np.nan, 1, 1, 1], [1, np.nan, np.nan, np.nan]], F)
    got = seen("y", "float32", bad, expected["y"])
    assert (got.unexpected_nan, got.missing_nan, got.beyond_bound) == (1, 1, 2)
    assert [(e.index, e.got, e.expected, e.ulp) for e in got.examples] == [
        ((0, 0), "nan", pytest.approx(1.0), None),
        ((1, 0), 1.0, "nan", None),
    ]


def test_infinity_makes_its_row_zero_and_itself_nan() -> None:
    x = np.array([[np.inf, 1.0, -2.0]], F)
    expected = rmsnorm(
        {"x": x, "w": np.ones(3, F)}, {"eps": 1e-6, "offset": 0.0}, {"y": "float32", "rstd": "float32"}
    )
    assert not seen("y", "float32", np.array([[np.nan, 0, -0.0]], F), expected["y"]).wrong


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1), st.sampled_from(["bfloat16", "float16"]))
def test_ordered_integers_keep_the_numbers_order(a: int, b: int, dtype: str) -> None:
    form = format_of(dtype)
    assert form is not None
    values = np.array([a, b], np.uint16).view(numpy_dtype(dtype))
    if is_nan(values, form).any():
        assert np.isnan(values.astype(F)).tolist() == is_nan(values, form).tolist()
        return
    first, second = (int(i) for i in ordered(values, form))
    left, right = (float(v) for v in values)
    assert (first < second) == (left < right)
    assert (first == second) == (left == right)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bit_formats(dtype: str) -> None:
    form = format_of(dtype)
    assert form is not None
    every = np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))
    assert is_nan(every, form).tolist() == np.isnan(every.astype(F)).tolist()
    assert float(round_to(np.array([1e9]), form).astype(numpy_dtype(dtype)).astype(F)[0]) == form.largest


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("kind", sorted(inputs.KINDS))
def test_inputs_are_of_their_kind_and_always_the_same(dtype: str, kind: str) -> None:
    form = format_of(dtype)
    assert form is not None
    made = inputs.make(7, "x", dtype, (24, 32), kind)
    assert made.dtype == numpy_dtype(dtype)
    assert made.tobytes() == inputs.make(7, "x", dtype, (24, 32), kind).tobytes()
    wide = made.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    if kind == "nan":
        assert 1 <= np.isnan(wide).sum() <= 3
    else:
        assert not np.isnan(wide).any()
    if kind == "inf":
        assert np.isinf(wide).any() or dtype == "float8_e4m3fn"
    elif kind != "nan":
        assert np.isfinite(wide).all()
    if kind == "tiny":
        assert finite.max() < form.smallest * 2.0 ** (form.precision - 1)
        assert finite.max() > 0
    if kind == "huge":
        assert finite.min() >= form.largest * 0.45
    if kind == "zero_rows":
        assert not wide[::3].any()
        assert wide[1].any()
    if kind == "ones":
        assert (wide == 1).all()


def test_inputs_do_not_depend_on_anything_else() -> None:
    assert (inputs.make(0, "i", "int32", (5,), "normal") < 100).all()
    assert (
        inputs.make(0, "x", "float32", (4,), "normal").tobytes()
        != inputs.make(0, "w", "float32", (4,), "normal").tobytes()
    )
    with pytest.raises(ValueError, match="unknown kind of values 'odd'; there are normal, wide"):
        inputs.make(0, "x", "float32", (4,), "odd")


def test_gamma_knows_its_limit() -> None:
    assert gamma(0) == 0
    with pytest.raises(ValueError, match="no useful bound"):
        gamma(2**23)


def test_patterns_read_like_words() -> None:
    wrong = np.zeros((4, 6), np.bool_)
    wrong[2] = True
    assert describe(wrong) == "6 of 24 elements: 1 whole rows, only 2"
    assert describe(wrong.T) == "6 of 24 elements: 1 whole columns, only 2"
    assert describe(np.ones((2, 2), np.bool_)) == "all 4 elements"
    wrong[3, 5] = True
    assert describe(wrong) == "7 of 24 elements, in 2 rows (2 to 3) and 6 columns (0 to 5)"
