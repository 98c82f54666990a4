"""out = a + b, added in float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.execute.bounds import TINIEST, Expectation, U, expect, widen
from harness.execute.formats import Array


def vector_add(
    inputs: Mapping[str, Array], parameters: Mapping[str, float], dtypes: Mapping[str, str]
) -> dict[str, Expectation]:
    """Roles: a, b, out, all (N,). One rounding to float32 (error u), then that to out's type."""
    with np.errstate(all="ignore"):
        exact = inputs["a"].astype(np.float64) + inputs["b"].astype(np.float64)
        low, high = widen(exact, U, TINIEST)
        return {"out": expect(exact, low, high, dtypes["out"])}
