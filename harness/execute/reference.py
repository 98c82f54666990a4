"""The right answers, in float64 on the same bits, with the interval a float32 kernel may land in.

A reference takes the input arrays by role, its parameters and the outputs' dtypes, and returns an
`Expectation` per output role. `REFERENCES` is the registry; a kernel's description names its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from harness.execute.bounds import (
    APPROXIMATE,
    LARGEST,
    OVERFLOW,
    TINIEST,
    Expectation,
    U,
    expect,
    gamma,
    join,
    widen,
)
from harness.execute.formats import Array
from harness.execute.references.layer_norm import layer_norm
from harness.execute.references.matmul import matmul
from harness.execute.references.rmsnorm_backward import rmsnorm_backward
from harness.execute.references.vector_add import vector_add

References = Callable[[Mapping[str, Array], Mapping[str, float], Mapping[str, str]], dict[str, Expectation]]

_BLOCK_ELEMENTS = 1 << 18
"""Rows are taken in blocks of about this many elements, so that temporaries stay in cache."""


def rmsnorm(
    inputs: Mapping[str, Array], parameters: Mapping[str, float], dtypes: Mapping[str, str]
) -> dict[str, Expectation]:
    """y = x * r * (offset + w) and r = rstd = rsqrt(mean(x^2) + eps), mean over a row of N.

    Roles: x (M, N), w (N,), y (M, N), rstd (M,). Parameters: eps, offset, both as float32 (what a
    kernel bakes in). Relative error, in the order of the formula:

    - the squares are exact in float32 for inputs of up to 12 bits of precision, one rounding
      for float32 inputs; their sum adds gamma(N - 1); division by N 4u if approximate;
      adding eps u. Together a. An error a under the root costs a / (2 (1 - a)^2) at most;
    - the reciprocal square root adds 4u: that is the bound of rstd, in float32;
    - two multiplications add u each, and offset + w another where offset is not 0;
    - the last rounding, to y's type, is that of the interval's ends (see `bounds`).

    Below the normal range, squares cost 2^-149 in the mean, products 2^-149 (1 + |offset + w|) in y.

    The range is that of float32: a sum of squares that overflows makes the mean infinite, so rstd
    is 0 and y is 0 for finite x (NaN where x or the scale is infinite or NaN). A sum so close to
    the largest float32 that the order of additions decides may do either, and both are accepted.
    A NaN in a row makes all of the row NaN; an infinity makes rstd 0, and NaN of itself.
    Where eps is 0 and all squares lie below the normal range, float32 knows nothing of the mean, and
    any number is right.
    """
    x, w = inputs["x"], inputs["w"]
    rows, columns = x.shape
    eps, offset = float(np.float32(parameters["eps"])), float(np.float32(parameters["offset"]))
    with np.errstate(all="ignore"):
        scale = offset + w.astype(np.float64)
        scale_error = 0.0 if offset == 0 else U
        sum_error = gamma(columns - 1 + (1 if x.dtype.itemsize >= 4 else 0)) if columns else 0.0
        own_error = columns * 2.0**-52  # of the float64 sum here
        mean_error = (1 + sum_error + own_error) * (1 + APPROXIMATE) * (1 + U) - 1
        ys: list[Expectation] = []
        rs: list[Expectation] = []
        step = max(1, _BLOCK_ELEMENTS // max(1, columns))
        for start in range(0, max(rows, 1), step):
            block = x[start : start + step].astype(np.float64)
            total = np.einsum("ij,ij->i", block, block)
            certain = total * (1 - sum_error) >= OVERFLOW
            possible = total * (1 + sum_error) > LARGEST
            mean = np.where(certain, np.inf, total) / columns + eps
            r = 1 / np.sqrt(mean)
            under_root = mean_error + np.where(mean > 0, TINIEST / mean, 0.0)
            r_error = under_root / (2 * (1 - np.minimum(under_root, 0.5)) ** 2) + APPROXIMATE
            r_low, r_high = widen(r, r_error, 0.0)
            r_low = np.where(possible, 0.0, r_low)
            r_high = np.where(under_root < 0.5, r_high, np.inf)
            rs.append(expect(r, r_low, r_high, dtypes["rstd"]))
            exact = block * r[:, None] * scale
            y_error = (1 + r_error) * (1 + U) ** 2 * (1 + scale_error) - 1
            low, high = widen(exact, y_error[:, None], TINIEST * (1 + np.abs(scale)))
            undecided = (possible & ~certain)[:, None]
            lost = (under_root >= 0.5)[:, None]
            low, high = np.where(lost, -np.inf, low), np.where(lost, np.inf, high)
            low = np.where(undecided, np.minimum(low, 0.0), low)
            high = np.where(undecided, np.maximum(high, 0.0), high)
            ys.append(expect(exact, low, high, dtypes["y"]))
    return {"y": join(ys), "rstd": join(rs)}


@dataclass(frozen=True)
class Known:
    """A reference and the names of the parameters that it reads; all others leave the answer alone."""

    parameters: tuple[str, ...]
    compute: References


REFERENCES: dict[str, Known] = {
    "rmsnorm": Known(("eps", "offset"), rmsnorm),
    "rmsnorm_backward": Known(("offset", "tile_m"), rmsnorm_backward),
    "layer_norm": Known(("eps",), layer_norm),
    "matmul": Known((), matmul),
    "vector_add": Known((), vector_add),
}
"""References by the name a kernel's description gives."""
