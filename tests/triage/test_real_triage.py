"""Triage of small kernels after public reports, on the real compilers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from harness.commands.triage import Options, triage_file
from harness.lab import Lab
from harness.matrix import load_matrix
from harness.plan import plan
from harness.triage.look import look

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(600)]

RESOURCES = Path(__file__).parent.parent / "resources"
MINUTES = 180.0


def triage(
    path: Path, parameters: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], **options: Any
) -> dict[str, Any]:
    begun = time.monotonic()
    code = triage_file(path, Options(tmp_path, parameters, as_json=True, **options))
    assert time.monotonic() - begun < MINUTES
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == int(any(k["fails"] or (k["rejected"] and not k["passes"]) for k in answer["kernels"]))
    return {kernel["kernel"]: kernel for kernel in answer["kernels"]}


def axes(kernel: dict[str, Any]) -> list[str]:
    return [decision["axis"] for decision in kernel["decided_by"]]


def test_the_frontend_alone_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = triage(RESOURCES / "field/countdown.py", "result = array(int32, 1)", tmp_path, capsys)
    assert axes(found["countdown"]) == ["frontend"]
    assert found["countdown"]["decided_by"][0]["fails"] == ["1.3.0", "1.4.0", "1.5.0"]


def test_level_and_architecture_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = (
        "left = array(float16, 2); right = array(float16, 2); out = array(float16, 2); "
        "index = array(int32, 1); M = const(128); N = const(128); K = const(64)"
    )
    found = triage(RESOURCES / "field/indirect_mma.py", parameters, tmp_path, capsys)["indirect"]
    assert {"toolchain", "architecture", "opt level"} <= set(axes(found))
    level = next(d for d in found["decided_by"] if d["axis"] == "opt level")
    assert level["passes"] == ["0"]
    assert "signature" in axes(found)
    cells = list(plan(load_matrix(tmp_path / "triage/indirect_mma/matrix.toml")))
    assert any(cell.arch == "sm_120" for cell in cells)


def test_the_element_type_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = "x = array(float8_e4m3fn, 2); y = array(float8_e4m3fn, 2); M = const(64); N = const(128)"
    found = triage(RESOURCES / "field/padded_softmax.py", parameters, tmp_path, capsys)
    assert axes(found["minus_infinity"]) == ["dtype"]
    assert not found["nothing"]["fails"]


def test_the_toolchain_decides_how_it_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = (
        "data = array(float32, 3); source = array(float32, 3); target = array(float32, 3); N = const(32)"
    )
    found = triage(RESOURCES / "field/row_sums.py", parameters, tmp_path, capsys)
    assert found["in_place"]["decides_how"] == ["toolchain"]
    assert dict(found["in_place"]["releases"])["13.3.1"] == "SIGSEGV"
    assert dict(found["in_place"]["releases"])["13.5.0"] == "exit 5"
    assert not found["apart"]["fails"]


def test_a_script_is_looked_into_without_torch_and_without_a_gpu() -> None:
    with Lab() as lab:
        seen = look(
            RESOURCES / "triage/launches_on_torch.py", lab.provisioner.frontend("1.7.0"), lab.supervisor
        )
    assert seen.error is None
    (kernel,) = seen.kernels
    first, second = kernel.launches
    assert first.grid == (128, 1, 1)
    assert first.arguments[0] == {
        "kind": "array",
        "dtype": "float16",
        "shape": [128, 64],
        "strides": [64, 1],
        "offset": 0,
    }
    assert first.arguments[1]["dtype"] == "float32"
    assert second.arguments[0]["offset"] == 1
    assert seen.modules["__main__"].values["WIDTH"] == "64"


LIBRARY = """
import torch
import cuda.tile as ct

WIDTH = int(torch.ones(8).numel())

@ct.function
def widened(tile):
    return tile * WIDTH
"""

SCRIPT = """
import numpy as np, torch, somewhere.utilities as other
import cuda.tile as ct
import ops

class Ops:
    @staticmethod
    @ct.kernel
    def twice(x, T: ct.Constant[int]):
        ct.store(x, index=(ct.bid(0),), tile=ct.load(x, index=(ct.bid(0),), shape=(T,)) * 2)

def make(tile, dtype, then):
    @ct.kernel(occupancy=tile // 32)
    def scale(x: torch.Tensor, y):
        found = ops.widened(ct.load(x, index=(ct.bid(0),), shape=(tile,)))
        ct.store(y, index=(ct.bid(0),), tile=then(found).astype(dtype))
    return scale

def shifted(tile):
    return tile + 1

def test_all():
    x = torch.tensor(np.arange(4096, dtype=np.float32)).cuda()
    y = torch.empty_like(x, dtype=torch.float16)
    ct.launch(torch.cuda.current_stream(), (32,), Ops.twice, (x, 128))
    for tile in (64, 128):
        ct.launch(torch.cuda.current_stream(), (4096 // tile,), make(tile, ct.float16, shifted), (x, y))
    other.compare(y, x)
"""


def test_kernels_are_followed_into_helpers_classes_and_factories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ops.py").write_text(LIBRARY)
    path = tmp_path / "report.py"
    path.write_text(SCRIPT)
    only = {"cuda_tile": ("1.7.0",), "cuda_toolkit": ("13.5.0",), "arch": ("sm_90",)}
    found = triage(path, "", tmp_path / "out", capsys, **only)
    assert list(found) == ["Ops.twice", "make.scale, 1", "make.scale, 2"]
    assert all(kernel["passes"] and not kernel["fails"] for kernel in found.values())
    cells = list(plan(load_matrix(tmp_path / "out/triage/report/matrix.toml")))
    on_device = [cell.case for cell in cells if cell.device is not None]
    assert [case.run.grid[0] for case in on_device if case.run is not None] == [32, 64, 32]


def test_a_script_is_triaged_by_its_launches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = triage(
        RESOURCES / "triage/launches_on_torch.py",
        "",
        tmp_path,
        capsys,
        cuda_tile=("1.7.0",),
        cuda_toolkit=("13.4.3",),
        arch=("sm_90",),
    )
    assert list(found) == [
        "scale (line 25: x float16[128, 64])",
        "scale (line 26: x float16[128, 63])",
    ]
    assert all(kernel["passes"] for kernel in found.values())
