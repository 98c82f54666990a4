"""What one value of a matrix file may be. Each rule checks, normalises and describes itself to editors.

A rule raises one of two pydantic errors, which `explain.py` turns into sentences: `matrix_type`
(`expected`: what should stand here) or `matrix_value` (`sentence`: a function, since finding the
nearest word is only worth its time for errors that are shown).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from harness.matrix.problems import listing, quote, show, suggestion
from harness.model import Scalar, scalar

MAX_VALUES = 10_000
"""Values in one list."""

_Json = dict[str, Any]


def wrong_type(expected: str) -> PydanticCustomError:
    return PydanticCustomError("matrix_type", "wrong type", {"expected": expected})


def bad_value(sentence: Callable[[], str]) -> PydanticCustomError:
    return PydanticCustomError("matrix_value", "bad value", {"sentence": sentence})


class Rule:
    """Base of the rules for a single value."""

    def check(self, value: Any) -> Any:
        raise NotImplementedError

    def describe(self) -> _Json:
        """The JSON Schema of what `check` accepts."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> _Json:
        return self.describe()


@dataclass(frozen=True)
class Whole(Rule):
    """A whole number from `low` to `high`; not true or false, which Python would let pass."""

    low: int
    high: int
    power_of_two: bool = False

    def check(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong_type("a whole number")
        power = not self.power_of_two or (value > 0 and value.bit_count() == 1)
        if not (self.low <= value <= self.high and power):
            raise bad_value(lambda: self._sentence(value))
        return value

    def _sentence(self, value: int) -> str:
        number = show(value).removeprefix("the number ")
        if self.power_of_two:
            return f"{number} is not a power of two from {self.low} to {self.high}; write one"
        return f"{number} is out of range; write a whole number from {self.low} to {self.high}"

    def describe(self) -> _Json:
        if self.power_of_two:
            powers = [1 << i for i in range(self.low.bit_length() - 1, self.high.bit_length())]
            return {"type": "integer", "enum": powers}
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Number(Rule):
    """A finite number from `low` to `high`, not NaN, which would equal no other cell's."""

    low: float
    high: float
    above: bool = False
    """Whether `low` itself is too little."""

    def check(self, value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong_type("a number")
        if not self.low <= value <= self.high or (self.above and value == self.low):
            number = show(value).removeprefix("the number ")
            span = f"{'above' if self.above else 'from'} {self.low:g} to {self.high:g}"
            raise bad_value(lambda: f"{number} is out of range; write a number {span}")
        return float(value)

    def describe(self) -> _Json:
        return {
            "type": "number",
            "exclusiveMinimum" if self.above else "minimum": self.low,
            "maximum": self.high,
        }


@dataclass(frozen=True)
class Flag(Rule):
    """true or false."""

    def check(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise wrong_type("true or false, without quotes")
        return value

    def describe(self) -> _Json:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Word(Rule):
    """One of a known set of words; `aliases` maps other spellings to them."""

    kind: str
    words: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...] = ()

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type(f"the name of {self.kind} in quotes")
        word = dict(self.aliases).get(value, value)
        if word not in self.words:
            raise bad_value(lambda: self._sentence(value))
        return word

    def _sentence(self, value: str) -> str:
        noun = self.kind.partition(" ")[2]
        remedy = suggestion(
            value, (*self.words, *dict(self.aliases)), f"known are {listing(map(quote, self.words))}"
        )
        return f"unknown {noun} {quote(value)}; {remedy}"

    def describe(self) -> _Json:
        return {"type": "string", "enum": [*self.words, *dict(self.aliases)]}


@dataclass(frozen=True)
class Text(Rule):
    """A string of which every character is of a pattern."""

    kind: str
    pattern: str
    says: str
    longest: int = 100

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type(f"{self.kind} in quotes")
        if len(value) > self.longest or not re.fullmatch(self.pattern, value):
            raise bad_value(
                lambda: (
                    f"{quote(value)} is not {self.kind}; use {self.says}, at most {self.longest} characters"
                )
            )
        return value

    def describe(self) -> _Json:
        return {"type": "string", "pattern": f"^{self.pattern}$", "maxLength": self.longest}


@dataclass(frozen=True)
class ReleaseVersion(Rule):
    """A version as package indexes write them. Kept as written: "13.3" stays open for the newest 13.3.x."""

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type("a version in quotes")
        try:
            fits = len(value) <= 40 and value.isascii() and value == value.strip() and bool(Version(value))
        except InvalidVersion:
            fits = False
        if not fits:
            raise bad_value(lambda: f'{quote(value)} is not a version; write one such as "13.3.1"')
        return value

    def describe(self) -> _Json:
        return {"type": "string", "pattern": r"^[0-9][0-9A-Za-z.!+-]*$"}


@dataclass(frozen=True)
class DriverRange(Rule):
    """A range of driver versions in the notation of Python packaging; empty for any."""

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type("a driver range in quotes")
        try:
            if len(value) > 100:
                raise InvalidSpecifier(value)
            return str(SpecifierSet(value))
        except InvalidSpecifier:
            raise bad_value(
                lambda: f'{quote(value)} is not a driver range; write ">=580" or ">=580,<590", say'
            ) from None

    def describe(self) -> _Json:
        return {"type": "string", "maxLength": 100}


@dataclass(frozen=True)
class Literal(Rule):
    """What a `ct.Constant` can hold: true, false or a number, inf and nan included."""

    def check(self, value: Any) -> Scalar:
        if not isinstance(value, bool | int | float):
            raise wrong_type("true, false or a number")
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise bad_value(lambda: f"{show(value)} does not fit 64 bits; write a smaller one")
        return scalar(value)

    def describe(self) -> _Json:
        return {"type": ["boolean", "number"]}


@dataclass(frozen=True)
class OrWord:
    """Wraps a rule: one more word is accepted, and read as None."""

    rule: Whole | Number | Flag
    word: str = "default"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def _check(self, value: Any) -> Any:
        if value == self.word:
            return None
        if isinstance(value, str):
            raise bad_value(lambda: self._sentence(value))
        return self.rule.check(value)

    def _sentence(self, value: str) -> str:
        kind = {Flag: "true, false", Number: "a number"}.get(type(self.rule), "a whole number")
        remedy = suggestion(value, (self.word,), "write it without quotes")
        return f"expected {kind} or {quote(self.word)}, found {show(value)}; {remedy}"

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> _Json:
        return {"anyOf": [self.rule.describe(), {"type": "string", "const": self.word}]}


@dataclass(frozen=True)
class OneOrMany:
    """For tuple[T, ...]: a list of at least one value, or one value alone. `depth` is how deep
    a single value itself nests lists (a shape: 1); `unique` tells editors that values do not repeat."""

    depth: int = 0
    unique: bool = True

    def unwrapped(self, value: Any) -> bool:
        """Whether this is one value alone."""
        for _ in range(self.depth):
            if not isinstance(value, list):
                return True
            if not value:
                return False
            value = value[0]
        return not isinstance(value, list)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def _check(self, value: Any) -> Any:
        if self.unwrapped(value):
            return (value,)
        if not value:
            raise PydanticCustomError("matrix_empty", "empty axis")
        if len(value) > MAX_VALUES:
            count = len(value)
            raise bad_value(lambda: f"lists {count:,} values, more than {MAX_VALUES:,}; split the matrix")
        return tuple(value)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> _Json:
        array = dict(handler(schema))
        return {"anyOf": [array["items"], {**array, "minItems": 1, "uniqueItems": self.unique}]}
