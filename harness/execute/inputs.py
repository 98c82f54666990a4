"""What is in an input: seeded, and the same for every toolchain, hint and layout.

The values depend on the case's seed, the array's name, shape, dtype and the kind of values, and on nothing
else, so that two settings of one case see the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from harness.execute.formats import Array, Format, format_of, numpy_dtype

KINDS = {
    "normal": "standard normal",
    "wide": "log-uniform magnitudes over up to 40 binades, either sign",
    "tiny": "subnormal numbers of the dtype, either sign",
    "huge": "between half of the largest number and the largest, either sign",
    "zero_rows": "standard normal, every third row zero",
    "nan": "standard normal with a few NaNs",
    "inf": "standard normal with a few infinities (the largest number where the dtype has none)",
    "ones": "all ones",
}
"""The kinds of values, by name."""

_WIDE_BINADES = 20


def generator(seed: int, name: str, dtype: str, shape: tuple[int, ...], values: str) -> np.random.Generator:
    """A random stream named by everything that may matter to the values."""
    text = repr((seed, name, dtype, shape, values)).encode()
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text).digest()[:16], "little")))


def make(seed: int, name: str, dtype: str, shape: tuple[int, ...], values: str) -> Array:
    """The array's elements, C-contiguous, in its own dtype."""
    if values not in KINDS:
        raise ValueError(f"unknown kind of values {values!r}; there are {', '.join(KINDS)}")
    random = generator(seed, name, dtype, shape, values)
    target = numpy_dtype(dtype)
    form = format_of(dtype)
    if form is None:
        return _integers(random, target, shape, values)
    with np.errstate(over="ignore", under="ignore"):
        made = _MAKERS[values](random, shape, form)
        if made.dtype == target:
            return made
        finite = np.clip(made, -form.largest, form.largest)
        return (
            np.where(np.isfinite(made), finite, made).astype(target)
            if form.saturates
            else made.astype(target)
        )


def _integers(
    random: np.random.Generator, target: np.dtype[np.generic], shape: tuple[int, ...], values: str
) -> Array:
    if values == "ones":
        return np.ones(shape, target)
    if target.kind not in "iub":
        raise ValueError(f"no values can be made for dtype {target}")
    return random.integers(0, 2 if target.kind == "b" else 100, shape).astype(target)


def _normal(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    return random.standard_normal(shape, dtype=np.float32)


def _signs(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return random.integers(0, 2, shape, dtype=np.int8).astype(np.float64) * 2 - 1


def _wide(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    low = max(-_WIDE_BINADES, int(np.log2(form.smallest)) + form.precision)
    high = min(_WIDE_BINADES, int(np.log2(form.largest)) - 1)
    exponent = random.integers(low, high + 1, shape)
    return _signs(random, shape) * np.ldexp(1 + random.random(shape), exponent)


def _tiny(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    steps = random.integers(0, 1 << (form.precision - 1), shape)
    return _signs(random, shape) * steps * form.smallest


def _huge(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    return _signs(random, shape) * form.largest * (0.5 + 0.5 * random.random(shape))


def _zero_rows(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    made = _normal(random, shape, form)
    made[::3] = 0
    return made


def _nan(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    return _sprinkle(random, _normal(random, shape, form), np.array([np.nan], np.float32))


def _inf(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    top = np.inf if form.name != "float8_e4m3fn" else form.largest
    return _sprinkle(random, _normal(random, shape, form), np.array([top, -top], np.float32))


def _sprinkle(random: np.random.Generator, made: Array, special: Array) -> Array:
    """Replace about one element in every eighth row (one at least)."""
    if made.size:
        rows = made.shape[0] if made.ndim > 1 else 1
        places = random.integers(0, made.size, max(1, rows // 8))
        made.reshape(-1)[places] = np.resize(special, places.size)
    return made


def _ones(random: np.random.Generator, shape: tuple[int, ...], form: Format) -> Array:
    return np.ones(shape, np.float32)


_MAKERS: dict[str, Callable[[np.random.Generator, tuple[int, ...], Format], Array]] = {
    "normal": _normal,
    "wide": _wide,
    "tiny": _tiny,
    "huge": _huge,
    "zero_rows": _zero_rows,
    "nan": _nan,
    "inf": _inf,
    "ones": _ones,
}
