"""References of the shipped kernels: they accept float32 arithmetic in any order, and nothing that is off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execute import inputs
from harness.execute.bounds import Expectation
from harness.execute.formats import is_nan, numpy_dtype, ordered
from harness.execute.reference import REFERENCES
from harness.kernels import get, names

F = np.float32
Array = np.ndarray[Any, Any]
Order = Callable[[Array], Array]
"""Sums the last axis in float32."""

VALUES = ("normal", "ones", "tiny", "huge", "wide", "zero_rows", "nan", "inf")


def left_to_right(a: Array) -> Array:
    out = np.zeros(a.shape[:-1], F)
    for column in range(a.shape[-1]):
        out = out + a[..., column]
    return out


def right_to_left(a: Array) -> Array:
    return left_to_right(a[..., ::-1])


def tree(a: Array) -> Array:
    while a.shape[-1] > 1:
        half = -(-a.shape[-1] // 2)
        rest = np.zeros((*a.shape[:-1], half), F)
        rest[..., : a.shape[-1] - half] = a[..., half:]
        a = a[..., :half] + rest
    return a[..., 0] if a.shape[-1] else np.zeros(a.shape[:-1], F)


ORDERS = (left_to_right, right_to_left, tree)
Data = Mapping[str, Array]


def vector_add(d: Data, p: Mapping[str, float], total: Order) -> dict[str, Array]:
    return {"out": d["a"].astype(F) + d["b"].astype(F)}


def matmul(d: Data, p: Mapping[str, float], total: Order) -> dict[str, Array]:
    a, b = d["a"].astype(F), d["b"].astype(F)
    return {"c": total(a[:, None, :] * b.T[None, :, :])}


def layer_norm(d: Data, p: Mapping[str, float], total: Order) -> dict[str, Array]:
    x, w, b = (d[name].astype(F) for name in ("x", "w", "b"))
    columns = F(x.shape[1])
    mean = total(x) / columns
    centred = x - mean[:, None]
    rstd = F(1) / np.sqrt(total(centred * centred) / columns + F(p["eps"]))
    return {"mean": mean, "rstd": rstd, "y": centred * rstd[:, None] * w + b}


def rmsnorm_backward(d: Data, p: Mapping[str, float], total: Order) -> dict[str, Array]:
    x, dy, w = (d[name].astype(F) for name in ("x", "dy", "w"))
    r = d["rstd"].astype(F)[:, None]
    g = dy * (F(p["offset"]) + w)
    mean = total(g * x)[:, None] / F(x.shape[1])
    tile = int(p["tile_m"])
    terms = dy * x * r
    dw = [total(terms[start : start + tile].T) for start in range(0, max(len(x), 1), tile)]
    return {"dx": r * (g - x * (r * r * mean)), "dw": np.stack(dw)}


EMULATED = {
    "vector_add": (vector_add, ("a", "b"), {"a": "n", "b": "n"}, {"out": ""}),
    "matmul": (matmul, ("a", "b"), {"a": "mk", "b": "kn"}, {"c": ""}),
    "layer_norm": (
        layer_norm,
        ("x", "w", "b"),
        {"x": "mn", "w": "n", "b": "n"},
        {"y": "", "mean": "float32", "rstd": "float32"},
    ),
    "rmsnorm_backward": (
        rmsnorm_backward,
        ("x", "dy", "w", "rstd"),
        {"x": "mn", "dy": "mn", "w": "n", "rstd": "m"},
        {"dx": "", "dw": "float32"},
    ),
}


def outside(values: Array, expectation: Expectation) -> Array:
    order, nan = ordered(values, expectation.form), is_nan(values, expectation.form)
    return ~((order >= expectation.low) & (order <= expectation.high) & ~nan) & ~(nan & expectation.nan)


def run(
    name: str, dtype: str, extents: dict[str, int], values: str, seed: int, order: Order
) -> tuple[dict[str, Array], dict[str, Expectation]]:
    emulate, roles, shapes, outputs = EMULATED[name]
    kind = {roles[0]: values}
    data = {
        role: inputs.make(
            seed,
            role,
            "float32" if role == "rstd" else dtype,
            tuple(extents[axis] for axis in shapes[role]),
            kind.get(role, "normal"),
        )
        for role in roles
    }
    parameters = {"eps": 1e-5, "offset": 1.0, "tile_m": 4.0}
    dtypes = {output: own or dtype for output, own in outputs.items()}
    with np.errstate(all="ignore"):
        made = emulate(data, parameters, order)
        made = {output: array.astype(numpy_dtype(dtypes[output])) for output, array in made.items()}
    return made, REFERENCES[name].compute(data, parameters, dtypes)


@pytest.mark.parametrize("name", EMULATED)
@given(data=st.data())
def test_float32_arithmetic_in_any_order_is_inside_the_bound(name: str, data: st.DataObject) -> None:
    extents = {axis: data.draw(st.integers(1, most), axis) for axis, most in (("m", 9), ("n", 40), ("k", 70))}
    dtypes = ("bfloat16", "float16") if name == "matmul" else ("bfloat16", "float16", "float32")
    made, expected = run(
        name,
        data.draw(st.sampled_from(dtypes)),
        extents,
        data.draw(st.sampled_from(VALUES)),
        data.draw(st.integers(0, 2**20)),
        data.draw(st.sampled_from(ORDERS)),
    )
    assert made.keys() == expected.keys()
    for output, array in made.items():
        assert array.shape == expected[output].low.shape
        assert not outside(array, expected[output]).any(), output


@pytest.mark.parametrize("name", EMULATED)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_an_answer_that_is_one_percent_off_is_outside(name: str, dtype: str) -> None:
    if name == "matmul" and dtype == "float32":
        dtype = "float16"
    made, expected = run(name, dtype, {"m": 8, "n": 64, "k": 64}, "normal", 3, tree)
    for output, array in made.items():
        wrong = (array.astype(F) * F(1.02)).astype(array.dtype)
        assert outside(wrong, expected[output]).mean() > 0.5, output


@pytest.mark.parametrize("name", EMULATED)
def test_the_bound_is_tight_in_sixteen_bits(name: str) -> None:
    _, expected = run(name, "bfloat16", {"m": 16, "n": 128, "k": 128}, "normal", 5, tree)
    output = next(iter(expected.values()))
    allowed = output.high.astype(np.int64) - output.low.astype(np.int64)
    assert np.median(allowed) <= 1


def test_every_shipped_kernel_but_the_control_names_a_reference() -> None:
    assert {get(name).reference for name in names()} == set(REFERENCES)
