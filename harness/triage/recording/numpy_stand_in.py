"""Stand-ins for NumPy, CuPy and jax.numpy, where they are not installed: the same tensors as torch's."""

from __future__ import annotations

import math
from typing import Any

from .anything import Anything, Module
from .dtypes import DTYPES, flat
from .factories import Factories, OnTensors
from .tensors import Tensor

DEFAULT_DTYPES = {"numpy": "float64", "cupy": "float64", "jax.numpy": "float32"}


class NumericModule(Module):
    """A module of array functions."""

    def __init__(self, name: str, default: str) -> None:
        factories = Factories(default)
        super().__init__(name, {**factories.functions(), "ndarray": Tensor, "pi": math.pi, "inf": math.inf})
        self.__dict__.update({"nan": math.nan, "e": math.e, "newaxis": None, "float32": DTYPES["float32"]})
        self.random = Random(factories)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in DTYPES:
            return DTYPES[name]
        return Anything() if name[:1].isupper() else OnTensors(name)


class Random:
    """numpy.random, and the generators that it makes."""

    def __init__(self, factories: Factories) -> None:
        self._factories = factories

    def _sized(self, *args: Any, size: Any = None, dtype: Any = None, **options: Any) -> Tensor:
        shape = size if size is not None else args[-1] if args else ()
        return Tensor(flat((shape,)), self._factories.dtype(dtype))

    def _by_extents(self, *shape: Any, size: Any = None, dtype: Any = None, **options: Any) -> Tensor:
        return self._factories.of_shape(*shape, size=size, dtype=dtype)

    def _whole(self, *args: Any, **options: Any) -> Tensor:
        return self._factories.randint(*args, **options)

    def default_rng(self, *args: Any) -> Random:
        return self

    def seed(self, *args: Any) -> None: ...

    RandomState = PRNGKey = default_rng
    rand = randn = random_sample = _by_extents
    random = standard_normal = normal = uniform = _sized
    randint = integers = _whole

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._sized


def make(name: str) -> Module | None:
    """The module, or None for a name that is none of these."""
    default = DEFAULT_DTYPES.get(name)
    return None if default is None else NumericModule(name, default)
