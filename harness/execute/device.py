"""What GPUs and driver this machine has, and how busy they are.

Facts come from NVML (package nvidia-ml-py): it needs no context, and answers while a kernel hangs.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

from harness.execute.protocol import Gpu

NO_DRIVER = "no NVIDIA driver on this machine"


class NoDevice(Exception):
    """There is nothing here to run on; the text is one sentence."""


@dataclass(frozen=True)
class Usage:
    """What NVML says of a GPU right now: percent of time a kernel ran lately, bytes in use."""

    utilisation: int | None
    memory_bytes: int | None


def _nvml() -> Any:
    try:
        import pynvml
    except ImportError:
        if not _driver_is_here():
            raise NoDevice(NO_DRIVER) from None
        raise NoDevice(
            "the package nvidia-ml-py is not installed: install tile-harness with its extra gpu"
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        missing = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        if getattr(error, "value", None) in missing:
            raise NoDevice(NO_DRIVER) from None
        raise NoDevice(f"the NVIDIA driver on this machine does not answer: {error}") from None
    return pynvml


def _driver_is_here() -> bool:
    """Whether the driver's own library can be loaded, which needs no package of ours."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def find() -> tuple[Gpu, ...]:
    """The GPUs of this machine that CUDA_VISIBLE_DEVICES leaves visible.

    Raises `NoDevice` where there is no driver, or no GPU behind it.
    """
    nvml = _nvml()
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        gpus = tuple(_facts(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError as error:
        raise NoDevice(f"the NVIDIA driver on this machine does not answer: {error}") from None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        words = [word.strip() for word in visible.split(",")]
        gpus = tuple(g for g in gpus if any(w == str(g.index) or (w and g.uuid.startswith(w)) for w in words))
    if not gpus:
        hidden = " that CUDA_VISIBLE_DEVICES leaves visible" if visible is not None else ""
        raise NoDevice(f"the NVIDIA driver on this machine sees no GPU{hidden}")
    return gpus


def _facts(nvml: Any, index: int, driver: str) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        index=index,
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        name=_text(nvml.nvmlDeviceGetName(handle)),
        arch=f"sm_{major}{minor}",
        driver=driver,
        sm_count=_sm_count(index),
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def _sm_count(index: int) -> int:
    """NVML does not tell; the driver does, without a context. 0 where it would not say.

    Driver ordinals follow CUDA_DEVICE_ORDER, NVML's follow the bus: equal for GPUs of one kind.
    """
    try:
        from cuda.bindings import driver

        if int(driver.cuInit(0)[0]) != 0:
            return 0
        error, device = driver.cuDeviceGet(index)
        if int(error) != 0:
            return 0
        kind = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        error, count = driver.cuDeviceGetAttribute(kind, device)
        return int(count) if int(error) == 0 else 0
    except Exception:
        return 0


def usage(uuid: str) -> Usage:
    """How busy and how full a GPU is; None for what NVML will not say. Never raises."""
    try:
        nvml = _nvml()
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        except TypeError:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid.encode())
    except Exception:
        return Usage(None, None)
    try:
        busy: int | None = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except Exception:
        busy = None
    try:
        memory: int | None = int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
    except Exception:
        memory = None
    return Usage(busy, memory)
