"""The whole story of one cell."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace

import pytest
from made_results import Maker, no_fault_of_a_version
from rich.console import Console

from harness.cluster import findings
from harness.model import CellResult, ProcessUsage, TraceOutcome
from harness.report.explain import SassContext, explain


def told(result: CellResult, context: SassContext | None = None, **more: object) -> list[str]:
    file = io.StringIO()
    explain(result, context, Console(file=file, width=200, highlight=False), **more)  # type: ignore[arg-type]
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_deadlock_is_told_with_books_and_machine_code(make: Maker, lab_run: list[CellResult]) -> None:
    (finding,) = findings(lab_run)
    result = next(result for result in lab_run if result.cell.id == finding.example)
    lines = told(result, lambda pc: [f"/*{pc:04x}*/ USETMAXREG"], finding=finding)
    text = "\n".join(lines)
    assert lines[1] == f"✖ predicted_deadlock   cell {result.cell.id}"
    assert f"  {result.judgement.summary}" in lines
    assert "Register pool: impossible" in lines
    assert "  handed out at launch, 24 × 256 threads        6144" in lines
    assert "  needed before every warp can finish           1024" in lines
    assert "  warp 4 must pass 0x8d80" in lines
    assert "  warps 5-7 must pass 0x8fb0" in lines
    assert "  3. No warp gives registers back." in lines
    assert "0x8d80  grow to 32  rmsnorm.py:15" in lines
    assert "    /*8d80*/ USETMAXREG" in lines
    assert "the PTX handed to ptxas already asks to grow to 32" in text
    assert "    setmaxnreg.inc.sync.aligned.u32  32;" in lines
    assert "tileiras 13.2.86 to 13.3.36 affected; good from 13.4.92" in text


def test_versions_are_told_as_written_and_as_chosen(make: Maker) -> None:
    resolved = {"cuda_tile": "1.5.0", "cuda_toolkit": "13.3.1"}
    lines = told(replace(make.result(make.cell("13.3", shape=())), resolved=resolved))
    assert any(line.split() == ["backend", "cuda-toolkit", "13.3", "=", "13.3.1"] for line in lines)
    assert any(line.split() == ["frontend", "cuda-tile", "1.5.0"] for line in lines)
    assert any(line.split() == ["kernel", "rmsnorm.static_persistent", "bfloat16"] for line in lines)


@pytest.mark.parametrize("kind", ["infra_error", "import", "trace", "signature"])
def test_findings_that_no_version_is_to_blame_for_name_none(make: Maker, kind: str) -> None:
    result = no_fault_of_a_version(make, kind)
    (finding,) = findings([result])
    assert not any("affected" in line for line in told(result, finding=finding))


def test_without_machine_code_the_site_itself_is_shown(make: Maker) -> None:
    lines = told(make.answer(make.cell()))
    assert "    USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20 ;" in lines


def test_commands_to_see_it_again(make: Maker) -> None:
    lines = told(make.answer(make.cell()), bytecode="/some where/k.bc")
    at = lines.index("See it again")
    commands = [shlex.split(line) for line in lines[at + 1 : at + 4]]
    assert commands[0][:6] == ["python", "-m", "pip", "install", "--target", "backend"]
    assert "nvidia-cuda-nvdisasm" in commands[0]
    assert "nvidia-cuda-tileiras==13.3.36" in commands[0]
    assert commands[1] == [
        "backend/nvidia/cu13/bin/tileiras",
        "/some where/k.bc",
        *("-o", "kernel.cubin", "--gpu-name", "sm_90", "-O3", "--lineinfo"),
    ]
    assert commands[2][0] == "backend/nvidia/cu13/bin/nvdisasm"


def test_the_oldest_backend_needs_a_link(make: Maker) -> None:
    result = make.result(make.cell("13.1.0"))
    result = replace(result, components={"tileiras": "13.1.80", "nvvm": "13.1.80", "ptxas": "13.1.80"})
    text = "\n".join(told(result))
    assert "ln backend/nvidia/cu13/lib/libnvvm.so.4 backend/nvidia/cu13/nvvm/lib64/libnvvm.so" in text


def test_a_failed_compile_shows_what_was_said(make: Maker) -> None:
    lines = told(make.result(compile=make.failed(5, "k.py:3: error: too \x1b[31mlarge")))
    assert "    k.py:3: error: too \ufffd[31mlarge" in lines
    assert "  status        failed, exit code 5" in lines


def test_a_timeout_shows_who_held_the_cpu(make: Maker) -> None:
    usage = (ProcessUsage("ptxas", 55.0, 200 << 20),)
    timeout = make.compiled(
        status="timeout", exit_code=None, holder="ptxas", usage=usage, cubin_sha256=None, cached=True
    )
    lines = told(make.result(compile=timeout))
    assert (
        "  status        timeout, deadline of 60 s, held by ptxas (remembered from an earlier run)" in lines
    )
    assert "  ptxas         55.00 s CPU, 200 MiB" in lines


def test_a_frontend_error_shows_its_traceback(make: Maker) -> None:
    trace = TraceOutcome("internal", error_type="KeyError", message="'latency'", traceback="File x\nKeyError")
    lines = told(make.result(trace=trace, compile=make.compiled(), inspection=None))
    assert "    KeyError" in lines
    assert "See it again" not in lines
