"""As much of cuda.tile as a script needs on its way to a launch."""

from types import SimpleNamespace
from typing import Generic, TypeVar

T = TypeVar("T")


class DType: ...


float32 = DType()


class Constant(Generic[T]): ...


class kernel:
    def __new__(cls, function=None, **hints):
        return super().__new__(cls) if function is not None else lambda given: cls(given, **hints)

    def __init__(self, function, **hints):
        self._annotated_function = SimpleNamespace(pyfunc=function)
        usual = {"occupancy": None, "num_ctas": None, "opt_level": 3}
        self._compiler_options = SimpleNamespace(**{**usual, **hints})

    def replace_hints(self, **hints):
        return kernel(self._annotated_function.pyfunc, **{**vars(self._compiler_options), **hints})


def function(given):
    return given


def cdiv(a, b):
    return -(-a // b)


def launch(stream, grid, kernel, args):
    raise RuntimeError("there is no GPU")
