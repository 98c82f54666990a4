"""Tensors that only know shape, strides and dtype: what a launch tells a compiler, and no memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from .anything import Anything

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
        if isinstance(value, Tensor):
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


class Tensor:
    """Shape, strides and storage offset in elements, and a dtype; no memory."""

    device = Device()
    is_cuda = True
    requires_grad = False
    grad = None
    tape: list[Callable[[], Any]] = []  # noqa: RUF012 - of all tensors together
    """Backward passes of what was computed so far, to be run in reverse."""

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None = None, offset: int = 0
    ) -> None:
        self.shape = tuple(int(n) for n in shape)
        self.dtype = dtype
        self.strides = contiguous(self.shape) if strides is None else strides
        self.offset = offset

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Tensor:
        return Tensor(self.shape[::-1], self.dtype, self.strides[::-1], self.offset)

    @property
    def mT(self) -> Tensor:
        return self.transpose(-1, -2)

    @property
    def data(self) -> Tensor:
        return self

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.numel() * self.dtype.itemsize

    def t(self) -> Tensor:
        return self.T

    def backward(self, *args: Any, **options: Any) -> None:
        while Tensor.tape:
            Tensor.tape.pop()()

    def item(self) -> Any:
        return 1.0 if self.dtype.is_floating_point else self.dtype.name == "bool" or 1

    def numpy(self) -> Any:
        return self

    def tolist(self) -> Any:
        value = self.item()
        for size in reversed(self.shape):
            value = [value] * size
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name in DTYPES:
            return lambda: self._like(dtype=DTYPES[name])
        if name.startswith("new_"):
            return partial(self._new, name)
        method: Callable[[Tensor], Any] = _REDUCTIONS.get(name, _elementwise)
        return method(self)

    def _new(self, name: str, *args: Any, dtype: DType | None = None, **options: Any) -> Tensor:
        """new_empty(…) and its kin; new_full and new_tensor name a value as well."""
        if name == "new_tensor":
            return Tensor(shape_of(args[0]), dtype or self.dtype)
        return self._like(flat(args[:1] if name == "new_full" else args), dtype)

    def _like(self, shape: tuple[int, ...] | None = None, dtype: DType | None = None) -> Tensor:
        return Tensor(self.shape if shape is None else shape, dtype or self.dtype)

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis: int | None = None) -> Any:
        return self.strides if axis is None else self.strides[axis]

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    nelement = numel

    def element_size(self) -> int:
        return self.dtype.itemsize

    def storage_offset(self) -> int:
        return self.offset

    def data_ptr(self) -> int:
        return 0x7F0000000000 + self.offset * self.dtype.itemsize

    def is_contiguous(self, *args: Any, **options: Any) -> bool:
        lies = zip(self.shape, self.strides, contiguous(self.shape), strict=True)
        return all(size == 1 or mine == usual for size, mine, usual in lies)

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else self._like()

    def clone(self, *args: Any, **options: Any) -> Tensor:
        return self._like()

    def to(self, *args: Any, **options: Any) -> Tensor:
        known = [getattr(a, "dtype", a) for a in (*args, *options.values())]
        wanted = [dtype for dtype in known if isinstance(dtype, DType)]
        return Tensor(self.shape, wanted[0] if wanted else self.dtype, self.strides, self.offset)

    def type(self, dtype: DType) -> Tensor:
        return self.to(dtype)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Tensor:
        return self.to(DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype)

    def view(self, *shape: Any) -> Tensor:
        if len(shape) == 1 and isinstance(shape[0], DType):
            return self.to(shape[0])
        wanted = flat(shape)
        known = math.prod(n for n in wanted if n != -1)
        return self._like(tuple(self.numel() // max(1, known) if n == -1 else n for n in wanted))

    reshape = view

    def expand(self, *shape: Any) -> Tensor:
        wanted = flat(shape)
        lead = len(wanted) - len(self.shape)
        old, steps = (1,) * lead + self.shape, (0,) * lead + self.strides
        sizes = tuple(a if b == -1 else b for a, b in zip(old, wanted, strict=True))
        strides = tuple(0 if a == 1 and b != 1 else s for a, b, s in zip(old, sizes, steps, strict=True))
        return Tensor(sizes, self.dtype, strides, self.offset)

    def transpose(self, *axes: int) -> Tensor:
        if len(axes) != 2:
            return self.permute(*axes) if axes else self.T
        (one, other), order = axes, list(range(self.ndim))
        order[one], order[other] = order[other], order[one]
        return self.permute(*order)

    def permute(self, *order: Any) -> Tensor:
        axes = flat(order)
        shape = tuple(self.shape[a] for a in axes)
        return Tensor(shape, self.dtype, tuple(self.strides[a] for a in axes), self.offset)

    def unsqueeze(self, axis: int) -> Tensor:
        at = axis + self.ndim + 1 if axis < 0 else axis
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(at, 1)
        strides.insert(at, self.strides[at] * self.shape[at] if at < self.ndim else 1)
        return Tensor(tuple(shape), self.dtype, tuple(strides), self.offset)

    def squeeze(self, axis: int | None = None) -> Tensor:
        kept = [i for i, n in enumerate(self.shape) if n != 1 or (axis is not None and i != axis % self.ndim)]
        return self.permute_to(kept)

    def permute_to(self, axes: list[int]) -> Tensor:
        shape = tuple(self.shape[a] for a in axes)
        return Tensor(shape, self.dtype, tuple(self.strides[a] for a in axes), self.offset)

    def flatten(self, *args: Any) -> Tensor:
        return self._like((self.numel(),))

    ravel = flatten

    def narrow(self, axis: int, start: int, length: int) -> Tensor:
        part: Tensor = self[(*[slice(None)] * (axis % self.ndim), slice(start, start + length))]
        return part

    def split(self, size: Any, dim: int = 0) -> tuple[Tensor, ...]:
        extent, at, parts = self.shape[dim], 0, []
        sizes = size if isinstance(size, list | tuple) else [size] * -(-extent // int(size))
        for length in sizes:
            parts.append(self.narrow(dim, at, min(length, extent - at)))
            at += length
        return tuple(parts)

    def chunk(self, count: int, dim: int = 0) -> tuple[Tensor, ...]:
        return self.split(-(-self.shape[dim] // count), dim)

    def topk(self, k: int, dim: int = -1, *args: Any, **options: Any) -> Any:
        shape = list(self.shape)
        shape[dim] = k
        return _Pair(values=self._like(tuple(shape)), indices=self._like(tuple(shape), DTYPES["int64"]))

    def sort(self, *args: Any, **options: Any) -> Any:
        return _Pair(values=self._like(), indices=self._like(dtype=DTYPES["int64"]))

    def argsort(self, *args: Any, **options: Any) -> Tensor:
        return self._like(dtype=DTYPES["int64"])

    def unbind(self, dim: int = 0) -> tuple[Any, ...]:
        before = [slice(None)] * (dim % max(1, self.ndim))
        return tuple(self[(*before, i)] for i in range(self.shape[dim] if self.shape else 0))

    def __getitem__(self, key: Any) -> Any:
        shape: list[int] = []
        strides: list[int] = []
        offset, axis = self.offset, 0
        parts = list(key) if isinstance(key, tuple) else [key]
        if any(part is Ellipsis for part in parts):
            at = next(i for i, part in enumerate(parts) if part is Ellipsis)
            named = sum(part is not None and part is not Ellipsis for part in parts)
            parts[at : at + 1] = [slice(None)] * max(0, self.ndim - named)
        for part in parts:
            if part is None:
                shape.append(1)
                more = axis < self.ndim
                strides.append(self.strides[axis] * self.shape[axis] if more else 1)
            elif axis >= self.ndim:
                return Anything()
            elif isinstance(part, slice):
                start, stop, step = part.indices(self.shape[axis])
                shape.append(len(range(start, stop, step)))
                strides.append(self.strides[axis] * step)
                offset += start * self.strides[axis]
                axis += 1
            elif isinstance(part, int):
                offset += (part % max(1, self.shape[axis])) * self.strides[axis]
                axis += 1
            else:  # indices out of a tensor or list: a copy of as many rows
                taken = part.shape if isinstance(part, Tensor) else shape_of(part)
                return self._like((*shape, *taken, *self.shape[axis + 1 :]))
        shape += self.shape[axis:]
        strides += self.strides[axis:]
        return Tensor(tuple(shape), self.dtype, tuple(strides), offset)

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __float__(self) -> float:
        return 1.0

    def __format__(self, spec: str) -> str:
        return "tensor"

    def _broadcast(self, *others: Any) -> Tensor:
        shapes = [self.shape, *(o.shape for o in others if isinstance(o, Tensor))]
        rank = max(map(len, shapes))
        padded = [(1,) * (rank - len(s)) + s for s in shapes]
        return self._like(tuple(max(extents) for extents in zip(*padded, strict=True)))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _broadcast
    __pow__ = __rpow__ = __neg__ = __abs__ = __floordiv__ = __mod__ = __lt__ = __gt__ = _broadcast
    __le__ = __ge__ = __and__ = __or__ = __xor__ = __invert__ = __lshift__ = __rshift__ = _broadcast

    def _in_place(self, other: Any) -> Tensor:
        return self

    __iadd__ = __isub__ = __imul__ = __itruediv__ = _in_place

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Tensor) or self.ndim < 1 or other.ndim < 2:
            return Anything()
        return self._like((*self.shape[:-1], other.shape[-1]))


def _elementwise(tensor: Tensor) -> Callable[..., Tensor]:
    """A method that is not known: elementwise, as most are; one that ends in _ works in place."""
    return lambda *args, **options: tensor._like()


def _reduction(dtype: str | None = None, *, pair: bool = False) -> Callable[[Tensor], Callable[..., Any]]:
    """A method that takes `dim` (or `axis`) away; `pair`: the values and where they were."""

    def method(tensor: Tensor) -> Callable[..., Any]:
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
            return _Pair(values=values, indices=where)

        return call

    return method


class _Pair(SimpleNamespace):
    """Values and indices, by name or in order."""

    def __iter__(self) -> Any:
        return iter((self.values, self.indices))

    def __getitem__(self, at: int) -> Any:
        return (self.values, self.indices)[at]


_REDUCTIONS: dict[str, Callable[[Tensor], Callable[..., Any]]] = {
    **{name: _reduction() for name in ("sum", "mean", "amax", "amin", "norm", "prod", "var", "std")},
    **{name: _reduction(pair=True) for name in ("max", "min", "median")},
    **{name: _reduction("bool") for name in ("all", "any")},
    **{name: _reduction("int64") for name in ("argmax", "argmin", "count_nonzero")},
}


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
