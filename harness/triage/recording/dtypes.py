"""Element types, and the shapes and types of nested lists."""

from __future__ import annotations

from typing import Any

ITEMSIZE = {
    "bool": 1,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e8m0fnu": 1,
}
_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64"}


class DType:
    """torch.float16 and the like."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.itemsize = ITEMSIZE[name]
        self.is_floating_point = "float" in name

    def __call__(self, value: Any = 0) -> Any:
        """A number of this type, as NumPy's types make them."""
        if hasattr(value, "to"):
            return value.to(self)
        return float(value) if self.is_floating_point else int(value)

    def __repr__(self) -> str:
        return f"torch.{self.name}"


DTYPES = {name: DType(name) for name in ITEMSIZE}
DTYPES |= {alias: DTYPES[name] for alias, name in _ALIASES.items()}


class Device:
    """A device that is only a name."""

    type = "cuda"
    index = 0

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __str__(self) -> str:
        return "cuda:0"

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def flat(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Extents, given one by one or as one sequence."""
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return tuple(int(n) for n in given)


def dtype_of(values: Any) -> DType:
    """What torch makes of a nested list."""
    while isinstance(values, list | tuple) and values:
        values = values[0]
    named = "bool" if isinstance(values, bool) else "int64" if isinstance(values, int) else "float32"
    return DTYPES[named]


def shape_of(values: Any) -> tuple[int, ...]:
    """The shape of a nested list, or of another library's array."""
    if hasattr(values, "shape"):
        return tuple(int(n) for n in values.shape)
    shape: list[int] = []
    while isinstance(values, list | tuple | range):
        shape.append(len(values))
        values = values[0] if values else None
    return tuple(shape)
