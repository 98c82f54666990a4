"""The pool against a process that plays every fault. No GPU, no numpy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.execute import Gpu, Launch, Observation, PoolOptions, execute, judge_run
from harness.execute.protocol import Outcome, Stage, Timeouts
from harness.model import Verdict
from harness.process import Child, Supervisor

FAKE = Path(__file__).with_name("fake_worker.py")
GPU = Gpu(0, "GPU-fake", "NVIDIA Fake", "sm_90", "580.159.04", 132, 1 << 37)
PATIENCE = 0.25
"""Seconds a stage that is going to hang may take; the others have the usual deadlines."""


def launch_of(case: str, symbol: str, timeouts: Timeouts | None = None, cubin: str | None = None) -> Launch:
    if timeouts is None:
        stage = symbol.rpartition("hang:")[2] if "hang:" in symbol else "launch"
        timeouts = (
            Timeouts(**{stage: PATIENCE})
            if symbol in ("orphan", "stubborn") or "hang:" in symbol
            else Timeouts()
        )
    return Launch(case, "", cubin or case, symbol, "sm_90", (1, 1, 1), (), timeouts=timeouts)


def options_of(*words: str, **changes: Any) -> PoolOptions:
    base = PoolOptions(
        workers=2,
        waiting=4,
        spares=0,
        start_up_seconds=20,
        overdue_seconds=0.1,
        worker_argv=(sys.executable, str(FAKE), *words),
    )
    return replace(base, **changes)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as one:
        yield one


Run = Callable[..., dict[str, Observation]]


@pytest.fixture
def run(supervisor: Supervisor) -> Run:
    def go(
        launches: list[Launch], options: PoolOptions | None = None, gpus: tuple[Gpu, ...] = (GPU,)
    ) -> dict[str, Observation]:
        found: list[Observation] = []
        execute(supervisor, iter(launches), gpus, lambda _, o: found.append(o), options or options_of())
        assert sorted(o.case for o in found) == sorted(launch.case for launch in launches)
        return {o.case: o for o in found}

    return go


def pid_of(observation: Observation) -> str:
    return observation.message.removeprefix("pid ")


def test_good_cases_share_warm_processes(run: Run) -> None:
    seen = run([launch_of(f"c{n}", "ok") for n in range(40)])
    assert {o.outcome for o in seen.values()} == {Outcome.DONE}
    assert len({pid_of(o) for o in seen.values()}) <= 4
    assert seen["c0"].gpu == GPU
    assert set(seen["c0"].seconds) == {"load", "prepare", "launch", "read_back", "compare"}


def test_process_isolation_gives_every_case_its_own(run: Run) -> None:
    seen = run([launch_of(f"c{n}", "ok") for n in range(6)], options_of(isolation="process"))
    assert len({pid_of(o) for o in seen.values()}) == 6


STAGES = ("load", "prepare", "launch", "read_back", "compare")


def test_a_hang_in_any_stage_is_named_and_ended(run: Run) -> None:
    launches = [launch_of(stage, f"hang:{stage}") for stage in STAGES]
    seen = run([*launches, launch_of("good", "ok")], options_of(waiting=8))
    for stage in STAGES:
        bad = seen[stage]
        assert bad.stage == stage
        assert bad.signal is None
        assert bad.evidence is not None
        assert PATIENCE <= bad.evidence.waited_seconds < 3
        assert "sleep_for_ever" in bad.evidence.host_stack
        assert len(bad.attempts) == 1
        judgement = judge_run(bad)
        if stage == "compare":
            assert judgement.verdict is Verdict.INFRA_ERROR
        else:
            assert judgement.verdict is Verdict.HANG
            assert judgement.signature == f"hang: {stage}"
            assert judgement.evidence["confirmed"] is True
    assert seen["good"].outcome is Outcome.DONE


BAD_ENDS = {
    "crash:launch": (Verdict.WORKER_CRASH, "died in stage launch with signal 11"),
    "exit:read_back": (Verdict.WORKER_CRASH, "died in stage read_back with exit code 7"),
    "garbage:launch": (Verdict.WORKER_CRASH, "this is no message"),
    "lie_case": (Verdict.WORKER_CRASH, "announced a stage of case 'another'"),
    "lie_stage": (Verdict.WORKER_CRASH, "announced an unknown stage 'lunch'"),
    "long_line": (Verdict.WORKER_CRASH, "a line of more than"),
    "fault": (Verdict.DEVICE_FAULT, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    "refused": (Verdict.LAUNCH_ERROR, "the driver refused the launch"),
    "wrong": (Verdict.WRONG_RESULT, "3 of 10 elements are outside the error bound"),
}


def test_every_other_bad_end_is_confirmed_and_judged(run: Run) -> None:
    good = [launch_of(f"good{n}", "ok") for n in range(4)]
    seen = run([launch_of(symbol, symbol) for symbol in BAD_ENDS] + good)
    for symbol, (verdict, words) in BAD_ENDS.items():
        judgement = judge_run(seen[symbol])
        assert judgement.verdict is verdict
        assert words in judgement.summary
        assert judgement.evidence["confirmed"] is True
    assert {seen[launch.case].outcome for launch in good} == {Outcome.DONE}


def test_last_words_are_kept(run: Run) -> None:
    assert "the last words" in run([launch_of("bad", "exit:load")])["bad"].stderr


def test_a_flood_on_standard_output_is_no_protocol(run: Run) -> None:
    assert run([launch_of("flood", "flood")])["flood"].outcome is Outcome.DONE


def test_a_verdict_that_changes_is_flaky_and_both_are_kept(run: Run, tmp_path: Path) -> None:
    seen = run(
        [
            launch_of("hung", f"once:{tmp_path / 'a'}:hang:launch"),
            launch_of("wrong", f"once:{tmp_path / 'b'}:wrong"),
        ]
    )
    judgement = judge_run(seen["hung"])
    assert judgement.verdict is Verdict.FLAKY
    assert judgement.signature == "flaky: hang / pass"
    assert [v["verdict"] for v in judgement.evidence["verdicts"]] == ["hang", "pass"]
    assert judge_run(seen["wrong"]).signature == "flaky: pass / wrong_result"


def alive(needle: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if needle.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_nothing_is_left_behind(run: Run, tmp_path: Path) -> None:
    ours = f"--start={tmp_path.name}"  # other tests may be running workers of theirs
    seen = run([launch_of("orphan", "orphan"), launch_of("stubborn", "stubborn")], options_of(ours))
    assert {o.outcome for o in seen.values()} == {Outcome.HANG}
    assert alive(ours) == []


@pytest.mark.slow
def test_hangs_wait_beside_the_others(run: Run) -> None:
    timeouts = Timeouts(launch=1.5)
    launches = [launch_of(f"h{n}", "hang:launch", timeouts) for n in range(4)]
    launches += [launch_of(f"g{n}", "ok") for n in range(50)]
    start = time.monotonic()
    seen = run(launches, options_of(confirm=False, waiting=6))
    assert time.monotonic() - start < 5.5  # one after the other the hangs alone take 6
    assert sum(o.outcome is Outcome.HANG for o in seen.values()) == 4
    assert sum(o.outcome is Outcome.DONE for o in seen.values()) == 50


def test_a_hang_of_a_cubin_known_to_hang_is_not_confirmed_again(run: Run) -> None:
    launches = [launch_of(f"h{n}", "hang:launch", cubin="same") for n in range(4)]
    seen = run(launches, options_of(workers=2, waiting=2))  # also not where all hang at once
    assert {judge_run(o).verdict for o in seen.values()} == {Verdict.HANG}
    (first,) = [o for o in seen.values() if o.attempts]
    later = [o for o in seen.values() if not o.attempts]
    assert [o.confirmed_by for o in later] == [first.case] * 3
    assert judge_run(later[0]).evidence["confirmed_by"] == first.case


def test_the_canary_sings_after_an_accident_before_the_next_case(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "canary"
    options = options_of(f"--canary={log}", workers=1, waiting=0, confirm=False)
    run([launch_of("a", "ok"), launch_of("b", "ok")], options)
    assert not log.exists()
    seen = run([launch_of("a", "fault"), launch_of("b", "ok"), launch_of("c", "ok")], options)
    assert log.read_text().split() == [pid_of(seen["b"])]


def test_a_gpu_whose_canary_fails_is_set_aside(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "canary"
    Path(f"{log}.bad").touch()
    options = options_of(f"--canary={log}", workers=1, waiting=0, confirm=False)
    launches = [launch_of("a", "fault"), *(launch_of(f"b{n}", "ok") for n in range(3))]
    seen = run(launches, options)
    verdicts = {case: judge_run(o).verdict for case, o in seen.items()}
    assert verdicts["a"] is Verdict.DEVICE_FAULT
    assert verdicts["b0"] is Verdict.TAINTED
    assert {verdicts["b1"], verdicts["b2"]} == {Verdict.NOT_RUN}
    assert "it croaked" in judge_run(seen["b1"]).summary
    assert len(log.read_text().split()) == 2


@pytest.mark.slow
def test_another_gpu_takes_over(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary fails where the first accident was; the other GPU is still trusted."""
    other = replace(GPU, index=1, uuid="GPU-other")
    wrapper = tmp_path / "by_gpu.py"
    wrapper.write_text(
        textwrap.dedent(f"""
        import os, runpy, sys
        bad = os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-fake"
        sys.argv[0] = {str(FAKE)!r}
        sys.argv.insert(1, "--canary=" + {str(tmp_path)!r} + ("/bad" if bad else "/good"))
        runpy.run_path(sys.argv[0], run_name="__main__")
        """)
    )
    (tmp_path / "bad.bad").touch()
    options = options_of(workers=1, waiting=0, confirm=False, worker_argv=(sys.executable, str(wrapper)))
    launches = [launch_of(f"f{n}", "fault") for n in range(2)] + [
        launch_of(f"g{n}", "slow") for n in range(6)
    ]
    seen = run(launches, options, (GPU, other))
    assert {seen[f"g{n}"].outcome for n in range(6)} == {Outcome.DONE}


