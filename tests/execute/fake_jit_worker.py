"""The real worker of engine "jit", whole, on a driver, a torch and a cuda.tile that live in host memory.

`python fake_jit_worker.py FRONTEND BACKEND REQUEST RESPONSE STACK`. The occupancy hint names the fault:
1 does not compile, 2 never ends, 3 compiles for ever; anything else is right.
"""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
from fake_driver import FakeDriver, sing

from harness.execute import canary, jit_worker


class Tensor:
    """Device memory, taken over as torch does: no copy, any strides."""

    def __init__(self, interface: dict[str, Any], dtype: Any) -> None:
        self.interface = interface
        self.dtype = dtype

    def view(self, dtype: Any) -> Tensor:
        return Tensor(self.interface, dtype)

    def numpy(self) -> Any:
        import ctypes

        shape, strides = self.interface["shape"], self.interface["strides"]
        address, _ = self.interface["data"]
        span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + np.dtype(self.dtype).itemsize
        flat = np.frombuffer((ctypes.c_uint8 * span).from_address(address), self.dtype, 1)
        return np.lib.stride_tricks.as_strided(flat, shape, strides)


class Kernel:
    def __init__(self, function: Any, hints: dict[str, Any] | None = None) -> None:
        self.function = function
        self.hints = hints or {}
        self.compiled = False

    def replace_hints(self, **hints: Any) -> Kernel:
        return Kernel(self.function, {**self.hints, **hints})


def launch(stream: int, grid: tuple[int, int, int], kernel: Kernel, arguments: tuple[Any, ...]) -> None:
    """Compiles, then does what tiled RMSNorm does: the arguments must come in its order."""
    fault = kernel.hints.get("occupancy")
    if fault == 1:
        raise ValueError("failed to compile Tile IR program")
    if fault == 3:
        time.sleep(600)
    if fault == 2 and kernel.compiled:
        time.sleep(600)
    kernel.compiled = True
    x, w, y, rstd, tile_m, tile_n, eps, offset, allow_tma, latency = arguments
    assert (type(tile_m), type(tile_n), type(eps), type(offset)) == (int, int, float, float)
    assert (allow_tma, latency) == (False, 3)
    wide = x.numpy().astype(np.float32)
    r = np.float32(1) / np.sqrt((wide * wide).mean(1, dtype=np.float32) + np.float32(eps))
    y.numpy()[...] = (wide * r[:, None] * (np.float32(offset) + w.numpy().astype(np.float32))).astype(y.dtype)
    rstd.numpy()[...] = r


def modules() -> dict[str, ModuleType]:
    made: dict[str, Any] = {
        name: ModuleType(name) for name in ("torch", "torch.cuda", "cuda", "cuda.tile", "cuda.bindings")
    }
    torch, tile, bindings = made["torch"], made["cuda.tile"], made["cuda.bindings"]
    torch.cuda = made["torch.cuda"]
    torch.cuda.ExternalStream = lambda handle: handle
    torch.bfloat16, torch.float32 = ml_dtypes.bfloat16, np.float32
    torch.as_tensor = lambda memory, device: Tensor(memory.__cuda_array_interface__, None)
    torch.empty_strided = lambda shape, strides, dtype, device: np.empty(shape, dtype)
    tile.kernel, tile.launch = Kernel, launch
    tile.Constant = {int: int, float: float, bool: bool}
    made["cuda"].tile = tile
    bindings.driver = made["cuda.bindings.driver"] = FakeDriver({canary.SYMBOL: sing})
    return made


if __name__ == "__main__":
    FakeDriver.cuStreamCreate = lambda self, flags: (0, 7)  # type: ignore[assignment,method-assign]
    sys.modules.update(modules())
    sys.exit(jit_worker.main(sys.argv[1:]))
