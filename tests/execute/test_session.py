"""The worker's own work, on a driver that lives in host memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fake_driver import CUresult, FakeDriver, Params, memory_at

from harness.execute import canary
from harness.execute.data import DataCache, data_key
from harness.execute.gpu import Gpu
from harness.execute.protocol import (
    ArrayValue,
    Launch,
    Observation,
    Outcome,
    Reference,
    ScalarValue,
    Stage,
)
from harness.execute.session import Session
from harness.execute.verdict import judge_run
from harness.model import Verdict

BF16 = np.dtype(ml_dtypes.bfloat16)


class Announcements:
    """A channel that keeps what it was told."""

    def __init__(self) -> None:
        self.stages: list[tuple[Stage, str | None]] = []

    def enter(self, stage: Stage, case: str | None = None) -> None:
        self.stages.append((stage, case))

    @property
    def stage(self) -> Stage:
        return self.stages[-1][0]

    def seconds(self) -> dict[str, float]:
        return {}


def rmsnorm(spoil: Any = None) -> Any:
    def kernel(driver: FakeDriver, grid: tuple[int, int, int], address: int) -> CUresult | None:
        params = Params(address)
        x, w = params.array(BF16, 2), params.array(BF16, 1)
        y, rstd = params.array(BF16, 2), params.array(np.float32, 1)
        wide = x.astype(np.float32)
        driver.before = y.copy()
        r = np.float32(1) / np.sqrt((wide * wide).mean(1, dtype=np.float32) + np.float32(1e-6))
        y[...] = (wide * r[:, None] * w.astype(np.float32)).astype(BF16)
        rstd[...] = r
        return spoil(driver, x, y, rstd) if spoil else None

    return kernel


def swap_rows(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
    y[[0, 1]] = y[[1, 0]]


def one_wrong(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
    y[3, 5] = y[3, 5] * BF16.type(1.02)


def skip_last(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
    y[-1] = driver.before[-1]


def write_outside(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
    memory_at(y.ctypes.data - 2, 1, np.uint16)[0] = 0


def write_gap(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
    memory_at(y.ctypes.data + 2 * y.shape[1], 1, np.uint16)[0] = 0


def write_input(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
    x[0, 0] = 7


def flicker(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> None:
    if driver.launches % 3 == 2:
        rstd.view(np.uint32)[1] ^= 1


def fault(driver: FakeDriver, x: Any, y: Any, rstd: Any) -> CUresult:
    return CUresult.CUDA_ERROR_ILLEGAL_ADDRESS


KERNELS = {
    "good": rmsnorm(),
    "swap_rows": rmsnorm(swap_rows),
    "one_wrong": rmsnorm(one_wrong),
    "skip_last": rmsnorm(skip_last),
    "write_outside": rmsnorm(write_outside),
    "write_gap": rmsnorm(write_gap),
    "write_input": rmsnorm(write_input),
    "flicker": rmsnorm(flicker),
    "fault": rmsnorm(fault),
}


def launch_of(tmp_path: Path, symbol: str, shape: tuple[int, int] = (12, 40), **changes: Any) -> Launch:
    m, n = shape
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(b"a fake cubin")
    arguments = (
        ArrayValue("x", "bfloat16", (m, n), (n + 3, 1), offset=1),
        ArrayValue("w", "bfloat16", (n,), (1,)),
        ArrayValue("y", "bfloat16", (m, n), (n + 1, 1), role="out"),
        ArrayValue("rstd", "float32", (m,), (1,), role="out"),
    )
    return replace(
        Launch(
            case="c1",
            cubin=str(cubin),
            cubin_sha256="0" * 64,
            symbol=symbol,
            arch="sm_90",
            grid=(4, 1, 1),
            arguments=arguments,
            reference=Reference("rmsnorm", {"eps": 1e-6, "offset": 0.0}),
        ),
        **changes,
    )


def observe(launch: Launch, driver: FakeDriver | None = None) -> Observation:
    driver = driver or FakeDriver(KERNELS)
    channel: Any = Announcements()
    seen = Session(Gpu(driver), channel).observe(launch)
    return Observation.from_json(seen.to_json())


def test_a_right_kernel_passes_and_every_stage_is_announced(tmp_path: Path) -> None:
    driver = FakeDriver(KERNELS)
    channel: Any = Announcements()
    session = Session(Gpu(driver), channel)
    seen = session.observe(launch_of(tmp_path, "good"))
    assert seen.outcome is Outcome.DONE
    assert [stage for stage, _ in channel.stages] == ["load", "prepare", "launch", "read_back", "compare"]
    assert driver.launches == 3
    y, rstd = seen.outputs
    assert (y.beyond_bound, y.never_written, y.outside_bytes, y.differing) == (0, 0, 0, 0)
    assert rstd.compared
    assert judge_run(seen).verdict is Verdict.PASS
    session.observe(launch_of(tmp_path, "good"))
    assert driver.loaded == [b"a fake cubin"]


@pytest.mark.parametrize(
    ("symbol", "verdict", "words"),
    [
        ("swap_rows", Verdict.WRONG_RESULT, "outside the error bound"),
        ("one_wrong", Verdict.WRONG_RESULT, "1 of 480 elements are outside the error bound"),
        ("skip_last", Verdict.WRONG_RESULT, "40 of 480 elements were never written"),
        ("write_outside", Verdict.WRONG_RESULT, "2 bytes around or between its elements"),
        ("write_gap", Verdict.WRONG_RESULT, "2 bytes around or between its elements"),
        ("write_input", Verdict.WRONG_RESULT, "wrote to what it should only read: x ("),
        ("flicker", Verdict.NONDETERMINISTIC, "rstd: 1 of 12 elements"),
        ("fault", Verdict.DEVICE_FAULT, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_a_bad_kernel_is_seen_for_what_it_is(
    tmp_path: Path, symbol: str, verdict: Verdict, words: str
) -> None:
    judgement = judge_run(observe(launch_of(tmp_path, symbol)))
    assert judgement.verdict is verdict
    assert words in judgement.summary
    assert judgement.signature is not None


def test_a_fault_names_stage_call_and_error(tmp_path: Path) -> None:
    seen = observe(launch_of(tmp_path, "fault"))
    assert (seen.outcome, seen.stage, seen.call) == (Outcome.FAULT, Stage.LAUNCH, "cuEventQuery")


def test_the_driver_may_refuse(tmp_path: Path) -> None:
    launch = launch_of(tmp_path, "good")
    seen = observe(replace(launch, symbol="missing"))
    assert (seen.outcome, seen.stage, seen.error) == (Outcome.REFUSED, Stage.LOAD, "CUDA_ERROR_NOT_FOUND")
    Path(launch.cubin).write_bytes(b"garbage")
    assert observe(launch).error == "CUDA_ERROR_INVALID_IMAGE"
    Path(launch.cubin).write_bytes(b"fine")
    seen = observe(replace(launch, grid=(0, 1, 1)))
    assert (seen.outcome, seen.stage) == (Outcome.REFUSED, Stage.LAUNCH)
    assert judge_run(seen).verdict is Verdict.LAUNCH_ERROR


def test_too_large_a_case_is_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.execute.gpu._SLAB_BYTES", 1 << 16)
    driver = FakeDriver(KERNELS)
    driver.memory_limit = 100_000
    seen = observe(launch_of(tmp_path, "good", (64, 512)), driver)
    assert (seen.outcome, seen.stage, seen.call) == (Outcome.OUT_OF_MEMORY, Stage.PREPARE, "cuMemAlloc")
    assert judge_run(seen).verdict is Verdict.OUT_OF_MEMORY


def test_our_own_mistakes_are_not_the_kernels(tmp_path: Path) -> None:
    seen = observe(launch_of(tmp_path, "good", reference=Reference("nothing")))
    assert seen.outcome is Outcome.HOST_ERROR
    judgement = judge_run(seen)
    assert judgement.verdict is Verdict.INFRA_ERROR
    assert "no reference is named 'nothing'; there are rmsnorm" in judgement.summary


def test_without_a_reference_bits_are_still_compared(tmp_path: Path) -> None:
    seen = observe(launch_of(tmp_path, "skip_last", reference=None))
    assert [o.compared for o in seen.outputs] == [False, False]
    assert seen.outputs[0].never_written == 40
    assert judge_run(observe(launch_of(tmp_path, "good", reference=None))).verdict is Verdict.PASS


def test_equal_bits_have_equal_hashes_whatever_the_layout(tmp_path: Path) -> None:
    launch = launch_of(tmp_path, "good")
    x, w, y, rstd = launch.arguments
    tight = replace(
        launch, arguments=(replace(x, strides=(40, 1), offset=0), w, replace(y, strides=(40, 1)), rstd)
    )
    assert data_key(tight) == data_key(launch)
    assert [o.sha256 for o in observe(tight).outputs] == [o.sha256 for o in observe(launch).outputs]


def test_settings_the_reference_does_not_read_share_the_data(tmp_path: Path) -> None:
    launch = launch_of(tmp_path, "good")
    other = {"eps": 1e-6, "offset": 0.0, "latency": 10.0}
    assert data_key(replace(launch, reference=Reference("rmsnorm", other))) == data_key(launch)
    gemma = {"eps": 1e-6, "offset": 1.0}
    assert data_key(replace(launch, reference=Reference("rmsnorm", gemma))) != data_key(launch)


def test_timing_counts_every_byte_once(tmp_path: Path) -> None:
    seen = observe(launch_of(tmp_path, "good", timed=True))
    assert seen.timing is not None
    assert seen.timing.bytes_moved == 2 * (480 + 40 + 480) + 4 * 12
    assert 10 <= seen.timing.median_us <= 13
    assert seen.stage is Stage.TIMING
    assert seen.timing.copy_bytes_per_second == pytest.approx(2e12, rel=0.01)


def test_arrays_of_no_elements_run(tmp_path: Path) -> None:
    seen = observe(launch_of(tmp_path, "good", (0, 40)))
    assert seen.outcome is Outcome.DONE
    assert judge_run(seen).verdict is Verdict.PASS


def test_scalars_are_passed_in_their_own_type(tmp_path: Path) -> None:
    got: list[Any] = []

    def kernel(driver: FakeDriver, grid: tuple[int, int, int], address: int) -> None:
        params = Params(address)
        got.append((params.next(np.int32), params.next(np.float32), params.next(BF16)))

    arguments = (
        ScalarValue("a", "int32", -3),
        ScalarValue("b", "float32", 0.5),
        ScalarValue("c", "bfloat16", 1.5),
    )
    launch = launch_of(tmp_path, "take", arguments=arguments, reference=None, repeats=1)
    assert observe(launch, FakeDriver({"take": kernel})).outcome is Outcome.DONE
    assert got == [(-3, 0.5, 1.5)]


def test_data_is_made_once_and_bounded(tmp_path: Path) -> None:
    launch = launch_of(tmp_path, "good")
    cache = DataCache(limit=1)
    first = cache.get(launch)
    assert cache.get(replace(launch, symbol="other")) is first
    other = cache.get(replace(launch, seed=1))
    assert cache.get(replace(launch, seed=1)) is other
    assert cache.get(launch) is not first


def test_the_canary_sings_or_says_why_not() -> None:
    def sing(driver: FakeDriver, grid: tuple[int, int, int], address: int) -> None:
        out = memory_at(int(Params(address).next(np.uint64)), canary.COUNT, np.uint32)
        out[:] = 3 * np.arange(canary.COUNT) + 1

    def croak(driver: FakeDriver, grid: tuple[int, int, int], address: int) -> None:
        sing(driver, grid, address)
        memory_at(int(Params(address).next(np.uint64)), 1, np.uint32)[0] = 0

    assert canary.sing(Gpu(FakeDriver({"canary": sing}))) is None
    problem = canary.sing(Gpu(FakeDriver({"canary": croak})))
    assert problem == "the known-good kernel got 1 of 1024 numbers wrong"
