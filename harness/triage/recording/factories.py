"""Functions that make or join tensors, shared by the stand-ins of torch and of NumPy."""

from __future__ import annotations

from typing import Any

from .anything import Anything
from .dtypes import DTYPES, DType, dtype_of, flat, shape_of
from .tensors import Tensor


class Factories:
    """`default` is the dtype of what is made of nothing but a shape; `whole` that of whole numbers."""

    def __init__(self, default: str, whole: str = "int64") -> None:
        self.default = default
        self.whole = whole

    def functions(self) -> dict[str, Any]:
        """By the names that both libraries have."""
        made = dict.fromkeys(("empty", "zeros", "ones", "rand", "randn"), self.of_shape)
        likes = ("empty", "zeros", "ones", "rand", "randn", "randint", "full")
        return {
            **made,
            **{f"{name}_like": like for name in likes},
            **dict.fromkeys(("tensor", "as_tensor", "array", "asarray", "from_numpy"), self.of_values),
            "ascontiguousarray": self.of_values,
            "full": self.full,
            "randint": self.randint,
            "arange": self.arange,
            "linspace": self.linspace,
            "eye": self.eye,
            "cat": join,
            "concat": join,
            "concatenate": join,
            "stack": stack,
            "matmul": matmul,
            "mm": matmul,
            "bmm": matmul,
            "dot": matmul,
        }

    def dtype(self, dtype: Any, otherwise: str | None = None) -> DType:
        """A dtype however it is named: by an object, by a word, or by Python's own type."""
        if isinstance(dtype, DType):
            return dtype
        words: dict[Any, str] = {float: self.default, int: self.whole, bool: "bool"}
        name = words.get(dtype) or str(getattr(dtype, "name", dtype)).rpartition(".")[2]
        return DTYPES.get(name, DTYPES[otherwise or self.default])

    def of_shape(self, *shape: Any, dtype: Any = None, size: Any = None, **options: Any) -> Tensor:
        sizes = shape if size is None else (size,)
        named = dtype or next((n for n in sizes if isinstance(n, DType)), None)  # NumPy takes it second
        return Tensor(flat(tuple(n for n in sizes if not isinstance(n, DType))), self.dtype(named))

    def of_values(self, values: Any, *args: Any, dtype: Any = None, **options: Any) -> Tensor:
        wanted = dtype if dtype is not None else next(iter(args), None)
        if isinstance(values, Tensor):
            return values.to(self.dtype(wanted)) if wanted is not None else values
        if wanted is None and hasattr(values, "dtype"):
            wanted = values.dtype
        return Tensor(shape_of(values), dtype_of(values) if wanted is None else self.dtype(wanted))

    def full(self, shape: Any, value: Any, *args: Any, dtype: Any = None, **options: Any) -> Tensor:
        return Tensor(flat((shape,)), dtype_of(value) if dtype is None else self.dtype(dtype))

    def randint(self, *args: Any, size: Any = None, dtype: Any = None, **options: Any) -> Tensor:
        shape = size if size is not None else args[-1]
        return Tensor(flat((shape,)), self.dtype(dtype, self.whole) if dtype else DTYPES[self.whole])

    def arange(self, *args: Any, dtype: Any = None, **options: Any) -> Tensor:
        numbers = [a for a in args if isinstance(a, int)]
        count = len(range(*numbers)) if len(numbers) == len(args) else 1
        return Tensor((count,), self.dtype(dtype) if dtype else DTYPES[self.whole])

    def linspace(
        self, start: Any, end: Any, steps: int = 50, *args: Any, dtype: Any = None, **o: Any
    ) -> Tensor:
        return Tensor((steps,), self.dtype(dtype))

    def eye(self, rows: int, columns: int | None = None, *, dtype: Any = None, **options: Any) -> Tensor:
        return Tensor((rows, rows if columns is None else columns), self.dtype(dtype))


def like(tensor: Any, *args: Any, dtype: DType | None = None, **options: Any) -> Any:
    """A contiguous tensor of the same shape."""
    return tensor._like(dtype=dtype) if isinstance(tensor, Tensor) else Anything()


def matmul(a: Any, b: Any, *args: Any, **options: Any) -> Any:
    return a @ b


def join(tensors: Any, dim: int = 0, axis: int | None = None, **options: Any) -> Any:
    """Joined along an axis that they have."""
    parts = list(tensors)
    if not parts or not all(isinstance(part, Tensor) for part in parts):
        return Anything()
    at = (dim if axis is None else axis) % max(1, parts[0].ndim)
    shape = list(parts[0].shape)
    shape[at] = sum(part.shape[at] for part in parts)
    return parts[0]._like(tuple(shape))


def stack(tensors: Any, dim: int = 0, axis: int | None = None, **options: Any) -> Any:
    """Joined along a new axis."""
    parts = list(tensors)
    if not parts or not all(isinstance(part, Tensor) for part in parts):
        return Anything()
    at = (dim if axis is None else axis) % (parts[0].ndim + 1)
    return parts[0]._like((*parts[0].shape[:at], len(parts), *parts[0].shape[at:]))


class OnTensors(Anything):
    """A function, or a part of a module, that is not known: with a tensor it is the tensor's method."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            method = getattr(args[0], self._name)
            return method(*args[1:], **options) if callable(method) else method
        return Anything()(*args, **options)
