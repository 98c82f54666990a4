"""What is here."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from harness.execute import device


def nvml(**changes: object) -> ModuleType:
    class NVMLError(Exception):
        value = 0

    fake = ModuleType("pynvml")
    answers: dict[str, object] = {
        "NVMLError": NVMLError,
        "NVML_ERROR_LIBRARY_NOT_FOUND": 12,
        "NVML_ERROR_DRIVER_NOT_LOADED": 9,
        "nvmlInit": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.159.04",
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetHandleByUUID": lambda uuid: int(uuid[-1]),
        "nvmlDeviceGetCudaComputeCapability": lambda handle: (9, 0),
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
        "nvmlDeviceGetName": lambda handle: b"NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=1000, used=10),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=100),
    }
    for name, value in (answers | changes).items():
        setattr(fake, name, value)
    return fake


@pytest.fixture(autouse=True)
def all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_gpus_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    first, second = device.find()
    assert (first.uuid, first.name, first.arch, first.driver) == (
        "GPU-0",
        "NVIDIA H200",
        "sm_90",
        "580.159.04",
    )
    assert second.index == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert device.find() == (second,)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(device.NoDevice, match="sees no GPU that CUDA_VISIBLE_DEVICES leaves visible"):
        device.find()


def test_nothing_here_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = nvml()

    def missing() -> None:
        error = fake.NVMLError("NVML Shared Library Not Found")
        error.value = 12
        raise error

    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setattr(fake, "nvmlInit", missing)
    with pytest.raises(device.NoDevice, match=r"^no NVIDIA driver on this machine$"):
        device.find()
    assert device.usage("GPU-0") == device.Usage(None, None)
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlDeviceGetCount=lambda: 0))
    with pytest.raises(device.NoDevice, match=r"sees no GPU$"):
        device.find()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(device, "_driver_is_here", lambda: False)
    with pytest.raises(device.NoDevice, match=r"^no NVIDIA driver on this machine$"):
        device.find()
    monkeypatch.setattr(device, "_driver_is_here", lambda: True)
    with pytest.raises(device.NoDevice, match="nvidia-ml-py is not installed"):
        device.find()


def test_usage_is_read_while_a_kernel_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    assert device.usage("GPU-0") == device.Usage(100, 10)
