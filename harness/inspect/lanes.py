"""Values as the threads of a CTA hold them, and functions on them that stop at what is unknown.

A value is known or not. Known is one integer for all threads looked at, or a tuple with one per thread;
predicates are 0 and 1. None is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

Value = int | tuple[int, ...]
State = dict[str, Value]
"""Register name ("R5", "UR4", "P0", "UP1") to value; unknown ones are absent."""

WORD = 0xFFFFFFFF
_WARP = 32


@dataclass(frozen=True)
class Threads:
    """The threads a state speaks about: some warps of a CTA of `block` = (x, y, z) threads."""

    warps: tuple[int, ...]
    block: tuple[int, int, int]

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """Linear indices, x running fastest; 32 in a row are a warp."""
        x, y, z = self.block
        return tuple(t for w in self.warps for t in range(w * _WARP, min((w + 1) * _WARP, x * y * z)))

    def index(self, axis: int) -> Value:
        """The thread's index along x (0), y (1) or z (2)."""
        x, y, _ = self.block
        along = tuple((t % x, t // x % y, t // (x * y))[axis] for t in self.ids)
        return along[0] if len(set(along)) == 1 else along

    def per_warp(self, value: Value | None) -> dict[int, int | None]:
        """One value for each warp; None where it is unknown or the warp's threads disagree."""
        if not isinstance(value, tuple):
            return dict.fromkeys(self.warps, value)
        seen: dict[int, set[int]] = {}
        for thread, item in zip(self.ids, value, strict=True):
            seen.setdefault(thread // _WARP, set()).add(item)
        return {warp: items.pop() if len(items) == 1 else None for warp, items in seen.items()}

    def agreed(self, value: Value | None) -> Value | None:
        """The value, if within every warp all threads hold the same."""
        return None if None in self.per_warp(value).values() else value


def each(function: Callable[..., int], *values: Value | None) -> Value | None:
    """Thread by thread; unknown where any argument is, one integer where all threads agree."""
    if None in values:
        return None
    lanes = next((len(value) for value in values if isinstance(value, tuple)), None)
    if lanes is None:
        return function(*values)
    columns = [value if isinstance(value, tuple) else (value,) * lanes for value in values]
    result = tuple(map(function, *columns))
    return result[0] if len(set(result)) == 1 else result


def chosen(condition: Value | None, yes: Value | None, no: Value | None) -> Value | None:
    """`yes` in the threads where the condition holds, else `no`."""
    if yes == no:
        return yes
    return each(lambda bit, a, b: a if bit else b, condition, yes, no)


def flipped(value: Value | None, inverted: bool = True) -> Value | None:
    """Not of a predicate, if `inverted`."""
    return each(lambda bit: 1 - bit, value) if inverted else value


def combined(function: Callable[[int, int], int], a: Value | None, b: Value | None) -> Value | None:
    """A function of two predicates; known too where one side alone decides, as in x and 0, x or 1."""
    for known, other in ((a, b), (b, a)):
        if isinstance(known, int) and other is None and function(known, 0) == function(known, 1):
            return function(known, 0)
    return each(function, a, b)


def looked_up(table: int, inputs: list[Value | None]) -> Value | None:
    """Bit 4a + 2b + c of the table; known too where the predicates that are not make no difference."""
    choices = [(0, 1) if value is None else (value,) for value in inputs]
    outcomes = {each(lambda a, b, c: table >> (4 * a + 2 * b + c) & 1, *three) for three in product(*choices)}
    return outcomes.pop() if len(outcomes) == 1 else None


def bitwise(table: int, words: list[Value | None]) -> Value | None:
    """The same for every bit of three words; a word the table does not depend on may be unknown."""
    matters = [any((table >> i ^ table >> (i ^ bit)) & 1 for i in range(8)) for bit in (4, 2, 1)]
    needed = [word if matter else 0 for word, matter in zip(words, matters, strict=True)]
    return each(lambda a, b, c: _bits(table, a, b, c), *needed)


def signed(word: int) -> int:
    return word - (1 << 32) if word & 1 << 31 else word


def _bits(table: int, a: int, b: int, c: int) -> int:
    result = 0
    for index in range(8):
        if table >> index & 1:
            result |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
    return result & WORD