def test_a_process_that_will_not_die_sets_its_gpu_aside(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real, spared = Child.kill, []

    def kill(self: Child, patience: float = 5.0) -> bool:
        real(self, patience)
        spared.append(self.pid)
        return False

    monkeypatch.setattr(Child, "kill", kill)
    launches = [launch_of("a", "hang:launch"), launch_of("b", "ok"), launch_of("c", "ok")]
    seen = run(launches, options_of(workers=1, waiting=0))
    judgement = judge_run(seen["a"])
    assert judgement.verdict is Verdict.UNKILLABLE
    assert judgement.signature == "unkillable: launch"
    assert {judge_run(seen[c]).verdict for c in "bc"} == {Verdict.NOT_RUN}
    assert "survived SIGKILL in case a" in judge_run(seen["b"]).summary


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("die", "died while starting: no GPU today"),
        ("broken", "CUDA_ERROR_NO_DEVICE"),
        ("hang", "was not ready after 0.3 s"),
    ],
)
def test_a_worker_that_cannot_start_blames_no_kernel(
    run: Run, way: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.execute.garage.START_TRIES", 1 if way == "hang" else 2)
    seen = run(
        [launch_of(f"c{n}", "ok") for n in range(3)],
        options_of(f"--start={way}", workers=1, waiting=0, start_up_seconds=0.3 if way == "hang" else 20),
    )
    judgements = [judge_run(seen[f"c{n}"]) for n in range(3)]
    assert [j.verdict for j in judgements] == [Verdict.INFRA_ERROR, Verdict.NOT_RUN, Verdict.NOT_RUN]
    assert all(words in j.summary for j in judgements)


def test_an_interrupted_run_loses_no_case(supervisor: Supervisor) -> None:
    found: list[Observation] = []

    def launches() -> Iterator[Launch]:
        yield launch_of("c0", "ok")
        yield launch_of("c1", "hang:launch", Timeouts(launch=60))
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        for n in range(2, 6):
            yield launch_of(f"c{n}", "ok")

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        execute(supervisor, launches(), (GPU,), lambda _, o: found.append(o), options_of())
    assert time.monotonic() - start < 20
    assert sorted(o.case for o in found) == [f"c{n}" for n in range(6)]
    assert {o.case: o.outcome for o in found}["c1"] is Outcome.NOT_RUN
    assert {o.case: o.outcome for o in found}["c5"] is Outcome.NOT_RUN


def test_a_failing_source_of_launches_is_raised_and_what_came_is_run(supervisor: Supervisor) -> None:
    def launches() -> Iterator[Launch]:
        yield launch_of("a", "ok")
        raise OSError("the bundle is cut short")

    found: list[Observation] = []
    with pytest.raises(OSError, match="cut short"):
        execute(supervisor, launches(), (GPU,), lambda _, o: found.append(o), options_of())
    assert [o.outcome for o in found] == [Outcome.DONE]


def test_a_failing_callback_is_raised_at_the_end(supervisor: Supervisor) -> None:
    def fail(launch: Launch, observation: Observation) -> None:
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        execute(supervisor, [launch_of("a", "ok")], (GPU,), fail, options_of())


def test_workers_leave_when_the_harness_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(FAKE.parent)!r})
        from test_pool import GPU, Supervisor, Timeouts, execute, launch_of, options_of
        with Supervisor() as supervisor:
            launches = [launch_of("a", "hang:launch", Timeouts(launch=60))]
            options = options_of("--start={tmp_path.name}")
            execute(supervisor, launches, (GPU,), print, options)
        """)
    )
    root = FAKE.parents[2]
    process = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(root)})
    needle = f"--start={tmp_path.name}"
    until = time.monotonic() + 15
    while not alive(needle) and time.monotonic() < until:
        time.sleep(0.05)
    assert alive(needle)
    process.kill()
    process.wait(10)
    while alive(needle) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(needle)


def test_options_are_checked() -> None:
    with Supervisor() as supervisor, pytest.raises(ValueError, match='"worker" or "process", not \'thread\''):
        execute(supervisor, [], (GPU,), print, options_of(isolation="thread"))
    with Supervisor() as supervisor, pytest.raises(ValueError, match="needs a GPU"):
        execute(supervisor, [], (), print, options_of())


def test_launches_and_observations_survive_json() -> None:
    launch = launch_of("a", "ok")
    assert Launch.from_json(launch.to_json()) == launch
    observation = Observation("a", Outcome.HANG, Stage.LAUNCH, gpu=GPU)
    assert Observation.from_json(observation.to_json()) == observation
