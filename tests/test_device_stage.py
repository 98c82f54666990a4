"""Device cells from static results to verdicts, on a worker that plays the GPU process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from made_results import Maker

from harness.device_stage import run_on_devices, static_key
from harness.execute import Gpu, PoolOptions
from harness.execute.device import NoDevice
from harness.judge import judge_compile
from harness.matrix.value import Timeouts
from harness.model import CellResult, Device, PoolAnswer, Verdict
from harness.process import Supervisor

FAKE = Path(__file__).parent / "execute" / "fake_worker.py"
H200 = Device("h200", "H200", "sm_90", ">=580")
GPU = Gpu(0, "GPU-fake", "NVIDIA H200", "sm_90", "580.159.04", 132, 1 << 37)
QUICK = Timeouts(load=2, launch=0.4, read_back=2, compare=2)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as one:
        yield one


@dataclass
class Bench:
    """Static results of cells whose kernel does what its symbol says, and a run of their device cells."""

    make: Maker
    supervisor: Supervisor
    folder: Path

    def static(self, symbol: str, latency: int, answer: PoolAnswer | None = None) -> CellResult:
        plain = self.make.cell()
        cell = replace(plain, case=replace(plain.case, knobs=(("allow_tma", False), ("latency", latency))))
        books = self.make.books(answer) if answer else None
        inspection = self.make.deadlocked(symbol=symbol, books=books)
        trace, compiled = self.make.trace(), self.make.compiled(cubin_sha256=f"{latency:064x}")
        judgement = judge_compile(cell, trace, compiled, inspection)
        return CellResult(cell, judgement, {"tileiras": "13.3.36"}, trace, compiled, inspection)

    def run(self, symbols: list[str | tuple[str, PoolAnswer]], timed: bool = False) -> list[CellResult]:
        """Results of the device cells, in the order of `symbols`."""
        wanted = [s if isinstance(s, tuple) else (s, None) for s in symbols]
        known = [self.static(symbol, number + 1, answer) for number, (symbol, answer) in enumerate(wanted)]
        cells = [replace(result.cell, device=H200) for result in known]
        cubin = self.folder / "cubin"
        cubin.write_bytes(b"machine code")
        found: list[CellResult] = []
        argv = (sys.executable, str(FAKE), f"--log={self.folder / 'log'}")
        run_on_devices(
            self.supervisor,
            cells,
            {static_key(cell): result for cell, result in zip(cells, known, strict=True)},
            lambda sha256: cubin,
            found.append,
            timeouts=QUICK,
            options=PoolOptions(workers=3, waiting=3, spares=1, overdue_seconds=0.1, worker_argv=argv),
            timed=timed,
        )
        assert sorted(r.cell.id for r in found) == sorted(cell.id for cell in cells)
        by_id = {result.cell.id: result for result in found}
        return [by_id[cell.id] for cell in cells]

    def log(self) -> list[tuple[float, int, str, str, bool]]:
        lines = [line.split() for line in (self.folder / "log").read_text().splitlines()]
        return [(float(at), int(pid), what, case, timed == "True") for at, pid, what, case, timed in lines]


@pytest.fixture
def bench(
    make: Maker, supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    monkeypatch.setattr("harness.device_stage.find", lambda: (GPU,))
    return Bench(make, supervisor, tmp_path)  # type: ignore[return-value]


def test_time_is_taken_alone_and_only_of_what_passed(bench: Bench) -> None:
    results = bench.run(["ok", "slow", "hang:launch", "slow", "wrong", "ok"], timed=True)
    assert [r.verdict for r in results] == [
        Verdict.PASS,
        Verdict.PASS,
        Verdict.HANG,
        Verdict.PASS,
        Verdict.WRONG_RESULT,
        Verdict.PASS,
    ]
    for result in results:
        assert result.observation is not None
        passed = result.verdict is Verdict.PASS
        assert (result.observation["timing"] is not None) is passed
        assert ("timing" in result.judgement.evidence) is passed
        if passed:
            assert result.observation["timing"]["samples_us"] == [29.0, 30.0, 31.0]
            assert result.observation["repeats"] == 3
            assert "timing" in result.seconds
    log = bench.log()
    first = next(at for at, _, _, _, timed in log if timed)
    assert all(at < first for at, _, _, _, timed in log if not timed)
    assert [what for _, _, what, _, timed in log if timed] == ["start", "end"] * 4
    assert len({pid for _, pid, _, _, timed in log if timed}) == 1


def test_a_kernel_that_hangs_only_when_timed_is_flaky(bench: Bench) -> None:
    steady, shaky = bench.run(["ok", "hang_if_timed"], timed=True)
    assert steady.verdict is Verdict.PASS
    assert shaky.verdict is Verdict.FLAKY
    assert [v["verdict"] for v in shaky.judgement.evidence["verdicts"]] == ["pass", "hang"]


def test_without_timed_nothing_is_timed(bench: Bench) -> None:
    (result,) = bench.run(["ok"])
    assert result.observation is not None
    assert result.observation["timing"] is None


def test_no_driver_is_one_sentence(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> tuple[Gpu, ...]:
        raise NoDevice("no NVIDIA driver on this machine")

    monkeypatch.setattr("harness.device_stage.find", absent)
    (result,) = bench.run(["ok"])
    assert result.verdict is Verdict.SKIPPED
    assert result.judgement.summary == (
        "Skipped: no NVIDIA driver on this machine; device h200 needs H200 with driver >=580."
    )
    monkeypatch.setattr("harness.device_stage.nothing_to_launch", lambda case, kernel, processors: "no grid")
    (result,) = bench.run(["ok"])
    assert result.judgement.summary == "Skipped: no grid.", "no driver would help"


def test_a_hang_that_was_foretold_names_the_component_and_the_prediction(bench: Bench) -> None:
    foretold, sudden = bench.run(
        [("hang:launch", PoolAnswer.IMPOSSIBLE), ("hang:launch", PoolAnswer.BALANCED)]
    )
    assert foretold.verdict is sudden.verdict is Verdict.HANG
    static = foretold.judgement.evidence["static"]
    assert foretold.judgement.component == static["component"] == "tileiras"
    assert static["agrees"] is True
    assert static["verdict"] == "predicted_deadlock"
    assert static["signature"].startswith("predicted_deadlock/tileiras/register pool")
    assert static["cell"] == replace(foretold.cell, device=None).id
    assert "already asks to grow" in static["blame"]
    assert foretold.judgement.summary.endswith("foretold from its machine code (predicted_deadlock)")
    assert sudden.judgement.component is None
    assert sudden.judgement.evidence["static"]["agrees"] is False
