"""How far a right answer may lie from the exact one: intervals from the arithmetic, no guessed tolerance.

The model is that of float32 kernels. With u = 2^-24 (half an ULP of 1):

- a correctly rounded float32 operation is off by a factor (1 + d), |d| <= u;
- a sum of n non-negative float32 numbers, in *any* order and any tree, is off by at most
  gamma(n - 1) = (n - 1) u / (1 - (n - 1) u) (Higham, Accuracy and Stability of Numerical Algorithms,
  2nd edition, section 4.2); padding with zeros adds nothing;
- an approximate float32 division or reciprocal square root is off by at most 2 ULP, i.e. by a
  factor within 4 u (CUDA C++ Programming Guide, "Intrinsic Functions": `__fdividef` 2 ULP, `rsqrtf` 2 ULP;
  PTX ISA: rsqrt.approx.f32 has a relative error of at most 2^-22.9);
- a result below the normal range is off by half of the smallest subnormal, 2^-150.

An answer then lies in [lo, hi] around the exact value before it is rounded to the output type.
Rounding is monotone, so the rounded answer lies in [round(lo), round(hi)]: exact, and tight. In bfloat16
most intervals hold a single number; one ULP more is allowed only where the exact value lies
close to a rounding boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from harness.execute.formats import (
    Array,
    Format,
    format_of,
    integer_format,
    numpy_dtype,
    ordered,
    round_to,
)

U = 2.0**-24
"""Unit roundoff of float32."""

APPROXIMATE = 4 * U
"""Relative error of an approximate division or reciprocal square root: 2 ULP."""

LARGEST = float.fromhex("0x1.fffffep127")
OVERFLOW = float.fromhex("0x1.ffffffp127")
"""From here on a float32 rounds to infinity."""

TINIEST = 2.0**-149
"""Smallest float32 subnormal: two roundings below the normal range cost no more."""

FLOAT64_SLACK = 2.0**-48
"""What the float64 reference itself may be off by, generously."""


def gamma(n: int) -> float:
    """Bound on the relative error of n successive float32 roundings."""
    if n * U >= 0.5:
        raise ValueError(f"no useful bound exists for {n} roundings in float32")
    return n * U / (1 - n * U)


@dataclass(frozen=True)
class Expectation:
    """What an output may be, element by element, as ordered integers of its format.

    Outside `nan`, an answer is right if low <= ordered(answer) <= high; inside, if it is a NaN.
    """

    form: Format
    reference: Array
    low: Array
    high: Array
    nan: Array

    @property
    def nbytes(self) -> int:
        return self.reference.nbytes + self.low.nbytes + self.high.nbytes + self.nan.nbytes

    @cached_property
    def bound_ulp(self) -> int:
        """The largest distance from the rounded reference that is allowed anywhere."""
        if not self.reference.size:
            return 0
        middle = self.reference.astype(np.int64)
        above, below = self.high.astype(np.int64) - middle, middle - self.low.astype(np.int64)
        allowed = np.where(self.nan, 0, np.maximum(above, below))
        return int(allowed.max())

    def wider(self, ulp: int) -> Expectation:
        """The same, with this many ULP of the output type more on either side."""
        limits = np.iinfo(self.low.dtype)
        low = np.maximum(self.low.astype(np.int64) - ulp, limits.min).astype(self.low.dtype)
        high = np.minimum(self.high.astype(np.int64) + ulp, limits.max).astype(self.high.dtype)
        return replace(self, low=low, high=high)


def whole_numbers(exact: Array, within: Array, dtype: str) -> Expectation:
    """From integers or booleans, modulo the type's width as two's complement has it; `within` is how many
    either side are right as well."""
    form = integer_format(dtype)
    middle = ordered(exact.astype(np.int64).astype(numpy_dtype(dtype)), form)
    limits, wide = np.iinfo(form.bits), middle.astype(np.int64)
    low = np.maximum(wide - within.astype(np.int64), limits.min).astype(form.bits)
    high = np.minimum(wide + within.astype(np.int64), limits.max).astype(form.bits)
    return Expectation(form, middle, low, high, np.zeros(middle.shape, np.bool_))


def expect(exact: Array, low: Array, high: Array, dtype: str) -> Expectation:
    """From float64 values and an interval around them; NaN in `exact` asks for a NaN."""
    form = format_of(dtype)
    if form is None:
        raise ValueError(f"no error bound is known for outputs of dtype {dtype}")
    nan = np.isnan(exact)
    # An infinity has no width: inf - inf would make a NaN of the interval's end.
    low = np.where(np.isfinite(exact), low, exact)
    high = np.where(np.isfinite(exact), high, exact)
    middle, below, above = (ordered(round_to(values, form), form) for values in (exact, low, high))
    return Expectation(form, middle, np.minimum(below, middle), np.maximum(above, middle), nan)


def anything(expectation: Expectation, where: Array) -> Expectation:
    """The same, but any number or NaN is right where marked: the order of additions may decide there."""
    if not where.any():
        return expectation
    limits = np.iinfo(expectation.low.dtype)
    return replace(
        expectation,
        low=np.where(where, limits.min, expectation.low),
        high=np.where(where, limits.max, expectation.high),
        nan=expectation.nan | where,
    )


def widen(exact: Array, relative: Array | float, absolute: Array | float) -> tuple[Array, Array]:
    """The interval of this relative and absolute half-width around float64 values."""
    with np.errstate(invalid="ignore", over="ignore"):
        width = np.abs(exact) * (relative + FLOAT64_SLACK) + absolute
        return exact - width, exact + width


def join(parts: list[Expectation]) -> Expectation:
    """Expectations of consecutive blocks of rows, as one."""
    if len(parts) == 1:
        return parts[0]
    return Expectation(
        parts[0].form,
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("reference", "low", "high", "nan")),
    )
