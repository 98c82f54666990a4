"""Methods of tensors that are alike: reductions, and everything elementwise."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .dtypes import DTYPES


def elementwise(tensor: Any) -> Callable[..., Any]:
    """A method that is not known: elementwise, as most are; one that ends in _ works in place."""
    return lambda *args, **options: tensor._like()


def _reduction(dtype: str | None = None, *, pair: bool = False) -> Callable[[Any], Callable[..., Any]]:
    """A method that takes `dim` (or `axis`) away; `pair`: the values and where they were."""

    def method(tensor: Any) -> Callable[..., Any]:
        def call(*args: Any, dim: Any = None, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
            given = next((a for a in (dim, axis, *args) if isinstance(a, int | tuple | list)), None)
            keep = keepdim or bool(options.get("keepdims", False))
            gone = range(tensor.ndim) if given is None else [given] if isinstance(given, int) else given
            axes = {a % max(1, tensor.ndim) for a in gone}
            shape = tuple(1 if i in axes else n for i, n in enumerate(tensor.shape) if keep or i not in axes)
            values = tensor._like(shape, DTYPES[dtype] if dtype else None)
            if not pair or given is None:
                return values
            where = tensor._like(shape, DTYPES["int64"])
            return Pair(values=values, indices=where)

        return call

    return method


class Pair(SimpleNamespace):
    """Values and indices, by name or in order."""

    def __iter__(self) -> Any:
        return iter((self.values, self.indices))

    def __getitem__(self, at: int) -> Any:
        return (self.values, self.indices)[at]


REDUCTIONS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    **{name: _reduction() for name in ("sum", "mean", "amax", "amin", "norm", "prod", "var", "std")},
    **{name: _reduction(pair=True) for name in ("max", "min", "median")},
    **{name: _reduction("bool") for name in ("all", "any")},
    **{name: _reduction("int64") for name in ("argmax", "argmin", "count_nonzero")},
}
