"""c = a @ b of 16-bit floats, accumulated in float32 on tensor cores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.execute.bounds import LARGEST, TINIEST, Expectation, anything, expect, gamma, join
from harness.execute.formats import Array

ROUNDINGS_PER_TERM = 3
"""Roundings of u that one term of the sum may cost. Tensor cores multiply 16-bit floats exactly, align a
group of products and the accumulator to the largest of them and truncate: 2u of that largest,
for every term of the group and for the accumulator. A group has at least two terms, so a term costs
less than three times u of sum |a||b|, which bounds the largest (Fasi, Higham, Mikaitis, Pranesh, Numerical
behavior of NVIDIA tensor cores, 2021)."""

_BLOCK_ROWS = 64


def matmul(
    inputs: Mapping[str, Array], parameters: Mapping[str, float], dtypes: Mapping[str, str]
) -> dict[str, Expectation]:
    """Roles: a (M, K), b (K, N), c (M, N).

    The error is at most gamma(3 K) sum |a||b|, whatever the order of additions. Where sum |a||b| reaches
    the largest float32 the order may decide between infinity, NaN and a number, and anything is right.
    """
    a, b = inputs["a"], inputs["b"].astype(np.float64)
    magnitude = np.abs(b)
    depth = a.shape[1]
    parts: list[Expectation] = []
    with np.errstate(all="ignore"):
        for start in range(0, max(a.shape[0], 1), _BLOCK_ROWS):
            block = a[start : start + _BLOCK_ROWS].astype(np.float64)
            exact, total = block @ b, np.abs(block) @ magnitude
            width = total * (gamma(ROUNDINGS_PER_TERM * depth) + depth * 2.0**-52) + depth * TINIEST
            expectation = expect(exact, exact - width, exact + width, dtypes["c"])
            parts.append(anything(expectation, (total >= LARGEST / 2) & np.isfinite(total)))
    return {"c": join(parts)}
