"""Gradients of y = x * rstd * (offset + w): of x, and of w in partial sums."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.execute.bounds import (
    APPROXIMATE,
    LARGEST,
    TINIEST,
    Expectation,
    U,
    anything,
    expect,
    gamma,
    join,
)
from harness.execute.formats import Array

_SECOND_ORDER = 1.01
"""Products of two errors, generously."""


def rmsnorm_backward(
    inputs: Mapping[str, Array], parameters: Mapping[str, float], dtypes: Mapping[str, str]
) -> dict[str, Expectation]:
    """Roles: x, dy (M, N), w (N,), rstd (M,), dx (M, N), dw (T, N). Parameters: offset, and tile_m, the
    rows that each of the T rows of dw sums up.

    rstd is an input like any other, so the formulas hold for all of its values. With g = dy (offset + w) and
    c = rstd^2 mean(g x): dx = rstd (g - x c).

    - g is off by 2u of itself (u where offset is 0); the mean's sum by gamma(N + 1) of sum |g x|, its
      division by A; the two products that make c by u each;
    - x c, the difference and the last product add u each, of their own size;
    - a column of dw sums tile_m products of two roundings: gamma(tile_m + 1) of sum |dy x rstd|.

    Where a sum of magnitudes reaches the largest float32 anything is right: the order may decide.
    """
    x, dy = inputs["x"].astype(np.float64), inputs["dy"].astype(np.float64)
    r = inputs["rstd"].astype(np.float64)[:, None]
    rows, columns = x.shape
    offset, tile_m = float(np.float32(parameters["offset"])), int(parameters["tile_m"])
    with np.errstate(all="ignore"):
        scale = offset + inputs["w"].astype(np.float64)
        g = dy * scale
        size = np.abs(g * x).sum(axis=1, keepdims=True)
        mean = (g * x).sum(axis=1, keepdims=True) / columns
        mean_off = size / columns * (gamma(columns + 3) + APPROXIMATE) + 2 * TINIEST
        c = r * r * mean
        c_off = (r * r * mean_off + 3 * U * np.abs(c)) * _SECOND_ORDER + 4 * TINIEST
        inner = np.abs(g) + np.abs(x * c)
        inner_off = (np.abs(x) * c_off + 4 * U * inner) * _SECOND_ORDER + 4 * TINIEST
        dx = r * (g - x * c)
        dx_off = (np.abs(r) * inner_off + 2 * U * np.abs(r) * inner) * _SECOND_ORDER + 4 * TINIEST
        large = (size >= LARGEST / 4) | (np.abs(r * r) * (size / columns) >= LARGEST / 4)
        large = large | (np.abs(r) * inner >= LARGEST / 4) | (inner >= LARGEST / 4) | (r * r >= LARGEST / 4)
        free = np.broadcast_to(large, x.shape) & _finite(x, g, r)
        found = {"dx": anything(expect(dx, dx - dx_off, dx + dx_off, dtypes["dx"]), free)}
        parts: list[Expectation] = []
        for start in range(0, max(rows, 1), tile_m):
            terms = (dy * x * r)[start : start + tile_m]
            total = np.abs(terms).sum(axis=0, keepdims=True)
            steps = np.abs((dy * x)[start : start + tile_m]).max(axis=0, keepdims=True, initial=0.0)
            exact = terms.sum(axis=0, keepdims=True)
            off = total * (gamma(tile_m + 2) + 2.0**-48) + (tile_m + 1) * TINIEST * (
                1 + np.abs(r[start : start + tile_m]).max(initial=0.0)
            )
            partial = expect(exact, exact - off, exact + off, dtypes["dw"])
            over = ((total >= LARGEST / 4) | (steps >= LARGEST / 4)) & np.isfinite(total)
            parts.append(anything(partial, over))
        found["dw"] = join(parts)
    return found


def _finite(x: Array, g: Array, r: Array) -> Array:
    """Rows without a NaN or an infinity: those have their answer in any order."""
    whole = np.isfinite(x).all(axis=1, keepdims=True) & np.isfinite(g).all(axis=1, keepdims=True)
    result: Array = np.broadcast_to(whole & np.isfinite(r), x.shape)
    return result
