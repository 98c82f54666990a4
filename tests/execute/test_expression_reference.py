"""References written as expressions, against float32 arithmetic done step by step."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execute.formats import is_nan, ordered
from harness.execute.references.expression import expectations
from harness.expression import ExpressionError
from harness.model import Tolerance

F32 = np.float32


def judge(
    text: str, output: Any, dtype: str, tolerance: Tolerance | None = None, **inputs: Any
) -> tuple[int, int]:
    """How many elements of `output` are wrong, and the bound in ULP."""
    arrays = {k: v for k, v in inputs.items() if isinstance(v, np.ndarray)}
    numbers = {k: float(v) for k, v in inputs.items() if not isinstance(v, np.ndarray)}
    tolerances = {} if tolerance is None else {"y": tolerance}
    found = expectations([("y", text)], arrays, numbers, {"y": (dtype, output.shape)}, tolerances)["y"]
    order, nan = ordered(output, found.form), is_nan(output, found.form)
    right = ((order >= found.low) & (order <= found.high) & ~nan) | (nan & found.nan)
    return int(np.count_nonzero(~right)), found.bound_ulp


def rows(seed: int, shape: tuple[int, ...] = (7, 33), scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(F32)


def test_float32_steps_stay_inside_the_bound() -> None:
    x, w = rows(1), rows(2, (33,))
    steps: list[tuple[str, Any]] = [
        ("x * w + w", x * w + w),
        ("x / (abs(w) + 1)", x / (np.abs(w) + F32(1))),
        ("sum(x, axis=1)", x.sum(axis=1)),
        ("mean(x, axis=0, keepdims=True)", x.mean(axis=0, keepdims=True)),
        ("cumsum(x, axis=1)", np.cumsum(x, axis=1)),
        ("exp(x * 3)", np.exp(x * F32(3))),
        ("log(abs(x))", np.log(np.abs(x))),
        ("sqrt(x * x + w * w)", np.sqrt(x * x + w * w)),
        ("rsqrt(mean(x * x, axis=1))", F32(1) / np.sqrt((x * x).mean(axis=1))),
        ("tanh(x)", np.tanh(x)),
        ("erf(x)", np.vectorize(math.erf)(x)),
        ("sin(x) * cos(x)", np.sin(x) * np.cos(x)),
        ("sigmoid(x)", F32(1) / (F32(1) + np.exp(-x))),
        ("x ** 3", x * x * x),
        ("maximum(x, 0)", np.maximum(x, F32(0))),
        ("max(x, axis=1) - min(x, axis=1)", x.max(axis=1) - x.min(axis=1)),
        ("x @ x.T", x @ x.T),
        ("where(x > w, x, w)", np.where(x > w, x, w)),
        ("exp2(x)", np.exp2(x)),
        ("prod(x[:, :8], axis=1)", x[:, :8].prod(axis=1)),
        ("argmax(x, axis=1)", x.argmax(axis=1)),
    ]
    for text, got in steps:
        wrong, bound = judge(text, np.asarray(got, F32), "float32", x=x, w=w)
        assert wrong == 0, text
        assert bound < 2**22, text


def test_the_bound_is_tight_enough_to_see_a_fault() -> None:
    x = rows(3, (64, 256))
    right = x.sum(axis=1)
    short = x[:, :-1].sum(axis=1)
    assert judge("sum(x, axis=1)", right, "float32", x=x)[0] == 0
    assert judge("sum(x, axis=1)", short, "float32", x=x)[0] >= 60
    half = (x * F32(2)).astype(ml_dtypes.bfloat16)
    wrong, bound = judge("x * 2", half, "bfloat16", x=x)
    assert (wrong, bound) == (0, 0) or bound == 1


@given(st.integers(0, 2**32 - 1), st.sampled_from(["float16", "bfloat16"]))
def test_softmax_in_float32_is_accepted(seed: int, dtype: str) -> None:
    x = rows(seed, (4, 50), 4.0).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)
    wide = x.astype(F32)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    y = (e / e.sum(axis=1, keepdims=True)).astype(x.dtype)
    above = "exp(x - max(x, axis=1, keepdims=True))"
    text = f"{above} / sum({above}, axis=1, keepdims=True)"
    assert judge(text, y, dtype, x=x)[0] == 0
    y[2, 3] = y[2, 3] * 2 + y.dtype.type(0.1)
    assert judge(text, y, dtype, x=x)[0] == 1


def test_integers_are_exact_and_wrap() -> None:
    a = np.array([250, 3, 7], np.uint8)
    assert judge("a + 10", (a + np.uint8(10)), "uint8", a=a) == (0, 0)
    assert judge("a // 2 % 3", np.array([2, 1, 0], np.uint8), "uint8", a=a) == (0, 0)
    assert judge("a + 10", np.array([4, 13, 18], np.uint8), "uint8", a=a)[0] == 1
    b = np.array([-(2**31), 5], np.int32)
    assert judge("-b", -b, "int32", b=b) == (0, 0)
    big = np.array([2**32 - 1, 1], np.uint32)
    assert judge("u", big, "uint32", u=big) == (0, 0)
    flags = np.array([True, False])
    assert judge("~f", ~flags, "bool", f=flags) == (0, 0)
    assert judge("x > 0", np.array([True, False, True]), "bool", x=np.array([1.0, 0.0, 2.0], F32)) == (0, 0)


def test_what_cannot_be_decided_fails_nobody() -> None:
    x = np.array([1e30, 1.0], F32)
    with np.errstate(over="ignore"):
        overflown = (x * x) / x
    assert judge("x * x / x", overflown, "float32", x=x)[0] == 0
    near = np.array([1.0], F32)
    for either in (3.0, 4.0):
        y = np.array([either], F32)
        assert judge("where(exp(log(x)) >= 1, 3.0, 4.0)", y, "float32", x=near)[0] == 0
    assert judge("where(x >= 1, 3.0, 4.0)", np.array([4.0], F32), "float32", x=near)[0] == 1


def test_nan_and_infinity_follow_the_expression() -> None:
    x = np.array([np.nan, np.inf, -1.0, 0.0], F32)
    assert judge("x * 2", x * F32(2), "float32", x=x)[0] == 0
    with np.errstate(invalid="ignore", divide="ignore"):
        assert judge("sqrt(x)", np.sqrt(x), "float32", x=x)[0] == 0
        assert judge("1 / x", F32(1) / x, "float32", x=x)[0] == 0
    assert judge("x * 2", np.zeros(4, F32), "float32", x=x)[0] == 3


def test_a_tolerance_replaces_the_bound() -> None:
    x = rows(5)
    off = x * F32(1 + 1e-4)
    assert judge("x", off, "float32", x=x)[0] > 0
    assert judge("x", off, "float32", Tolerance(relative=2e-4), x=x)[0] == 0
    assert judge("x", x + F32(1e-3), "float32", Tolerance(absolute=2e-3), x=x)[0] == 0
    one_up = np.nextafter(x, F32(np.inf))
    assert judge("x", one_up, "float32", Tolerance(ulp=1), x=x)[0] == 0
    n = np.array([5, 6], np.int32)
    assert judge("n", n + 1, "int32", Tolerance(absolute=1), n=n)[0] == 0
    assert judge("n", n + 2, "int32", Tolerance(absolute=1), n=n)[0] == 2


def test_steps_may_use_those_before_them_and_parameters() -> None:
    x = rows(7)
    found = expectations(
        [("m", "mean(x, axis=1, keepdims=True)"), ("y", "(x - m) * SCALE")],
        {"x": x},
        {"SCALE": 0.5},
        {"y": ("float32", x.shape)},
        {},
    )
    assert list(found) == ["y"]
    assert found["y"].bound_ulp < 2**20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("z", "nothing is called z"),
        ("x + w", "could not be broadcast"),
        ("sum(x, axis=5)", "axis 5 is out of bounds"),
        ("x[:3]", "has shape [3, 33], the array has [7, 33]"),
        ("x & 1", "integers only"),
    ],
)
def test_what_cannot_be_evaluated_is_said(text: str, said: str) -> None:
    with pytest.raises(ExpressionError, match="reference of y") as caught:
        judge(text, rows(1), "float32", x=rows(1), w=rows(1, (5,)))
    assert said in str(caught.value)
