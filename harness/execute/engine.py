"""Who launches a case inside the GPU process: the lab, from the cubin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from harness.execute.gpu import Gpu, Parameters
from harness.execute.protocol import Launch


class Engine(Protocol):
    """Makes launches out of addresses. `compiles` says that a kernel's first launch compiles it."""

    compiles: bool

    def load(self, launch: Launch) -> None:
        """Have the kernel ready, as far as that goes before its arguments are known."""

    def prepare(self, launch: Launch, addresses: Mapping[str, int]) -> Callable[[], None]:
        """One launch, to be queued by calling it. An address is that of an array's first element."""


class CubinEngine:
    """Loads the cubin and calls cuLaunchKernel."""

    compiles = False

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def load(self, launch: Launch) -> None:
        self._gpu.function(launch.cubin_sha256, Path(launch.cubin).read_bytes(), launch.symbol)

    def prepare(self, launch: Launch, addresses: Mapping[str, int]) -> Callable[[], None]:
        function = self._gpu.function(launch.cubin_sha256, b"", launch.symbol)
        parameters = Parameters.of(launch.arguments, dict(addresses))
        return lambda: self._gpu.launch(function, launch.grid, launch.block, parameters)
