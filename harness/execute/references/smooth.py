"""Functions of one number, and how far a float32 one may be off where its argument is off.

Each takes numbers and their errors, and gives the function's values, what the arguments' errors grow to, and
the relative error of the function itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from harness.execute.bounds import APPROXIMATE, U
from harness.execute.formats import Array

_TRIGONOMETRIC = 8 * U
"""Absolute error of sine and cosine, also of the approximations: 2^-21.4 within [-pi, pi]."""

Smooth = Callable[[Array, Array], tuple[Array, Array, float]]


def _sqrt(x: Array, ex: Array) -> tuple[Array, Array, float]:
    root = np.sqrt(x)
    return root, root - np.sqrt(np.maximum(x - ex, 0.0)), APPROXIMATE


def _rsqrt(x: Array, ex: Array) -> tuple[Array, Array, float]:
    number = 1 / np.sqrt(x)
    return number, np.where(x > ex, 1 / np.sqrt(x - ex) - number, np.where(ex > 0, np.inf, 0)), APPROXIMATE


def _exp(x: Array, ex: Array) -> tuple[Array, Array, float]:
    # exp(x) is 2^(x log2 e): the product's rounding is an absolute error under the power.
    number = np.exp(x)
    return number, number * np.expm1(ex + 2 * U * np.abs(x)), APPROXIMATE


def _exp2(x: Array, ex: Array) -> tuple[Array, Array, float]:
    number = np.exp2(x)
    return number, number * np.expm1(ex * np.log(2)), APPROXIMATE


def _log(base: float) -> Smooth:
    def compute(x: Array, ex: Array) -> tuple[Array, Array, float]:
        scale = 1 / np.log(base)
        slope = np.where(x > ex, -np.log1p(-ex / x), np.where(ex > 0, np.inf, 0.0))
        return np.log(x) * scale, (slope + APPROXIMATE) * scale, APPROXIMATE

    return compute


def _tanh(x: Array, ex: Array) -> tuple[Array, Array, float]:
    return np.tanh(x), np.minimum(ex, 2.0), APPROXIMATE


def _erf(x: Array, ex: Array) -> tuple[Array, Array, float]:
    number = np.vectorize(math.erf, otypes=[np.float64])(x)
    return number, np.minimum(2 / math.sqrt(math.pi) * ex, 2.0), APPROXIMATE


def _sigmoid(x: Array, ex: Array) -> tuple[Array, Array, float]:
    number = 1 / (1 + np.exp(-x))
    return number, number * (1 - number) * np.expm1(ex + 2 * U * np.abs(x)), 2 * APPROXIMATE


def _circular(function: Callable[[Array], Array]) -> Smooth:
    return lambda x, ex: (function(x), ex + _TRIGONOMETRIC, U)


SMOOTH: dict[str, Smooth] = {
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "exp": _exp,
    "exp2": _exp2,
    "log": _log(np.e),
    "log2": _log(2.0),
    "tanh": _tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "sin": _circular(np.sin),
    "cos": _circular(np.cos),
}
