"""Who launches a case inside the GPU process: `cuda.tile.launch` on torch tensors, as users do.

The tensors are views of the lab's own, fenced memory, so that everything is checked as for a cubin.
cuda.tile compiles a kernel on its first launch; that is a stage of its own and no part of the launch clock.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from harness.execute.formats import numpy_dtype
from harness.execute.gpu import DriverError, Gpu
from harness.execute.protocol import ArrayValue, JitCall, Launch

_CARRIERS = {1: "|u1", 2: "<i2", 4: "<i4", 8: "<i8"}
"""Element types under which torch takes memory over; the tensor is then viewed as what it is."""


class JitEngine:
    """`torch` and `tile` are the modules torch and cuda.tile."""

    compiles = True

    def __init__(self, gpu: Gpu, torch: Any, tile: Any) -> None:
        self._gpu = gpu
        self._torch = torch
        self._tile = tile
        self._stream = torch.cuda.ExternalStream(int(gpu.stream))
        self._kernels: dict[JitCall, Any] = {}

    def load(self, launch: Launch) -> None:
        call = _call(launch)
        if call not in self._kernels:
            kernel = getattr(_module(call.path), call.function)
            hints = {name: value for name, value in call.hints if value is not None}
            self._kernels[call] = kernel.replace_hints(**hints) if hints else kernel

    def prepare(self, launch: Launch, addresses: Mapping[str, int]) -> Callable[[], None]:
        call = _call(launch)
        constants = dict(call.constants)
        given = {
            a.name: self._tensor(a, addresses[a.name]) if isinstance(a, ArrayValue) else a.value
            for a in launch.arguments
        }
        arguments = tuple(constants[n] if n in constants else given[n] for n in call.parameters)
        kernel = self._kernels[call]

        def queue() -> None:
            try:
                self._tile.launch(self._stream, launch.grid, kernel, arguments)
            except Exception as error:
                raise DriverError("cuda.tile.launch", type(error).__name__, str(error)) from error

        return queue

    def _tensor(self, array: ArrayValue, address: int) -> Any:
        """A tensor that is the memory at `address`; torch has no name for some dtypes in this interface."""
        torch, itemsize = self._torch, numpy_dtype(array.dtype).itemsize
        dtype = getattr(torch, array.dtype)
        if 0 in array.shape:
            return torch.empty_strided(array.shape, array.strides, dtype=dtype, device="cuda")
        memory = _Memory(array, address, itemsize)
        return torch.as_tensor(memory, device="cuda").view(dtype)


class _Memory:
    """Device memory as other libraries take it over: without a copy."""

    def __init__(self, array: ArrayValue, address: int, itemsize: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "strides": tuple(stride * itemsize for stride in array.strides),
            "typestr": _CARRIERS[itemsize],
            "data": (address, False),
        }


def _call(launch: Launch) -> JitCall:
    if launch.jit is None:
        raise ValueError(f"case {launch.case} does not say how cuda.tile is to launch it")
    return launch.jit


@lru_cache(maxsize=64)
def _module(path: str) -> ModuleType:
    """The kernel's file as a module; cuda.tile reads the kernel's text from it."""
    spec = importlib.util.spec_from_file_location(f"jit_kernels_{abs(hash(path))}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def use_compiler(backend: str) -> None:
    """Have cuda.tile find the tileiras of this backend, and keep nothing from run to run."""
    os.environ["PATH"] = os.pathsep.join([os.path.join(backend, "bin"), os.environ.get("PATH", "")])
    # cuda.tile hands CUDA_HOME on to a tileiras it finds on PATH, and tileiras then takes ptxas and
    # libnvvm from there: the host's toolkit would be mixed into this one.
    os.environ["CUDA_HOME"] = backend
    os.environ.pop("CUDA_PATH", None)
    os.environ["CUDA_TILE_CACHE_DIR"] = "off"
    if shutil.which("tileiras") != os.path.join(backend, "bin", "tileiras"):
        raise FileNotFoundError(f"there is no bin/tileiras that can be run in {backend}")
