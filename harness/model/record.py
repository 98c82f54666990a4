"""What every noun can do: become plain JSON, come back, and name itself by a digest.

The digest is a SHA-256 over canonical JSON, so that equal values have equal names on every machine. Results
on disk are found again by it: a new field keeps the digests of old values only where `to_json` leaves it
out while it has its default.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from enum import StrEnum
from functools import cache, cached_property
from typing import Any, Self

Scalar = bool | int | float | str | None


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: the text that digests are taken over."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest_of(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON of a plain value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def scalar(value: Any) -> Scalar:
    """A setting as every value of it is held: one NaN for all, so that equal cells are equal."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def scalar_to_json(value: Scalar) -> Scalar | dict[str, str]:
    """A setting as JSON can hold it, which knows no NaN and no infinities: {"float": "-inf"}."""
    return value if not isinstance(value, float) or math.isfinite(value) else {"float": str(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _revive(hint: Any, value: Any) -> Any:
    """Rebuild a value of the annotated type from plain JSON."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        if hint == Scalar and isinstance(value, dict):
            return scalar(float(value["float"]))
        records = [a for a in arguments if isinstance(a, type) and issubclass(a, Record)]
        if records and isinstance(value, dict):
            named = {r.__name__: r for r in records}
            return named[value["type"]].from_json(value) if "type" in value else records[0].from_json(value)
        others = [a for a in arguments if a is not type(None)]
        return _revive(others[0], value) if len(others) == 1 else value
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_revive(arguments[0], item) for item in value)
        return tuple(_revive(a, item) for a, item in zip(arguments, value, strict=True))
    if origin is dict:
        return {key: _revive(arguments[1], item) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_json(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    return value


@cache
def _field_types(record: type) -> dict[str, Any]:
    """The resolved annotations of a record's fields."""
    hints = typing.get_type_hints(record)
    return {field.name: hints[field.name] for field in dataclasses.fields(record)}


class Record:
    """Base of the nouns: to and from plain JSON, and a digest."""

    def to_json(self) -> dict[str, Any]:
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        hints = _field_types(cls)  # type: ignore[arg-type]
        return cls(**{key: _revive(hints[key], item) for key, item in data.items() if key in hints})

    @cached_property
    def digest(self) -> str:
        return digest_of(self.to_json())
