"""One output against what it may be, and one launch's outputs against another's."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from harness.execute.arena import Arena, Bytes, Elements
from harness.execute.bounds import Expectation
from harness.execute.formats import Array, from_ordered, is_nan, numpy_dtype, ordered
from harness.execute.protocol import Mismatch, OutputSeen

MAX_EXAMPLES = 8


def examine(arena: Arena, launches: list[Bytes], expectation: Expectation | None) -> OutputSeen:
    """Everything there is to say about one output, from the arena images after each repeat launch."""
    bits = [arena.bits(memory) for memory in launches]
    first = bits[0].view(numpy_dtype(arena.array.dtype))
    if len(bits) > 1 and all(np.array_equal(bits[0], later) for later in bits[1:]):
        # Each launch started from its own poison, so what all agree on was written by all.
        untouched = differing = np.zeros(bits[0].shape, np.bool_)
    else:
        untouched = np.logical_and.reduce([one == arena.poison_bits(r) for r, one in enumerate(bits)])
        differing = np.logical_or.reduce([one != bits[0] for one in bits]) & ~untouched
    seen: dict[str, Any] = {
        "name": arena.array.name,
        "sha256": hashlib.sha256(bits[0].tobytes()).hexdigest(),
        "elements": int(bits[0].size),
        "never_written": int(np.count_nonzero(untouched)),
        "outside_bytes": max(arena.outside_bytes(memory, r) for r, memory in enumerate(launches)),
        "differing": int(np.count_nonzero(differing)),
    }
    if expectation is not None:
        seen |= _against(first, expectation, untouched)
        for later in bits[1:] if seen["differing"] else ():
            again = _against(later.view(first.dtype), expectation, untouched)
            if again["beyond_bound"] > seen["beyond_bound"]:
                seen |= again
    elif seen["never_written"]:
        seen["pattern"] = describe(untouched)
    return OutputSeen(**seen)


def _against(values: Elements, expectation: Expectation, untouched: Array) -> dict[str, Any]:
    form = expectation.form
    order = ordered(values, form)
    nan = is_nan(values, form)
    inside = (order >= expectation.low) & (order <= expectation.high) & ~nan
    wrong = ~inside & ~(nan & expectation.nan)
    wide = np.int32 if order.dtype.itemsize < 4 else np.int64
    distance = np.abs(order.astype(wide) - expectation.reference.astype(wide))
    distance[nan | expectation.nan] = 0
    found: dict[str, Any] = {
        "compared": True,
        "beyond_bound": int(np.count_nonzero(wrong)),
        "unexpected_nan": int(np.count_nonzero(nan & ~expectation.nan & ~untouched)),
        "missing_nan": int(np.count_nonzero(~nan & expectation.nan)),
        "bound_ulp": expectation.bound_ulp,
        "worst_ulp": int(distance.max()) if distance.size else 0,
        "pattern": "",
        "examples": (),
    }
    if distance.size:
        found["worst_index"] = _index(int(np.argmax(distance)), distance.shape)
    if found["beyond_bound"]:
        found["pattern"] = describe(wrong)
        found["examples"] = _examples(values, expectation, wrong, distance)
    return found


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _examples(
    values: Elements, expectation: Expectation, wrong: Array, distance: Array
) -> tuple[Mismatch, ...]:
    """The worst element, then the first ones."""
    worst = int(np.argmax(np.where(wrong, distance, -1)))
    places = [worst, *(int(i) for i in np.flatnonzero(wrong)[:MAX_EXAMPLES] if int(i) != worst)]
    return tuple(
        Mismatch(
            index=_index(place, values.shape),
            got=_number(values.reshape(-1)[place]),
            expected=_expected(expectation, place),
            ulp=_ulp(values, expectation, distance, place),
        )
        for place in places[:MAX_EXAMPLES]
    )


def _expected(expectation: Expectation, place: int) -> float | str:
    if expectation.nan.reshape(-1)[place]:
        return "nan"
    order = int(expectation.reference.reshape(-1)[place])
    return _number(from_ordered(order, expectation.form))


def _ulp(values: Elements, expectation: Expectation, distance: Array, place: int) -> int | None:
    one = values.reshape(-1)[place : place + 1]
    if expectation.nan.reshape(-1)[place] or bool(is_nan(one, expectation.form)[0]):
        return None
    return int(distance.reshape(-1)[place])


def _number(value: Any) -> float | str:
    """JSON has no NaN or infinity: those travel as words."""
    number = float(value)
    return number if np.isfinite(number) else str(number)


def describe(wrong: Array) -> str:
    """Where the marked elements lie, in words: whole rows, a tail of columns, scattered."""
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    share = f"{count} of {wrong.size} elements"
    if wrong.ndim != 2 or count == wrong.size:
        if count == wrong.size:
            return f"all {count} elements"
        places = np.flatnonzero(wrong)
        return f"{share}, between {int(places[0])} and {int(places[-1])} of the flattened array"
    rows, columns = wrong.any(axis=1), wrong.any(axis=0)
    row_count, column_count = int(rows.sum()), int(columns.sum())
    places = np.flatnonzero(columns)
    if count == row_count * wrong.shape[1]:
        return f"{share}: {row_count} whole rows, {_span(np.flatnonzero(rows))}"
    if count == column_count * wrong.shape[0]:
        return f"{share}: {column_count} whole columns, {_span(places)}"
    across = f"{column_count} columns ({_span(places)})"
    return f"{share}, in {row_count} rows ({_span(np.flatnonzero(rows))}) and {across}"


def _span(places: Array) -> str:
    first, last = int(places[0]), int(places[-1])
    if first == last:
        return f"only {first}"
    return f"{first} to {last}" + ("" if last - first + 1 == places.size else " with gaps")
