"""Launching as users do: the real worker process on stand-ins for torch and cuda.tile."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import Maker
from test_pool import GPU, options_of

from harness.execute import Observation, execute, jit, judge_run
from harness.execute.launches import launch_of
from harness.execute.protocol import Launch, Outcome, Stage, Timeouts
from harness.kernels import get
from harness.model import Case, Cell, Hints, Toolchain, Verdict
from harness.process import Supervisor

WORKER = Path(__file__).with_name("fake_jit_worker.py")
TOOLCHAIN = Toolchain("tile1.5.0-ctk13.3.1", "1.5.0", "13.3.1")


@pytest.fixture
def tree(tmp_path: Path) -> jit.JitTree:
    tileiras = tmp_path / TOOLCHAIN.name / "backend" / "bin" / "tileiras"
    tileiras.parent.mkdir(parents=True)
    tileiras.write_text("#!/bin/sh\n")
    tileiras.chmod(0o755)
    (tmp_path / TOOLCHAIN.name / "frontend" / "cuda" / "tile").mkdir(parents=True)
    return jit.carried_trees(tmp_path)(TOOLCHAIN)


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    with Supervisor() as one:
        yield one


def launch_for(make: Maker, occupancy: int | None, layout: str = "sliced") -> Launch:
    knobs = (("allow_tma", False), ("latency", 3), ("offset", 1.0))
    case = Case("rmsnorm.tiled", (12, 40), "bfloat16", Hints(occupancy), knobs, layout, engine="jit")
    cell = Cell(TOOLCHAIN, "sm_90", case)
    kernel = get("rmsnorm.tiled")
    timeouts = {2: Timeouts(launch=0.5), 3: Timeouts(compile=0.5)}.get(occupancy or 0, Timeouts())
    return launch_of(cell, kernel, make.inspection(), Path("unused"), "c", 132, timeouts)


def run(supervisor: Supervisor, tree: jit.JitTree, launches: list[Launch]) -> dict[str, Observation]:
    found: dict[str, Observation] = {}
    argv = (sys.executable, str(WORKER), tree.frontend, tree.backend)
    options = options_of(worker_argv=argv, confirm=False, workers=1, waiting=3)
    execute(supervisor, launches, (GPU,), lambda launch, o: found.update({launch.case: o}), options)
    return found


def test_a_case_is_launched_as_users_do_and_every_end_is_told_apart(
    make: Maker, supervisor: Supervisor, tree: jit.JitTree
) -> None:
    good, other, broken, hung, slow = (launch_for(make, n) for n in (None, 8, 1, 2, 3))
    assert good.jit is not None
    assert good.jit.parameters == (
        *("x", "w", "y", "rstd"),
        *("TILE_M", "TILE_N", "EPS", "OFFSET", "ALLOW_TMA", "LATENCY"),
    )
    seen = run(supervisor, tree, [good, other, broken, hung, slow])
    judged = {case: judge_run(o) for case, o in seen.items()}
    for launch in (good, other):
        assert judged[launch.case].verdict is Verdict.PASS, judged[launch.case]
        assert "compile" in seen[launch.case].seconds
        assert seen[launch.case].repeats == 3
    assert judged[broken.case].verdict is Verdict.COMPILE_ERROR
    assert judged[broken.case].component == "cuda-tile"
    assert "failed to compile Tile IR program" in judged[broken.case].summary
    assert (seen[hung.case].outcome, seen[hung.case].stage) == (Outcome.HANG, Stage.LAUNCH)
    assert judged[slow.case].verdict is Verdict.COMPILE_TIMEOUT
    assert seen[good.case].data == seen[other.case].data


def test_the_same_case_from_a_cubin_has_the_same_data(make: Maker) -> None:
    from harness.execute.data import data_key

    by_jit = launch_for(make, 8)
    cell = Cell(TOOLCHAIN, "sm_90", Case("rmsnorm.tiled", (12, 40), "bfloat16", knobs=(("offset", 1.0),)))
    by_cubin = launch_of(cell, get("rmsnorm.tiled"), make.inspection(), Path("k"), "c", 132, Timeouts())
    assert by_cubin.jit is None
    assert data_key(by_jit) == data_key(by_cubin)
    assert Launch.from_json(by_jit.to_json()) == by_jit


def test_what_is_missing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        jit.NoJit, match=r"engine \"jit\" needs the toolchain tile1.5.0-ctk13.3.1 on this host"
    ):
        jit.no_trees(TOOLCHAIN)
    with pytest.raises(jit.NoJit, match=r"frontend/cuda/tile; copy the toolchain there"):
        jit.carried_trees(tmp_path)(TOOLCHAIN)
    monkeypatch.setattr(jit, "NEEDED", ("no_such_module_anywhere",))
    jit.torch_python.cache_clear()
    with pytest.raises(jit.NoJit, match="needs a Python with no_such_module_anywhere"):
        jit.torch_python()
    jit.torch_python.cache_clear()


def test_options_make_room_for_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "torch_python", lambda: "python-with-torch")
    options = jit.jit_options(options_of(workers=6, spares=1), jit.JitTree("f", "b"))
    assert options.worker_argv[0] == "python-with-torch"
    assert options.worker_argv[2:] == ("f", "b")
    assert Path(options.worker_argv[1]).is_file()
    assert (options.workers, options.start_up_seconds) == (2, 180.0)
    assert replace(options, workers=1).spares == 1
