"""Simpler configurations of a case: one pass per axis, each proposing the simplest value first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from harness.kernels.arrays import ITEMSIZE, LAYOUTS
from harness.kernels.description import Kernel
from harness.model import Case, Hints, Scalar
from harness.reduce.engine import Cost, Pass

DTYPES = ("float32", "float16", "bfloat16", "float64")
"""From the plainest on; whatever is not listed is less plain still."""

_LAYOUTS = tuple(LAYOUTS)
_NO_HINTS = Hints()


def config_passes(kernel: Kernel) -> tuple[Pass[Case], ...]:
    """Passes over data, layout, shape, dtype, hints and the kernel's own knobs, in this order.

    Data and layout come first because the compiler often cannot tell them apart: that costs nothing.
    """
    passes = [
        Pass("plain data", _data),
        Pass("plain layout", _layout),
        Pass("fewer hints", lambda case: (replace(case, hints=h) for h in simpler_hints(case.hints))),
        Pass("default knobs", _default_knobs),
    ]
    for axis, name in enumerate(kernel.dims):
        passes.append(Pass(f"smaller {name}", _smaller_side(axis)))
    passes.append(Pass("plain dtype", _dtype))
    for name in kernel.knobs:
        passes.append(Pass(f"smaller {name}", _smaller_knob(name)))
    return tuple(passes)


def cost(case: Case) -> Cost:
    """What a reader must take in: settings spelled out, then sizes, then how plain the rest is."""
    return (
        len(case.knobs) + hint_count(case.hints),
        sum(case.shape),
        (case.values != "normal") + (case.seed != 0) + _LAYOUTS.index(case.layout),
        _plainness(case.dtype),
        hint_weight(case.hints),
        sum(_weight(value) for _, value in case.knobs),
    )


def hint_count(hints: Hints) -> int:
    """How many hints are not as the compiler would have them by default."""
    return sum(value != getattr(_NO_HINTS, name) for name, value in hints.to_json().items())


def hint_weight(hints: Hints) -> int:
    """Size of the numbers in the hints."""
    return (
        (hints.occupancy or 0)
        + (hints.num_ctas or 0)
        + (3 - (3 if hints.opt_level is None else hints.opt_level))
    )


def simpler_hints(hints: Hints) -> Iterator[Hints]:
    """All left out, one left out, one smaller."""
    if hints == _NO_HINTS:
        return
    yield _NO_HINTS
    for name in ("num_worker_warps", "num_ctas", "opt_level", "occupancy"):
        if getattr(hints, name) != getattr(_NO_HINTS, name):
            yield replace(hints, **{name: getattr(_NO_HINTS, name)})
    for name in ("num_ctas", "occupancy"):
        value = getattr(hints, name)
        if value is not None:
            for smaller in powers_below(value):
                yield replace(hints, **{name: smaller})


def powers_below(value: int) -> Iterator[int]:
    """1, 2, 4, ... as far as they are smaller than `value`."""
    power = 1
    while power < value:
        yield power
        power *= 2


def _data(case: Case) -> Iterator[Case]:
    yield replace(case, values="normal", seed=0)
    yield replace(case, seed=0)


def _layout(case: Case) -> Iterator[Case]:
    for layout in _LAYOUTS[: _LAYOUTS.index(case.layout)]:
        yield replace(case, layout=layout)


def _dtype(case: Case) -> Iterator[Case]:
    if case.dtype in ITEMSIZE and not case.parameters:
        for dtype in DTYPES[: min(_plainness(case.dtype), len(DTYPES))]:
            yield replace(case, dtype=dtype)


def _plainness(dtype: str) -> int:
    return DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES)


def _smaller_side(axis: int) -> Callable[[Case], Iterator[Case]]:
    def variants(case: Case) -> Iterator[Case]:
        for size in powers_below(case.shape[axis]):
            yield replace(case, shape=(*case.shape[:axis], size, *case.shape[axis + 1 :]))

    return variants


def _default_knobs(case: Case) -> Iterator[Case]:
    """All knobs left to the kernel, then one at a time."""
    if not case.knobs:
        return
    yield replace(case, knobs=())
    for name, _ in case.knobs:
        yield replace(case, knobs=tuple(pair for pair in case.knobs if pair[0] != name))


def _smaller_knob(name: str) -> Callable[[Case], Iterator[Case]]:
    """Smaller numbers for a knob that is spelled out; one left to the kernel is simpler still."""

    def variants(case: Case) -> Iterator[Case]:
        value = case.knob(name)
        if isinstance(value, int) and not isinstance(value, bool):
            for smaller in powers_below(value):
                yield _with_knob(case, name, smaller)
        elif isinstance(value, float) and value not in (0.0, 1.0):
            yield _with_knob(case, name, 0.0)
            yield _with_knob(case, name, 1.0)

    return variants


def _with_knob(case: Case, name: str, value: Scalar) -> Case:
    return replace(case, knobs=tuple(sorted({**dict(case.knobs), name: value}.items())))


def _weight(value: Scalar) -> float:
    match value:
        case bool() | None:
            return 0
        case int() | float():
            return len(repr(value)) + min(abs(value), 1e9) / 1e9
    return len(str(value))
