"""The real worker process behind the real pool; only the driver is not real."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_pool import GPU, options_of
from test_session import launch_of

from harness.execute import Observation, execute, judge_run
from harness.execute.protocol import Timeouts
from harness.model import Verdict
from harness.process import Supervisor

WORKER = (sys.executable, str(Path(__file__).with_name("fake_cuda_worker.py")))


@pytest.mark.slow
def test_a_day_in_the_life_of_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    symbols = ("good", "one_wrong", "good", "fault", "good", "spin", "good")
    short = Timeouts(launch=0.4)
    launches = [
        replace(launch_of(tmp_path, symbol), case=f"{n}-{symbol}", cubin_sha256=symbol, timeouts=short)
        for n, symbol in enumerate(symbols)
    ]
    found: list[Observation] = []
    with Supervisor() as supervisor:
        options = options_of(worker_argv=WORKER)
        execute(supervisor, launches, (GPU,), lambda _, o: found.append(o), options)
    judged = {o.case: judge_run(o) for o in found}
    assert {case: j.verdict for case, j in judged.items()} == {
        "0-good": Verdict.PASS,
        "1-one_wrong": Verdict.WRONG_RESULT,
        "2-good": Verdict.PASS,
        "3-fault": Verdict.DEVICE_FAULT,
        "4-good": Verdict.PASS,
        "5-spin": Verdict.HANG,
        "6-good": Verdict.PASS,
    }
    hung = next(o for o in found if o.case == "5-spin")
    assert hung.evidence is not None
    assert "in launch" in hung.evidence.host_stack
    hashes = {o.outputs[0].sha256 for o in found if o.case.endswith("good")}
    assert len(hashes) == 1
