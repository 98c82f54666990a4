"""y = (x - mean) * rsqrt(var + eps) * w + b, in float32."""

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
    widen,
)
from harness.execute.formats import Array

_BLOCK_ELEMENTS = 1 << 18


def layer_norm(
    inputs: Mapping[str, Array], parameters: Mapping[str, float], dtypes: Mapping[str, str]
) -> dict[str, Expectation]:
    """Roles: x (M, N), w, b (N,), y (M, N), mean and rstd (M,). Parameter: eps, as float32.

    With A the error of an approximate division or root, in the order of the formula:

    - the mean is off by d <= (gamma(N - 1) + A) mean|x|, in absolute terms;
    - the centred row is off by d, and by u of itself. Its sum is 0, so d adds d^2 to the exact variance
      and nothing else; squares, their sum and the division add u, gamma(N - 1) and A, eps another u;
    - the root turns that interval around, and adds A: that is the bound of rstd;
    - y adds the error d of x - mean, the relative error of rstd, and a rounding for each of
      subtraction, two products and a sum (of the product, and of the result).

    Where sum |x| or the sum of squares reaches the largest float32, partial sums may overflow or not,
    by the order of additions: then anything is right in that row. A NaN or an infinity in a row makes
    all of its y and its rstd NaN. Where eps does not show beside rounding (0 or nearly), and the row
    is constant up to rounding, the variance is all error: any number is right.
    """
    x = inputs["x"]
    w, b = inputs["w"].astype(np.float64), inputs["b"].astype(np.float64)
    rows, columns = x.shape
    eps = float(np.float32(parameters["eps"]))
    parts: dict[str, list[Expectation]] = {"y": [], "mean": [], "rstd": []}
    step = max(1, _BLOCK_ELEMENTS // max(1, columns))
    sum_error = gamma(max(0, columns - 1))
    with np.errstate(all="ignore"):
        for start in range(0, max(rows, 1), step):
            block = x[start : start + step].astype(np.float64)
            size = np.abs(block).sum(axis=1)
            mean = block.sum(axis=1) / columns
            delta = (size / columns) * (sum_error * (1 + APPROXIMATE) + APPROXIMATE + 2.0**-45) + TINIEST
            centred = block - mean[:, None]
            squares = np.einsum("ij,ij->i", centred, centred)
            variance = squares / columns
            relative = (1 + U) ** 3 * (1 + sum_error) * (1 + APPROXIMATE) * (1 + U) - 1
            relative += columns * 2.0**-50
            tiny = 2 * TINIEST
            below = variance * (1 - relative) + eps * (1 - U) - tiny
            above = (variance + delta**2) * (1 + relative) + eps * (1 + U) + tiny
            rstd = 1 / np.sqrt(variance + eps)
            r_low = (1 - APPROXIMATE) / np.sqrt(above)
            r_high = np.where(below > 0, (1 + APPROXIMATE) / np.sqrt(np.maximum(below, 0)), np.inf)
            undecided = ((size >= LARGEST / 2) & np.isfinite(size)) | (
                (squares + columns * delta**2 >= LARGEST / 4) & np.isfinite(squares)
            )
            lost = ~(below > 0) & ~np.isnan(below)
            r_error = np.maximum(r_high / rstd - 1, 1 - r_low / rstd)
            product = centred * rstd[:, None] * w
            reach = (np.abs(centred) + delta[:, None]) * rstd[:, None] * np.abs(w)
            off = reach * ((1 + r_error[:, None]) * (1 + U) ** 3) - np.abs(product)
            exact = product + b
            width = off + U * (np.abs(product) + np.abs(b) + off) + TINIEST * (2 + np.abs(w))
            open_rows = undecided | lost
            m_low, m_high = mean - delta, mean + delta
            found = {
                "mean": (expect(mean, m_low, m_high, dtypes["mean"]), undecided),
                "rstd": (expect(rstd, r_low, r_high, dtypes["rstd"]), open_rows),
                "y": (
                    expect(exact, *_around(exact, width), dtypes["y"]),
                    np.broadcast_to(open_rows[:, None], block.shape),
                ),
            }
            for name, (expectation, free) in found.items():
                parts[name].append(anything(expectation, free))
    return {name: join(blocks) for name, blocks in parts.items()}


def _around(exact: Array, width: Array) -> tuple[Array, Array]:
    low, high = widen(exact, 0.0, width)
    return np.where(np.isnan(width), -np.inf, low), np.where(np.isnan(width), np.inf, high)
