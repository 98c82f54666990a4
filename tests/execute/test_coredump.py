"""Core dumps: asking for them, reading cuda-gdb, and saying what the warps do."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gdb_text import AT, BASE, LISTING, listing, warps_table
from test_pool import GPU, launch_of, options_of

from harness.execute import Observation, execute, judge_run
from harness.execute import coredump as c
from harness.execute.protocol import Outcome, Warp
from harness.model import Inspection, PoolAnswer, PoolBooks, PoolSite, Verdict
from harness.process import Supervisor

SITES = (
    PoolSite("alloc", 0x8D80, 32, "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20 ;", "device.py:17"),
    PoolSite("alloc", 0x8FB0, 32, "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20 ;", "device.py:17"),
)
SUMMARY = (
    "4 of 8 warps spin at USETMAXREG.TRY_ALLOC.CTAPOOL +0x8d80, +0x8fb0, +0x8fc0, device.py:17; "
    "4 wait at a barrier behind them (BAR.SYNC.DEFER_BLOCKING +0x1230)"
)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as one:
        yield one


@pytest.fixture
def cuda_gdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cuda-gdb that knows one core dump by heart."""
    script = tmp_path / "bin" / "cuda-gdb"
    script.parent.mkdir()
    here = str(Path(__file__).parent)
    script.write_text(
        f"#!{sys.executable}\n"
        f"import sys; sys.path.insert(0, {here!r})\n"
        "from gdb_text import listing, warps_table\n"
        "assert '-nx' in sys.argv and '-batch' in sys.argv\n"
        "core = next(w for w in sys.argv if w.startswith('target cudacore ')).split()[-1]\n"
        "assert open(core, 'rb').read() == b'a core dump'\n"
        "print(warps_table() if 'info cuda warps' in sys.argv else listing(), end='')\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return script


def test_the_table_of_warps_is_read() -> None:
    warps = c.parse_warps(warps_table())
    assert [(w.warp, w.block, w.pc - BASE) for w in warps] == [(w, (0, 0, 0), at) for w, at in AT.items()]


def test_newer_and_older_tables_are_read() -> None:
    older = " *    0    0xffffffff    0x00000000 0x000000000000001c    0    (0,0,0)\n"
    newer = "   3  0x0000ffff 0x00000000 0x00007fde9f2f4d00  0  (1,2,3)  (96,0,0)  None\n"
    assert c.parse_warps(older) == (Warp(0, (0, 0, 0), 0x1C),)
    assert c.parse_warps(newer) == (Warp(3, (1, 2, 3), 0x7FDE9F2F4D00),)
    assert c.parse_warps("No CUDA Warps.\n") == ()


def test_warps_are_located_by_symbol_and_listing() -> None:
    warps = c.parse_warps(warps_table())
    located, found = c.locate(warps, listing())
    assert {w.warp: w.offset for w in located} == AT
    assert located[4].instruction == LISTING[0x8D80]
    assert found[0x8FA0] == ("WARPSYNC.ALL", None)
    symbols = "".join(line for line in listing().splitlines(True) if "<" not in line)
    assert {w.warp: w.offset for w in c.locate(warps, symbols)[0]} == AT
    code = "".join(line for line in listing().splitlines(True) if "<" in line)
    assert {w.warp: w.offset for w in c.locate(warps, code)[0]} == AT
    assert {w.offset for w in c.locate(warps, "No symbol matches 0x1.\n")[0]} == {None}


def test_a_deadlock_in_words() -> None:
    warps, found = c.locate(c.parse_warps(warps_table()), listing())
    explained = c.explain(warps, SITES, found)
    assert [w.doing for w in explained] == ["waits"] * 4 + ["spins"] * 4
    assert c.summarise(explained) == SUMMARY
    assert c.pattern(explained) == "spins USETMAXREG.TRY_ALLOC.CTAPOOL"


def test_a_warp_just_behind_a_barrier_waits_at_it() -> None:
    listing_of = {0x10: ("@P0 BAR.SYNC 0x0 ;", "k.py:3"), 0x20: ("IADD3 R1, R2, R3 ;", "k.py:4")}
    (warp,) = c.explain([Warp(0, (0, 0, 0), 0x20, 0x20)], (), listing_of)
    assert (warp.doing, warp.instruction, warp.source) == ("waits", "@P0 BAR.SYNC 0x0 ;", "k.py:3")
    assert c.summarise([warp]) == "1 of 1 warps waits at a barrier (BAR.SYNC +0x20, k.py:3)"


def test_a_warp_nobody_can_place_is_shown_by_its_pc() -> None:
    assert c.summarise([Warp(0, (0, 0, 0), 0x1234)]) == "1 of 1 warps stands at PC 0x1234"
    assert c.pattern([Warp(0, (0, 0, 0), 0x1234)]) == ""


def test_failures_are_notes(tmp_path: Path, supervisor: Supervisor) -> None:
    paths = c.DumpPaths(tmp_path / "pipe", tmp_path / "core")
    assert c.trigger(paths, gone=lambda: False) == "no core dump: the driver did not open its pipe"
    os.mkfifo(paths.pipe)
    assert c.trigger(paths, gone=lambda: False) == "no core dump: the driver did not open its pipe"
    reader = os.open(paths.pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert c.trigger(paths, gone=lambda: True) == "no core dump: the process ended without one"
    assert (
        c.trigger(paths, gone=lambda: False, seconds=0.2) == "no core dump: it was not complete after 0.2 s"
    )
    os.close(reader)
    reading = c.read(supervisor, paths.core, str(tmp_path / "nothing"))
    assert reading.warps == ()
    assert reading.notes[0].startswith("cuda-gdb did not run: cannot start")
    silent = tmp_path / "gdb"
    silent.write_text("#!/bin/sh\necho nothing here\n")
    silent.chmod(0o755)
    assert c.read(supervisor, paths.core, str(silent)).notes == ("cuda-gdb listed no warps",)


def test_a_dump_that_grows_too_large_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c, "MAX_CORE_BYTES", 1 << 20)
    core = tmp_path / "core"
    core.write_bytes(bytes(2 << 20))
    assert c.wait_for_core(core, gone=lambda: False, seconds=5) == "no core dump: it grew beyond 1 MiB"


def test_a_dump_is_waited_for_until_the_process_ends(tmp_path: Path) -> None:
    core, ended = tmp_path / "core", threading.Event()

    def dump() -> None:
        core.write_bytes(b"half")
        ended.wait(0.2)
        core.write_bytes(b"whole")
        ended.set()

    threading.Thread(target=dump).start()
    assert c.wait_for_core(core, gone=ended.is_set, seconds=5) is None
    assert core.read_bytes() == b"whole"


def test_a_hang_is_explained_down_to_the_instruction(supervisor: Supervisor, cuda_gdb: Path) -> None:
    """The whole way: hang, confirmation set up to dump, dump, debugger, verdict beside the books."""
    found: list[Observation] = []
    launches = [launch_of(f"h{n}", "hang:launch", cubin="same") for n in range(2)]
    execute(supervisor, launches, (GPU,), lambda _, o: found.append(o), options_of(workers=1, waiting=0))
    first, second = found
    assert first.outcome is Outcome.HANG
    assert first.evidence is not None
    assert first.evidence.core_bytes == len(b"a core dump")
    assert first.evidence.notes == ()
    assert "Active Physical PC" in first.evidence.raw
    books = PoolBooks(PoolAnswer.IMPOSSIBLE, 24, 256, SITES, (), 1024, 0, 0, ("nothing is freed",))
    inspection = Inspection("k", "sm_90", 24, 256, 376, 6224, books=books)
    judgement = judge_run(first, inspection)
    assert judgement.verdict is Verdict.HANG
    assert judgement.summary.endswith(SUMMARY)
    assert judgement.signature == "hang: launch, register pool cannot pay"
    assert judgement.evidence["static"]["agrees"] is True
    lent = judge_run(second, inspection)
    assert lent.signature == judgement.signature
    assert lent.summary.endswith(SUMMARY)
    assert "warps as seen in case h0 of the same cubin" in lent.evidence["evidence"]["notes"]
    balanced = replace(inspection, books=replace(books, answer=PoolAnswer.BALANCED))
    surprise = judge_run(first, balanced)
    assert surprise.evidence["static"]["agrees"] is False
    assert surprise.signature == "hang: launch, spins USETMAXREG.TRY_ALLOC.CTAPOOL"


def test_a_debugger_that_fails_loses_no_verdict(supervisor: Supervisor, cuda_gdb: Path) -> None:
    cuda_gdb.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    found: list[Observation] = []
    execute(supervisor, [launch_of("h", "hang:launch")], (GPU,), lambda _, o: found.append(o), options_of())
    judgement = judge_run(found[0])
    assert judgement.verdict is Verdict.HANG
    assert judgement.evidence["evidence"]["notes"] == ["cuda-gdb ended with exit code 3"]
