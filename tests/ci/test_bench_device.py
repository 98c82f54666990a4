"""The benchmark's parts on a process that plays the GPU's; its figures mean nothing here."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from made_results import Maker

from harness.bundle import Bundle, write_bundle
from harness.execute import Gpu, PoolOptions
from harness.execute.device import NoDevice
from harness.matrix.value import Timeouts
from harness.model import Device

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "execute" / "fake_worker.py"
GPU = Gpu(0, "GPU-fake", "NVIDIA Fake", "sm_90", "580.1", 132, 1 << 37)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_device", ROOT / "ci" / "bench_device.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_device", module)
    spec.loader.exec_module(module)
    return module


def bundle_at(folder: Path, make: Maker, symbol: str) -> Path:
    import hashlib

    cubin = b"machine code"
    sha256 = hashlib.sha256(cubin).hexdigest()
    cell = make.cell()
    static = make.result(cell, make.inspection(symbol="ok"), make.compiled(cubin_sha256=sha256))
    other = make.cell(occupancy=12)
    deadly = make.result(other, make.deadlocked(symbol=symbol), make.compiled(cubin_sha256=sha256))
    device = Device("h200", "H200", "sm_90")
    results = [static, deadly]
    results += [replace(r, cell=replace(r.cell, device=device)) for r in results]
    write_bundle(folder / "b", Bundle("m", Timeouts(), tuple(results)), [(sha256, cubin)])
    return folder / "b"


@pytest.mark.slow
def test_all_parts_are_measured(
    script: ModuleType,
    make: Maker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake = functools.partial(PoolOptions, worker_argv=(sys.executable, str(FAKE)))
    monkeypatch.setattr(script, "PoolOptions", lambda **given: fake(**{**given, "workers": 2}))
    monkeypatch.setattr(script, "find", lambda: (GPU,))
    monkeypatch.setattr(script, "torch_python", lambda: None)
    monkeypatch.setattr(script, "HANG_SECONDS", 0.3)
    monkeypatch.setattr(script, "HANGS_IN_A_ROW", 1)
    bundle = bundle_at(tmp_path, make, "hang:launch")
    argv = ["bench_device.py", str(bundle), "--out", str(tmp_path / "out"), "--seconds", "0.3"]
    monkeypatch.setattr(sys, "argv", argv)
    assert script.main() == 0
    found = json.loads((tmp_path / "out" / "bench_device.json").read_text())
    assert set(found["warm"]["verdicts"]) == {"pass"}
    assert set(found["process"]["verdicts"]) == {"pass"}
    assert found["torch"] == {"skipped": "no Python here has torch"}
    assert set(found["hang"]["verdicts"]) == {"pass", "hang"}
    assert found["hang"]["times_as_long"] > 0
    assert found["hang20"]["verdicts"] == {"hang": 1}
    assert found["hang20"]["next_case"] == {"pass": 1}
    assert "| warm processes |" in capsys.readouterr().out


def test_a_bundle_without_a_deadlock_gets_one_in_ptx(script: ModuleType, make: Maker, tmp_path: Path) -> None:
    from harness.bundle import read_bundle, unpack_cubins

    bundle = bundle_at(tmp_path, make, "x")
    good, deadlocked = script.launches_of(
        read_bundle(bundle).results, unpack_cubins(bundle, tmp_path / "c"), GPU
    )
    assert [launch.arguments[0].shape for launch in (*good, *deadlocked)] == [(2048, 512)] * 2
    bench = script.Bench(None, GPU, good, [], 1.0, tmp_path)
    bad = bench.hanging()
    assert bad.symbol == "spin"
    assert Path(bad.cubin).read_bytes() == script.SPIN
    assert [a.name for a in bad.arrays] == ["rstd"]


def test_no_gpu_is_one_sentence(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent() -> None:
        raise NoDevice("no NVIDIA driver on this machine")

    monkeypatch.setattr(script, "find", absent)
    monkeypatch.setattr(sys, "argv", ["bench_device.py", "b"])
    assert script.main() == 2
    assert capsys.readouterr().err == "no NVIDIA driver on this machine\n"
