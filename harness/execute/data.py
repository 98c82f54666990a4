"""The data of a case, made once and shared by all hints and toolchains that see the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.execute import inputs, reference
from harness.execute.bounds import Expectation
from harness.execute.formats import Array
from harness.execute.protocol import EXPRESSIONS, Launch
from harness.execute.references.expression import expectations
from harness.model import digest_of

CACHE_BYTES = 2 << 30
"""Inputs and references kept per worker."""


@dataclass(frozen=True)
class Data:
    """What a case's data recipe comes to: inputs by array name, expectations by array name."""

    inputs: dict[str, Array]
    expected: dict[str, Expectation]

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.inputs.values()) + sum(e.nbytes for e in self.expected.values())


class DataCache:
    """Inputs and references, made once and shared by all hints and toolchains that see the same data."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, Data] = OrderedDict()

    def get(self, launch: Launch) -> Data:
        key = data_key(launch)
        if key not in self._kept:
            self._kept[key] = make_data(launch)
            while len(self._kept) > 1 and sum(d.nbytes for d in self._kept.values()) > self._limit:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def data_key(launch: Launch) -> str:
    """A name for the case's data: equal for all hints, toolchains and layouts."""
    arrays = [[a.name, a.dtype, a.shape, a.role, a.values] for a in launch.arrays]
    asked: dict[str, Any] = launch.reference.to_json() if launch.reference else {}
    known = reference.REFERENCES.get(asked.get("name", ""))
    if known is not None:
        asked["parameters"] = {k: v for k, v in asked["parameters"].items() if k in known.parameters}
    return digest_of([launch.seed, arrays, asked])


def make_data(launch: Launch) -> Data:
    """Draw the inputs, and work out what the outputs may be."""
    made = {
        a.name: inputs.make(launch.seed, a.name, a.dtype, a.shape, a.values)
        for a in launch.arrays
        if a.role != "out"
    }
    return Data(made, expected_of(launch, made))


def expected_of(launch: Launch, made: Mapping[str, Array]) -> dict[str, Expectation]:
    """What the outputs may be for these inputs, by array name; nothing where no reference is known."""
    if launch.reference is None:
        return {}
    if launch.reference.name == EXPRESSIONS:
        return expectations(
            launch.reference.expressions,
            made,
            launch.reference.parameters,
            {a.name: (a.dtype, a.shape) for a in launch.arrays if a.role != "in"},
            launch.reference.tolerances,
        )
    if launch.reference.name not in reference.REFERENCES:
        raise ValueError(
            f"no reference is named {launch.reference.name!r}; there are {', '.join(reference.REFERENCES)}"
        )
    names = launch.reference.roles
    roles = {name: role for role, name in names.items()}
    expected = reference.REFERENCES[launch.reference.name].compute(
        {roles.get(name, name): values for name, values in made.items()},
        launch.reference.parameters,
        {roles.get(a.name, a.name): a.dtype for a in launch.arrays if a.role != "in"},
    )
    return {names.get(role, role): e for role, e in expected.items()}
