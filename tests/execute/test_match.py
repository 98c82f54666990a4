"""Whether what is here is what was asked for."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.execute.match import mismatch, pick
from harness.execute.protocol import Gpu
from harness.model import Device

H200 = Gpu(0, "GPU-1", "NVIDIA H200", "sm_90", "580.159.04", 132, 150 << 30)
B200 = replace(H200, index=1, uuid="GPU-2", name="NVIDIA B200", arch="sm_100")
WANTED = Device("h200", "H200", "sm_90", ">=580,<600")


def test_a_match_and_every_mismatch() -> None:
    assert mismatch(WANTED, H200) is None
    assert mismatch(WANTED, B200) == "needs a GPU named like 'H200', this is NVIDIA B200"
    other = replace(H200, arch="sm_100")
    assert mismatch(WANTED, other) == "needs sm_90, NVIDIA H200 is sm_100"
    old = replace(H200, driver="570.10")
    assert mismatch(WANTED, old) == "needs a driver >=580,<600, here is 570.10"
    assert mismatch(replace(WANTED, driver=""), old) is None
    assert "cannot be compared" in str(mismatch(replace(WANTED, driver="new"), H200))


def test_picking_gives_gpus_or_a_reason() -> None:
    assert pick(WANTED, (B200, H200)) == ((H200,), None)
    none, reason = pick(WANTED, (B200, replace(B200, index=2)))
    assert none == ()
    assert reason == "device h200: needs a GPU named like 'H200', this is NVIDIA B200"


@given(st.integers(500, 700), st.integers(500, 700), st.integers(0, 300))
def test_driver_ranges_compare_numbers(low: int, have: int, minor: int) -> None:
    gpu = replace(H200, driver=f"{have}.{minor}.04")
    fits = mismatch(replace(WANTED, driver=f">={low}"), gpu) is None
    assert fits == (have >= low)
