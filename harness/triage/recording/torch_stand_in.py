"""A stand-in for torch where there is none.

What it does not know of answers like the first tensor's method of that name, or with `Anything`.
"""

from __future__ import annotations

import contextlib
import inspect
from types import SimpleNamespace
from typing import Any

from .anything import Anything, Base, Module, tried
from .dtypes import DTYPES, Device, DType, flat
from .factories import Factories, OnTensors
from .tensors import Tensor

SUBMODULES = (
    *(
        "cuda",
        "nn",
        "nn.functional",
        "testing",
        "utils",
        "utils.benchmark",
        "backends",
        "autograd",
        "library",
    ),
    *(
        "profiler",
        "optim",
        "compiler",
        "amp",
        "special",
        "linalg",
        "fft",
        "random",
        "distributed",
        "jit",
        "ops",
    ),
)

_factories = Factories("float32")


class NeuralModule(Base):
    """torch.nn.Module: moving it about gives the module itself, and calling it its `forward`."""

    training = True

    def _self(self, *args: Any, **options: Any) -> Any:
        return self

    to = cuda = cpu = half = float = double = bfloat16 = eval = train = requires_grad_ = type = apply = _self

    def register_buffer(self, name: str, tensor: Any, *args: Any, **options: Any) -> None:
        setattr(self, name, tensor)

    register_parameter = add_module = register_buffer

    def parameters(self, *args: Any) -> Any:
        return iter([value for value in vars(self).values() if isinstance(value, Tensor)])


class Weighted(NeuralModule):
    """A layer with a weight of (out, in), such as torch.nn.Linear."""

    def __init__(
        self, inside: int, outside: int | None = None, *args: Any, dtype: Any = None, **options: Any
    ) -> None:
        sizes = flat((inside,)) if outside is None else (outside, inside)
        self.weight = Tensor(sizes, _factories.dtype(dtype))
        self.bias = Tensor(sizes[:1], self.weight.dtype)

    def forward(self, x: Any) -> Any:
        if isinstance(x, Tensor) and len(self.weight.shape) == 2 and x.ndim:
            return x._like((*x.shape[:-1], self.weight.shape[0]))
        return x


class Sequential(NeuralModule):
    """Layers that are called one after another."""

    def __init__(self, *layers: Any) -> None:
        self.layers = layers

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Function(Base):
    """torch.autograd.Function: `apply` calls `forward`, and `backward` when something is differentiated."""

    @classmethod
    def apply(cls, *args: Any, **options: Any) -> Any:
        context = Context()
        forward: Any = inspect.getattr_static(cls, "forward")
        forward = getattr(forward, "__func__", forward)
        if "setup_context" in cls.__dict__:
            result = forward(*args, **options)
            cls.setup_context(context, args, result)  # type: ignore[attr-defined]
        else:
            result = forward(context, *args, **options)
        if "backward" in cls.__dict__:
            outputs = result if isinstance(result, tuple) else (result,)
            gradients = [o._like() if isinstance(o, Tensor) else o for o in outputs]
            Tensor.tape.append(lambda: cls.backward(context, *gradients))  # type: ignore[attr-defined]
        return result


class Context(SimpleNamespace):
    """What a forward pass leaves for the backward pass."""

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad = (True,) * 32

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    mark_non_differentiable = mark_dirty = set_materialize_grads = lambda self, *args: None


class Operator:
    """A function that torch.library made an operator of: called as ever; its other uses are ignored."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function(*args, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **options: args[0] if args else Anything()


class Timer:
    """torch.utils.benchmark.Timer: runs the statement once."""

    def __init__(self, stmt: Any = "pass", setup: str = "", globals: Any = None, **options: Any) -> None:
        self._statement, self._setup, self._globals = stmt, setup, {**(globals or {})}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._run

    def _run(self, *args: Any, **options: Any) -> Any:
        if callable(self._statement):
            return tried(self._statement)
        with contextlib.suppress(Exception):
            exec(f"{self._setup}\n{self._statement}", self._globals)
        return Anything()


class TorchModule(Module):
    """`torch` and its submodules."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in DTYPES:
            return DTYPES[name]
        return _FUNCTIONS.get(name) or (Anything() if name[:1].isupper() else OnTensors(name))


def parameter(tensor: Any = None, *args: Any, **options: Any) -> Any:
    return tensor


def custom_op(*args: Any, **options: Any) -> Any:
    """As a decorator with arguments, or given the function."""
    given = [a for a in (*args, *options.values()) if callable(a)]
    return Operator(given[-1]) if given else Operator


def linear(x: Any, weight: Any, *args: Any) -> Any:
    known = isinstance(x, Tensor) and isinstance(weight, Tensor) and x.ndim
    return x._like((*x.shape[:-1], weight.shape[0])) if known else Anything()


def strided(size: Any, stride: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    return Tensor(flat((size,)), _factories.dtype(dtype), flat((stride,)))


def randperm(count: int, *args: Any, dtype: Any = None, **options: Any) -> Tensor:
    return Tensor((count,), _factories.dtype(dtype, "int64") if dtype else DTYPES["int64"])


def set_default_dtype(dtype: DType) -> None:
    _factories.default = dtype.name


_FUNCTIONS: dict[str, Any] = {
    **_factories.functions(),
    "empty_strided": strided,
    "randperm": randperm,
    "linear": linear,
    "set_default_dtype": set_default_dtype,
    "Tensor": Tensor,
    "dtype": DType,
    "device": Device,
    "Size": tuple,
    "inf": float("inf"),
    "pi": 3.141592653589793,
    "Module": NeuralModule,
    "Sequential": Sequential,
    "Parameter": parameter,
    "Function": Function,
    "custom_op": custom_op,
    "Timer": Timer,
    **dict.fromkeys(("Linear", "Embedding", "LayerNorm", "RMSNorm"), Weighted),
}


def device_answers(capability: tuple[int, int]) -> dict[str, Any]:
    """What torch.cuda says of a GPU with that compute capability, by the name of the function."""
    properties = SimpleNamespace(
        name="a GPU that launches are recorded for",
        multi_processor_count=132,
        major=capability[0],
        minor=capability[1],
        total_memory=140 << 30,
        shared_memory_per_block_optin=227 << 10,
        L2_cache_size=50 << 20,
        warp_size=32,
    )
    return {
        "is_available": True,
        "is_initialized": True,
        "current_device": 0,
        "device_count": 1,
        "get_device_name": properties.name,
        "get_device_capability": capability,
        "get_device_properties": properties,
        "current_stream": SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
        "default_stream": SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
        "synchronize": None,
        "empty_cache": None,
        "manual_seed": None,
        "manual_seed_all": None,
    }


def make(capability: tuple[int, int]) -> Module:
    """The module `torch`, with its usual submodules."""
    root = TorchModule("torch")
    for name in SUBMODULES:
        parent, _, last = name.rpartition(".")
        setattr(getattr(root, parent) if parent else root, last, TorchModule(f"torch.{name}"))
    for name, answer in device_answers(capability).items():
        setattr(root.cuda, name, lambda *args, answer=answer, **options: answer)
    return root


def submodule(name: str, modules: dict[str, Any]) -> Module:
    """The part of a made `torch` that is imported by this name."""
    parent, _, last = name.rpartition(".")
    found = vars(modules[parent]).get(last)
    return found if isinstance(found, Module) else TorchModule(name)
