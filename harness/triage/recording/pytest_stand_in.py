"""A stand-in for pytest: remembers how tests are parametrized, so that they can be called."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from .anything import Anything, Module

MAX_CALLS = 16
"""Calls of one test, over the product of its parameters."""

_PARAMETERS = "_tile_harness_parameters"


class Marks:
    """pytest.mark: `parametrize` is remembered, the rest decorates with nothing."""

    def parametrize(self, names: Any, values: Any, *args: Any, **options: Any) -> Any:
        listed = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        rows = []
        for value in values:
            given: Any = value.values if isinstance(value, Param) else value
            rows.append(dict(zip(listed, given if len(listed) > 1 else (given,), strict=False)))

        def decorate(function: Any) -> Any:
            with contextlib.suppress(AttributeError):
                setattr(function, _PARAMETERS, [*getattr(function, _PARAMETERS, []), rows])
            return function

        return decorate

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class Param:
    """pytest.param: one row of values."""

    def __init__(self, *values: Any, **options: Any) -> None:
        self.values: Any = values if len(values) != 1 else values[0]


def fixture(*args: Any, **options: Any) -> Any:
    """The function itself, to be called where a test names it."""
    return args[0] if args and isinstance(args[0], FunctionType) else lambda function: function


def make() -> Module:
    """The module."""
    return Module("pytest", {"mark": Marks(), "param": Param, "fixture": fixture})


def calls(module: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Every test of a module, with arguments: of the product of its parameters, and of fixtures."""
    for name, test in list(module.items()):
        if not name.startswith("test") or not isinstance(test, FunctionType):
            continue
        rows = itertools.product(*getattr(test, _PARAMETERS, []))
        for row in itertools.islice(rows, MAX_CALLS):
            given: dict[str, Any] = {key: value for part in row for key, value in part.items()}
            for wanted, parameter in inspect.signature(test).parameters.items():
                if wanted not in given and parameter.default is parameter.empty:
                    made = module.get(wanted)
                    given[wanted] = made() if isinstance(made, FunctionType) else Anything()
            yield test, given
