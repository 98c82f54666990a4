"""Tensors that only know shape, strides and dtype: what a launch tells a compiler, and no memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from .anything import Anything
from .dtypes import DTYPES, Device, DType, contiguous, flat, shape_of
from .methods import REDUCTIONS, Pair, elementwise


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
        method: Callable[[Tensor], Any] = REDUCTIONS.get(name, elementwise)
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
        return Pair(values=self._like(tuple(shape)), indices=self._like(tuple(shape), DTYPES["int64"]))

    def sort(self, *args: Any, **options: Any) -> Any:
        return Pair(values=self._like(), indices=self._like(dtype=DTYPES["int64"]))

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
