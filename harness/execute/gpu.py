"""The few driver calls a worker needs, checked: an error becomes a `DriverError` with the driver's own names.

Takes the `cuda.bindings.driver` module as an argument, so that what is built on it can run
where no driver is. Sizes are in bytes; device addresses are plain integers.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

import ml_dtypes
import numpy as np

from harness.execute.arena import ALIGNMENT, Bytes
from harness.execute.protocol import Argument, ArrayValue, ScalarValue

_SLAB_BYTES = 64 << 20
_MODULES_KEPT = 64
_SCALARS: dict[str, Any] = {
    "bool": np.bool_,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
}


class DriverError(Exception):
    """A driver call did not succeed."""

    def __init__(self, call: str, error: str, text: str = "") -> None:
        super().__init__(f"{call} answered {error}" + (f": {text}" if text else ""))
        self.call = call
        self.error = error


class Gpu:
    """One GPU in this process: context, stream, a slab of device memory, loaded modules."""

    def __init__(self, driver: Any, ordinal: int = 0) -> None:
        self.driver = driver
        self.check("cuInit", 0)
        self.device = self.check("cuDeviceGet", ordinal)
        self.context = self.check("cuDevicePrimaryCtxRetain", self.device)
        self.check("cuCtxSetCurrent", self.context)
        self.stream = self.check("cuStreamCreate", int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self._done = self.check("cuEventCreate", int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        self._modules: OrderedDict[str, tuple[Any, dict[str, Any]]] = OrderedDict()
        self._slab = 0
        self._slab_bytes = 0
        self._used = 0
        # The first work on a context is slow; it belongs to start-up.
        self.reserve(_SLAB_BYTES)
        self.fill(self.allocate(4096), 4096, 0)
        self.finish()

    def check(self, name: str, *arguments: Any) -> Any:
        """Call the driver; the one result, a tuple of several, or None."""
        error, *results = getattr(self.driver, name)(*arguments)
        if int(error) != 0:
            raise DriverError(name, *self._describe(error))
        return results[0] if len(results) == 1 else tuple(results) or None

    def _describe(self, error: Any) -> tuple[str, str]:
        name = getattr(error, "name", f"CUDA error {error}")
        try:
            status, text = self.driver.cuGetErrorString(error)
            return name, text.decode("ascii", "replace") if int(status) == 0 and text else ""
        except Exception:
            return name, ""

    def attribute(self, name: str) -> int:
        kind = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.check("cuDeviceGetAttribute", kind, self.device))

    @property
    def name(self) -> str:
        raw: bytes = self.check("cuDeviceGetName", 256, self.device)
        return raw.split(b"\0")[0].decode("ascii", "replace")

    @property
    def arch(self) -> str:
        return f"sm_{self.attribute('COMPUTE_CAPABILITY_MAJOR')}{self.attribute('COMPUTE_CAPABILITY_MINOR')}"

    # --- memory

    def reserve(self, size: int) -> None:
        """Start a new case that needs up to `size` bytes; what was allocated before is gone."""
        self._used = 0
        if size <= self._slab_bytes:
            return
        if self._slab_bytes:
            self._slab_bytes = 0
            self.check("cuMemFree", self._slab)
        size = max(size + size // 4, _SLAB_BYTES)
        self._slab = int(self.check("cuMemAlloc", size))
        self._slab_bytes = size

    def allocate(self, size: int) -> int:
        """An address aligned to 512 bytes, inside what was reserved."""
        address = self._slab + self._used
        self._used += -(-size // ALIGNMENT) * ALIGNMENT
        if self._used > self._slab_bytes:
            raise ValueError(f"{self._used} bytes asked for, {self._slab_bytes} reserved")
        return address

    def fill(self, address: int, size: int, word: int) -> None:
        """Fill with a 32-bit pattern, in stream order."""
        self.check("cuMemsetD32Async", address, word, size // 4, self.stream)

    def upload(self, address: int, memory: Bytes) -> None:
        """Copy to the device, in stream order; `memory` must live until `finish`."""
        self.check("cuMemcpyHtoDAsync", address, memory.ctypes.data, memory.nbytes, self.stream)

    def download(self, address: int, size: int) -> Bytes:
        """Copy to the host and wait for it."""
        memory = np.empty(size, np.uint8)
        self.check("cuMemcpyDtoHAsync", memory.ctypes.data, address, size, self.stream)
        self.finish()
        return memory

    def finish(self) -> None:
        """Wait until the stream is idle; whatever the GPU reported meanwhile is raised here.

        Polls with short sleeps: the parent owns the deadline, and a thread stuck in a
        blocking driver call could not be looked at.
        """
        self.check("cuEventRecord", self._done, self.stream)
        pause = 20e-6
        not_ready = int(self.driver.CUresult.CUDA_ERROR_NOT_READY)
        while True:
            (error,) = self.driver.cuEventQuery(self._done)
            if int(error) == 0:
                return
            if int(error) != not_ready:
                raise DriverError("cuEventQuery", *self._describe(error))
            time.sleep(pause)
            pause = min(pause * 1.5, 1e-3)

    # --- code

    def function(self, key: str, image: bytes, symbol: str) -> Any:
        """A function of a module that is loaded once per `key` and kept while it is in use."""
        if key not in self._modules:
            self._modules[key] = (self.check("cuModuleLoadData", image), {})
            if len(self._modules) > _MODULES_KEPT:
                _, (old, _) = self._modules.popitem(last=False)
                self.check("cuModuleUnload", old)
        self._modules.move_to_end(key)
        module, functions = self._modules[key]
        if symbol not in functions:
            functions[symbol] = self.check("cuModuleGetFunction", module, symbol.encode())
        return functions[symbol]

    def launch(
        self,
        function: Any,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        parameters: Parameters,
    ) -> None:
        """Launch in stream order. `parameters` must live until `finish`."""
        self.check("cuLaunchKernel", function, *grid, *block, 0, self.stream, parameters.address, 0)


class Parameters:
    """Kernel parameters in memory, as cuLaunchKernel wants them: an array of pointers to values."""

    def __init__(self, values: list[np.generic[Any] | Any]) -> None:
        self._cells = [np.array([value]) for value in values]
        self._pointers = np.array([cell.ctypes.data for cell in self._cells] or [0], np.uint64)

    @property
    def address(self) -> int:
        return int(self._pointers.ctypes.data)

    @classmethod
    def of(cls, arguments: tuple[Argument, ...], addresses: dict[str, int]) -> Parameters:
        """cutile_python_v1: an array is its pointer, shape and strides; a scalar is itself."""
        values: list[Any] = []
        for argument in arguments:
            if isinstance(argument, ArrayValue):
                values.append(np.uint64(addresses[argument.name]))
                index = _SCALARS[argument.index_dtype]
                values += [index(size) for size in (*argument.shape, *argument.strides)]
            else:
                values.append(_scalar(argument))
        return cls(values)


def _scalar(argument: ScalarValue) -> Any:
    if argument.dtype == "bfloat16":
        return ml_dtypes.bfloat16(argument.value)
    if argument.dtype not in _SCALARS:
        raise ValueError(f"scalar {argument.name}: no launch argument of dtype {argument.dtype} is known")
    return _SCALARS[argument.dtype](argument.value)
