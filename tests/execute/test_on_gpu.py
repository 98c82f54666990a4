"""The real driver, on kernels in PTX that no tile compiler had a hand in. Needs a GPU (`-m gpu`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.execute import Gpu, Launch, Observation, PoolOptions, execute, judge_run
from harness.execute import coredump as c
from harness.execute.device import NoDevice, find
from harness.execute.protocol import ArrayValue, Outcome, Stage, Timeouts
from harness.model import Verdict
from harness.process import Supervisor

pytestmark = pytest.mark.gpu

HEAD = """.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y, .param .u32 shape, .param .u32 stride)
{
    .reg .pred %p;
    .reg .u32 %r<4>;
    .reg .u64 %d<3>;
    .reg .f32 %f;
    ld.param.u64 %d1, [y];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u32 %r1, [shape];
"""
FILL = """
    mov.u32 %r2, 0;
LOOP:
    cvt.rn.f32.u32 %f, %r2;
    st.global.f32 [%d1], %f;
    add.u64 %d1, %d1, 4;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r1;
    @%p bra LOOP;
"""
KERNELS = {
    "good": FILL,
    "short": "    sub.u32 %r1, %r1, 1;\n" + FILL,
    "outside": "    add.u32 %r1, %r1, 1;\n" + FILL,
    "hang": "SPIN:\n    ld.volatile.global.u32 %r3, [%d1];\n    setp.ne.u32 %p, %r3, 1;\n    @%p bra SPIN;\n",
    "fault": "    mov.u64 %d2, 64;\n    st.global.u32 [%d2], %r1;\n",
    "garbage": "    this is no instruction;\n",
}


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    try:
        return find()[0]
    except NoDevice as error:
        pytest.skip(str(error))


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as one:
        yield one


def launch_of(folder: Path, name: str, case: str = "") -> Launch:
    text = HEAD + KERNELS[name] + "    ret;\n}\n"
    path = folder / f"{name}.ptx"
    path.write_bytes(text.encode() + b"\0")
    y = ArrayValue("y", "float32", (1000,), (1,), role="out")
    return Launch(
        case or name,
        str(path),
        hashlib.sha256(text.encode()).hexdigest(),
        "k",
        "sm_80",
        (1, 1, 1),
        (y,),
        timed=name == "good",
        timeouts=Timeouts(launch=2),
    )


def run(supervisor: Supervisor, gpu: Gpu, launches: list[Launch]) -> dict[str, Observation]:
    found: dict[str, Observation] = {}
    execute(
        supervisor,
        launches,
        (gpu,),
        lambda _, o: found.update({o.case: o}),
        PoolOptions(workers=2, waiting=4),
    )
    return found


def test_every_end_on_a_real_gpu(supervisor: Supervisor, gpu: Gpu, tmp_path: Path) -> None:
    launches = [launch_of(tmp_path, name) for name in KERNELS]
    launches += [launch_of(tmp_path, "good", f"after{n}") for n in range(4)]
    seen = run(supervisor, gpu, launches)
    judged = {case: judge_run(o) for case, o in seen.items()}
    assert {case: j.verdict for case, j in judged.items()} == {
        "good": Verdict.PASS,
        "short": Verdict.WRONG_RESULT,
        "outside": Verdict.WRONG_RESULT,
        "hang": Verdict.HANG,
        "fault": Verdict.DEVICE_FAULT,
        "garbage": Verdict.LAUNCH_ERROR,
        **{f"after{n}": Verdict.PASS for n in range(4)},
    }
    assert seen["short"].outputs[0].never_written == 1
    assert seen["outside"].outputs[0].outside_bytes == 4
    assert seen["hang"].stage is Stage.LAUNCH
    assert all(
        judged[case].evidence["confirmed"] for case in ("short", "outside", "hang", "fault", "garbage")
    )
    assert seen["good"].timing is not None
    assert seen["good"].timing.median_us > 0


def test_a_hang_shows_its_warps(supervisor: Supervisor, gpu: Gpu, tmp_path: Path) -> None:
    if c.debugger() is None:
        pytest.skip("cuda-gdb is not installed")
    seen = run(supervisor, gpu, [launch_of(tmp_path, "hang")])["hang"]
    assert seen.outcome is Outcome.HANG
    assert seen.evidence is not None
    assert seen.evidence.host_stack
    assert seen.evidence.warps, (seen.evidence.notes, seen.evidence.raw)
    assert seen.evidence.warps[0].offset is not None
