"""What one property of a cell may be: spans of numbers or versions, and words. Pure.

A condition is written as a value, as a range (">=12", ">=8,<=16"), or as a list of those of which any
will do. "default" is a setting that was not asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import InvalidVersion, Version

DEFAULT = "default"

Parse = Callable[[str], Any]
_TERM = re.compile(r"\s*(>=|<=|==|>|<)\s*([^\s<>=,]+)\s*")


@dataclass(frozen=True)
class Span:
    """Values between two ends, each of which may be left open (None) and may belong to it or not."""

    low: Any = None
    high: Any = None
    with_low: bool = True
    with_high: bool = True

    def __contains__(self, value: Any) -> bool:
        above = self.low is None or (value >= self.low if self.with_low else value > self.low)
        return above and (self.high is None or (value <= self.high if self.with_high else value < self.high))

    def __and__(self, other: Span) -> Span:
        lows = [(s.low, not s.with_low) for s in (self, other) if s.low is not None]
        highs = [(s.high, s.with_high) for s in (self, other) if s.high is not None]
        low, open_low = max(lows, default=(None, False))
        high, closed_high = min(highs, default=(None, True))
        return Span(low, high, not open_low, closed_high)

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return bool(
            self.low > self.high or (self.low == self.high and not (self.with_low and self.with_high))
        )


@dataclass(frozen=True)
class Condition:
    """Spans and words of which any will do."""

    spans: tuple[Span, ...] = ()
    words: frozenset[Any] = frozenset()

    def holds(self, value: Any) -> bool:
        """Whether a value fits; None is a setting that was not asked for."""
        if value is None:
            return DEFAULT in self.words
        if isinstance(value, bool | str):
            return value in self.words
        return any(value in span for span in self.spans)

    def __and__(self, other: Condition) -> Condition:
        both = [mine & theirs for mine in self.spans for theirs in other.spans]
        return Condition(tuple(s for s in both if not s.is_empty), self.words & other.words)

    @property
    def is_empty(self) -> bool:
        return not self.words and all(span.is_empty for span in self.spans)


class NoCondition(ValueError):
    """A text that is no condition; the message says what one looks like."""


def words(values: Sequence[Any]) -> Condition:
    """One of these."""
    return Condition(words=frozenset(values))


def whole(text: str) -> int:
    """A whole number."""
    return int(text)


def number(text: str) -> float:
    """A finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def version(text: str) -> Version:
    """A version as packages have them."""
    return Version(text)


def ranges(values: Sequence[Any], parse: Parse, within: Span | None = None) -> Condition:
    """Numbers or versions: each value is one, a range, or "default". Raises NoCondition."""
    spans, named = [], set()
    for value in values:
        if value == DEFAULT:
            named.add(value)
            continue
        span = _span(str(value), parse)
        if parse is whole:
            span = _closed(span)
        spans.append(span & within if within is not None else span)
    return Condition(tuple(spans), frozenset(named))


def _span(text: str, parse: Parse) -> Span:
    try:
        if not text.lstrip().startswith((">", "<", "=")):
            value = parse(text)
            return Span(value, value)
        span = Span()
        for part in text.split(","):
            term = _TERM.fullmatch(part)
            if term is None:
                raise NoCondition(text)
            sign, value = term[1], parse(term[2])
            if sign == "==":
                span &= Span(value, value)
            elif sign.startswith(">"):
                span &= Span(low=value, with_low=sign == ">=")
            else:
                span &= Span(high=value, with_high=sign == "<=")
        return span
    except (ValueError, InvalidVersion):
        raise NoCondition(text) from None


def _closed(span: Span) -> Span:
    """A span of whole numbers, its ends among them."""
    low = span.low if span.low is None or span.with_low else span.low + 1
    high = span.high if span.high is None or span.with_high else span.high - 1
    return Span(low, high)
