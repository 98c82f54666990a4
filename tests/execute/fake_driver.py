"""A stand-in for `cuda.bindings.driver` in host memory, with the real names, arguments and answers.

"Cubins" are texts; the symbol names what the launch does. It plays no success of a compiler: the
arithmetic is float32 numpy, and what is tested with it is our own worker.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from harness.execute import canary


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class CUstream_flags(IntEnum):
    CU_STREAM_NON_BLOCKING = 1


class CUevent_flags(IntEnum):
    CU_EVENT_DEFAULT = 0
    CU_EVENT_DISABLE_TIMING = 2


class CUdevice_attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


Kernel = Callable[["FakeDriver", tuple[int, int, int], int], CUresult | None]


def memory_at(address: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.dtype(dtype))


class Params:
    """Reads kernel parameters through the array of pointers that cuLaunchKernel was given."""

    def __init__(self, address: int) -> None:
        self._pointer = address

    def next(self, dtype: Any) -> Any:
        cell = int(memory_at(self._pointer, 1, np.uint64)[0])
        self._pointer += 8
        return memory_at(cell, 1, dtype)[0]

    def array(self, dtype: Any, rank: int) -> np.ndarray[Any, Any]:
        """A writable view of an array argument."""
        address = int(self.next(np.uint64))
        shape = [int(self.next(np.int32)) for _ in range(rank)]
        strides = [int(self.next(np.int32)) for _ in range(rank)]
        span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if all(shape) else 0
        flat = memory_at(address, span, dtype)
        size = flat.dtype.itemsize
        if not span:
            return np.empty(shape, dtype)
        return np.lib.stride_tricks.as_strided(flat, shape, [s * size for s in strides])


class FakeDriver:
    CUresult = CUresult
    CUstream_flags = CUstream_flags
    CUevent_flags = CUevent_flags
    CUdevice_attribute = CUdevice_attribute

    def __init__(self, kernels: dict[str, Kernel], memory_limit: int = 1 << 30) -> None:
        self.kernels = kernels
        self.memory_limit = memory_limit
        self.blocks: dict[int, Any] = {}
        self.launches = 0
        self.pending = 0
        self.stuck: CUresult | None = None
        self.loaded: list[bytes] = []
        self.clock = 0.0
        self.before: Any = None

    def cuInit(self, flags: int) -> tuple[CUresult]:
        return (CUresult.CUDA_SUCCESS,)

    def cuDeviceGet(self, ordinal: int) -> tuple[CUresult, int]:
        return CUresult.CUDA_SUCCESS, ordinal

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[CUresult, str]:
        return CUresult.CUDA_SUCCESS, "context"

    def cuCtxSetCurrent(self, context: str) -> tuple[CUresult]:
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamCreate(self, flags: int) -> tuple[CUresult, str]:
        return CUresult.CUDA_SUCCESS, "stream"

    def cuEventCreate(self, flags: int) -> tuple[CUresult, list[float]]:
        return CUresult.CUDA_SUCCESS, [0.0]

    def cuEventRecord(self, event: list[float], stream: str) -> tuple[CUresult]:
        event[0] = self.clock
        self.pending = 2
        return (CUresult.CUDA_SUCCESS,)

    def cuEventQuery(self, event: list[float]) -> tuple[CUresult]:
        if self.pending:
            self.pending -= 1
            return (CUresult.CUDA_ERROR_NOT_READY,)
        return (self.stuck or CUresult.CUDA_SUCCESS,)

    def cuEventElapsedTime(self, start: list[float], end: list[float]) -> tuple[CUresult, float]:
        return CUresult.CUDA_SUCCESS, end[0] - start[0]

    def cuEventDestroy(self, event: list[float]) -> tuple[CUresult]:
        return (CUresult.CUDA_SUCCESS,)

    def cuGetErrorString(self, error: CUresult) -> tuple[CUresult, bytes]:
        return CUresult.CUDA_SUCCESS, b"as the driver would put it"

    def cuDeviceGetName(self, length: int, device: int) -> tuple[CUresult, bytes]:
        return CUresult.CUDA_SUCCESS, b"NVIDIA Fake".ljust(length, b"\0")

    def cuDeviceGetAttribute(self, kind: CUdevice_attribute, device: int) -> tuple[CUresult, int]:
        return CUresult.CUDA_SUCCESS, {38: 1 << 20, 75: 9, 76: 0}[int(kind)]

    def cuMemAlloc(self, size: int) -> tuple[CUresult, int]:
        if size > self.memory_limit:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0
        block = np.zeros(size + 512, np.uint8)
        address = -(-block.ctypes.data // 512) * 512
        self.blocks[address] = block
        return CUresult.CUDA_SUCCESS, address

    def cuMemFree(self, address: int) -> tuple[CUresult]:
        del self.blocks[address]
        return (CUresult.CUDA_SUCCESS,)

    def cuMemsetD32Async(self, address: int, word: int, count: int, stream: str) -> tuple[CUresult]:
        memory_at(address, count, np.uint32)[:] = word
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: str) -> tuple[CUresult]:
        ctypes.memmove(target, source, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: str) -> tuple[CUresult]:
        ctypes.memmove(target, source, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: str) -> tuple[CUresult]:
        self.clock += size / 1e9
        return (CUresult.CUDA_SUCCESS,)

    def cuModuleLoadData(self, image: bytes) -> tuple[CUresult, Any]:
        if image.startswith(b"garbage"):
            return CUresult.CUDA_ERROR_INVALID_IMAGE, None
        self.loaded.append(image)
        return CUresult.CUDA_SUCCESS, image

    def cuModuleUnload(self, module: Any) -> tuple[CUresult]:
        self.loaded.remove(module)
        return (CUresult.CUDA_SUCCESS,)

    def cuModuleGetFunction(self, module: Any, name: bytes) -> tuple[CUresult, Any]:
        kernel = self.kernels.get(name.decode())
        return (CUresult.CUDA_SUCCESS, kernel) if kernel else (CUresult.CUDA_ERROR_NOT_FOUND, None)

    def cuLaunchKernel(
        self,
        f: Kernel,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: str,
        params: int,
        extra: int,
    ) -> tuple[CUresult]:
        if gx <= 0:
            return (CUresult.CUDA_ERROR_INVALID_VALUE,)
        self.launches += 1
        self.clock += 0.01 + 0.001 * (self.launches % 3)
        self.stuck = f(self, (gx, gy, gz), params) or self.stuck
        return (CUresult.CUDA_SUCCESS,)


def sing(driver: FakeDriver, grid: tuple[int, int, int], address: int) -> None:
    """What the canary does where the GPU still works."""
    out = memory_at(int(Params(address).next(np.uint64)), canary.COUNT, np.uint32)
    out[:] = 3 * np.arange(canary.COUNT) + 1
