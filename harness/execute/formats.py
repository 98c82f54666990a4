"""Number formats: names to numpy dtypes, and the ordered integers that ULP are counted in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format. `precision` counts the hidden bit; magnitudes are bit patterns
    without the sign: above `last_number` lie the NaNs. Of an `integer` type only the name matters."""

    name: str
    precision: int
    last_number: int
    largest: float
    smallest: float
    saturates: bool
    integer: bool = False

    @property
    def bits(self) -> Any:
        return {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[numpy_dtype(self.name).itemsize]


_FORMATS = {
    "bfloat16": Format("bfloat16", 8, 0x7F80, float.fromhex("0x1.fep127"), 2.0**-133, False),
    "float16": Format("float16", 11, 0x7C00, 65504.0, 2.0**-24, False),
    "float32": Format("float32", 24, 0x7F800000, float.fromhex("0x1.fffffep127"), 2.0**-149, False),
    "float64": Format(
        "float64", 53, 0x7FF0000000000000, float.fromhex("0x1.fffffffffffffp1023"), 2.0**-1074, False
    ),
    # Conversion to 8-bit formats saturates on the GPU (cvt.rn.satfinite).
    "float8_e4m3fn": Format("float8_e4m3fn", 4, 0x7E, 448.0, 2.0**-9, True),
    "float8_e5m2": Format("float8_e5m2", 3, 0x7C, 57344.0, 2.0**-16, True),
}


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype that holds a cuda.tile dtype; ValueError with a sentence for one it has none for."""
    name = {"tfloat32": "float32", "bool": "bool_"}.get(name, name)
    if hasattr(ml_dtypes, name):
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
    try:
        found = np.dtype(getattr(np, name))
        return found
    except (AttributeError, TypeError):
        raise ValueError(f"no host representation is known for dtype {name!r}") from None


def format_of(name: str) -> Format | None:
    """The floating-point format, or None for integers and formats without a bound."""
    return _FORMATS.get("float32" if name == "tfloat32" else name)


def integer_format(name: str) -> Format:
    """An integer type or bool, of which every number is exact."""
    return Format(name, 0, 0, 0.0, 0.0, False, integer=True)


def ordered(values: Array, form: Format) -> Array:
    """Signed integers in the numbers' own order: neighbours differ by 1, both zeros are 0.

    NaNs come out beyond the infinities; use `is_nan` before trusting a distance.
    """
    bits = np.ascontiguousarray(values).view(form.bits).reshape(values.shape)
    if form.integer:
        # Of an unsigned type the largest numbers have the sign bit; turned over, the order is right.
        lowest = form.bits(np.iinfo(form.bits).min)
        turned: Array = bits ^ lowest if numpy_dtype(form.name).kind == "u" else bits
        return turned
    sign = bits >> form.bits(bits.dtype.itemsize * 8 - 1)
    magnitude = bits & form.bits(np.iinfo(form.bits).max)
    result: Array = (magnitude ^ sign) - sign
    return result


def from_ordered(order: int, form: Format) -> Any:
    """The number that `ordered` maps to this integer."""
    if form.integer:
        lowest = np.iinfo(form.bits).min if numpy_dtype(form.name).kind == "u" else 0
        return np.array([order ^ lowest], form.bits).view(numpy_dtype(form.name))[0]
    magnitude = np.array([abs(order)], form.bits).view(numpy_dtype(form.name))[0]
    return magnitude if order >= 0 else -magnitude


def is_nan(values: Array, form: Format) -> Array:
    if form.integer:
        return np.zeros(values.shape, np.bool_)
    bits = np.ascontiguousarray(values).view(form.bits).reshape(values.shape)
    result: Array = (bits & form.bits(np.iinfo(form.bits).max)) > form.bits(form.last_number)
    return result


def round_to(values: Array, form: Format) -> Array:
    """Float64 values rounded to the format as the GPU does: through float32, to nearest even.

    A chain of monotone roundings is monotone, so an interval of float64 values maps to an interval.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if form.name == "float64":
            return values
        single = values.astype(np.float32)
        if form.saturates:
            single = np.clip(single, -form.largest, form.largest)
        return single if form.name == "float32" else single.astype(numpy_dtype(form.name))
