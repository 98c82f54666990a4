"""A stand-in for torch where there is none: tensors that only know shape, strides and dtype.

Imports the standard library only, and is one file: it is loaded by path into the process that runs a reader's
script, in an environment that has nothing of this package.
What the stand-in does not know answers with `Anything`, so that a script gets as far as its launch.
"""

from __future__ import annotations

import math
import types
from typing import Any

ITEMSIZE = {
    "bool": 1,
    "uint8": 1,
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


class Anything:
    """Whatever a script wants of it: called, indexed, entered, asked for attributes."""

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args: Any, **options: Any) -> Any:
        decorated = len(args) == 1 and not options and isinstance(args[0], types.FunctionType | type)
        return args[0] if decorated else Anything()

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __getitem__(self, key: Any) -> Anything:
        return Anything()

    def __iter__(self) -> Any:
        return iter(())

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __float__(self) -> float:
        return 1.0

    def __format__(self, spec: str) -> str:
        return "?"

    def _same(self, *other: Any) -> Anything:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __matmul__ = __rmatmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _same


class DType:
    """torch.float16 and the like."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.itemsize = ITEMSIZE[name]
        self.is_floating_point = "float" in name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


DTYPES = {name: DType(name) for name in ITEMSIZE}
DTYPES |= {alias: DTYPES[name] for alias, name in _ALIASES.items()}


class Device:
    """A device that is only a name."""

    type = "cuda"
    index = 0

    def __init__(self, *args: Any) -> None: ...


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

    t = mT = property(lambda self: lambda: self.T)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name in DTYPES:
            return lambda: self._like(dtype=DTYPES[name])
        return _Method(self, name)

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

    def is_contiguous(self) -> bool:
        return self.strides == contiguous(self.shape)

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else self._like()

    def clone(self, *args: Any, **options: Any) -> Tensor:
        return self._like()

    def to(self, *args: Any, **options: Any) -> Tensor:
        wanted = [a for a in (*args, *options.values()) if isinstance(a, DType)]
        return Tensor(self.shape, wanted[0] if wanted else self.dtype, self.strides, self.offset)

    def type(self, dtype: DType) -> Tensor:
        return self.to(dtype)

    def view(self, *shape: Any) -> Tensor:
        if len(shape) == 1 and isinstance(shape[0], DType):
            return self.to(shape[0])
        wanted = _flat(shape)
        known = math.prod(n for n in wanted if n != -1)
        return self._like(tuple(self.numel() // max(1, known) if n == -1 else n for n in wanted))

    reshape = view

    def expand(self, *shape: Any) -> Tensor:
        wanted = _flat(shape)
        lead = len(wanted) - len(self.shape)
        old, steps = (1,) * lead + self.shape, (0,) * lead + self.strides
        sizes = tuple(a if b == -1 else b for a, b in zip(old, wanted, strict=True))
        strides = tuple(0 if a == 1 and b != 1 else s for a, b, s in zip(old, sizes, steps, strict=True))
        return Tensor(sizes, self.dtype, strides, self.offset)

    def transpose(self, one: int, other: int) -> Tensor:
        order = list(range(self.ndim))
        order[one], order[other] = order[other], order[one]
        return self.permute(*order)

    def permute(self, *order: Any) -> Tensor:
        axes = _flat(order)
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

    def __getitem__(self, key: Any) -> Any:
        shape: list[int] = []
        strides: list[int] = []
        offset, axis = self.offset, 0
        for part in key if isinstance(key, tuple) else (key,):
            if part is None:
                shape.append(1)
                strides.append(1)
            elif part is Ellipsis or axis >= self.ndim:
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
            else:
                return Anything()
        shape += self.shape[axis:]
        strides += self.strides[axis:]
        return Tensor(tuple(shape), self.dtype, tuple(strides), offset)

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

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
    __pow__ = __neg__ = __floordiv__ = __mod__ = __iadd__ = __imul__ = __lt__ = __gt__ = _broadcast
    __le__ = __ge__ = __and__ = __or__ = _broadcast

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Tensor) or self.ndim < 1 or other.ndim < 2:
            return Anything()
        return self._like((*self.shape[:-1], other.shape[-1]))


class _Method:
    """A method of a tensor that is not known: elementwise, as most are."""

    def __init__(self, tensor: Tensor, name: str) -> None:
        self._tensor = tensor
        self._name = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._name in ("item", "tolist", "numpy", "max", "min", "sum", "mean", "all", "any"):
            return Anything()
        return self._tensor._like()


def _flat(shape: tuple[Any, ...]) -> tuple[int, ...]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return tuple(int(n) for n in given)


def _dtype_of(values: Any) -> DType:
    while isinstance(values, list | tuple) and values:
        values = values[0]
    named = "bool" if isinstance(values, bool) else "int64" if isinstance(values, int) else "float32"
    return DTYPES[named]


def _shape_of(values: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(values, list | tuple):
        shape.append(len(values))
        values = values[0] if values else None
    return tuple(shape)


class Module(types.ModuleType):
    """`torch` and its submodules; `default` is what a factory makes where no dtype is given."""

    __path__: list[str] = []  # noqa: RUF012 - a package, as far as imports can tell
    __file__ = "torch"
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name in DTYPES:
            return DTYPES[name]
        return _FUNCTIONS.get(name) or Anything()


def _made(default: str) -> Any:
    def make(*shape: Any, dtype: DType | None = None, size: Any = None, **options: Any) -> Tensor:
        return Tensor(_flat(shape if size is None else (size,)), dtype or DTYPES[default])

    return make


def _like(tensor: Tensor, *args: Any, dtype: DType | None = None, **options: Any) -> Any:
    return tensor._like(dtype=dtype) if isinstance(tensor, Tensor) else Anything()


def _full(shape: Any, value: Any, *args: Any, dtype: DType | None = None, **options: Any) -> Tensor:
    return Tensor(_flat((shape,)) if not isinstance(shape, int) else (shape,), dtype or _dtype_of(value))


def _randint(*args: Any, size: Any = None, dtype: DType | None = None, **options: Any) -> Tensor:
    shape = size if size is not None else args[-1]
    return Tensor(_flat((shape,)), dtype or DTYPES["int64"])


def _arange(*args: Any, dtype: DType | None = None, **options: Any) -> Tensor:
    whole = all(isinstance(a, int) for a in args)
    count = len(range(*args)) if whole else 1
    return Tensor((count,), dtype or DTYPES["int64" if whole else "float32"])


def _tensor(values: Any, *args: Any, dtype: DType | None = None, **options: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.to(dtype) if dtype else values
    return Tensor(_shape_of(values), dtype or _dtype_of(values))


def _strided(size: Any, stride: Any, dtype: DType | None = None, **options: Any) -> Tensor:
    return Tensor(_flat((size,)), dtype or DTYPES["float32"], _flat((stride,)))


def _randperm(count: int, *args: Any, dtype: DType | None = None, **options: Any) -> Tensor:
    return Tensor((count,), dtype or DTYPES["int64"])


def _matmul(a: Any, b: Any) -> Any:
    return a @ b


_FLOATS = ("empty", "zeros", "ones", "rand", "randn")
_FUNCTIONS: dict[str, Any] = {
    **{name: _made("float32") for name in _FLOATS},
    **{f"{name}_like": _like for name in (*_FLOATS, "randint", "full")},
    "full": _full,
    "randint": _randint,
    "arange": _arange,
    "tensor": _tensor,
    "as_tensor": _tensor,
    "empty_strided": _strided,
    "randperm": _randperm,
    "matmul": _matmul,
    "mm": _matmul,
    "Tensor": Tensor,
    "dtype": DType,
    "device": Device,
}
SUBMODULES = ("cuda", "nn", "nn.functional", "testing", "utils", "utils.benchmark", "backends", "autograd")


def install(modules: dict[str, Any]) -> None:
    """Put the stand-in among the loaded modules."""
    root = Module("torch")
    modules["torch"] = root
    for name in SUBMODULES:
        module = Module(f"torch.{name}")
        modules[f"torch.{name}"] = module
        parent, _, last = f"torch.{name}".rpartition(".")
        setattr(modules[parent], last, module)
