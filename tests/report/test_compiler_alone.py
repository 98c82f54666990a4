"""The commands that show a cell with the compiler alone, which `explain` and the HTML report share."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

from made_results import Maker

from harness.model import CellResult, Hints, TraceOutcome
from harness.report.compiler_alone import compiler_alone
from harness.report.html_data import page_data


def old_backend(make: Maker) -> CellResult:
    versions = dict.fromkeys(("tileiras", "nvvm", "ptxas"), "13.1.80")
    return replace(make.answer(make.cell("13.1.0")), components=versions)


def test_a_backend_is_installed_and_run_and_its_cubin_listed(make: Maker) -> None:
    install, compile, disassemble = map(
        shlex.split, compiler_alone(make.answer(make.cell()), "/some where/k")
    )
    assert install == [
        *("python", "-m", "pip", "install", "--target", "backend"),
        *("nvidia-cuda-tileiras==13.3.36", "nvidia-nvvm==13.3.36", "nvidia-cuda-nvcc==13.3.36"),
        "nvidia-cuda-nvdisasm",
    ]
    assert compile == [
        "backend/nvidia/cu13/bin/tileiras",
        "/some where/k",
        *("-o", "kernel.cubin", "--gpu-name", "sm_90", "-O3", "--lineinfo"),
    ]
    assert disassemble == ["backend/nvidia/cu13/bin/nvdisasm", "-g", "-c", "kernel.cubin"]


def test_the_oldest_backend_finds_its_libnvvm_by_a_link(make: Maker) -> None:
    install, mkdir, link, compile, _ = compiler_alone(old_backend(make))
    assert "nvidia-cuda-tileiras==13.1.80" in install
    assert mkdir == "mkdir -p backend/nvidia/cu13/nvvm/lib64"
    assert link == "ln backend/nvidia/cu13/lib/libnvvm.so.4 backend/nvidia/cu13/nvvm/lib64/libnvvm.so"
    assert compile.startswith("backend/nvidia/cu13/bin/tileiras ")


def test_the_level_is_the_one_asked_for_then_the_decorators(make: Maker) -> None:
    def level(asked: int | None, decorated: int | None) -> str:
        result = make.answer(make.cell())
        assert result.trace is not None
        case = replace(result.cell.case, hints=Hints(opt_level=asked))
        trace = replace(result.trace, opt_level=decorated)
        result = replace(result, cell=replace(result.cell, case=case), trace=trace)
        return shlex.split(compiler_alone(result)[1])[-2]

    assert [level(2, 1), level(0, 1), level(None, 1), level(None, None)] == ["-O2", "-O0", "-O1", "-O3"]


def test_there_are_none_where_there_is_nothing_to_compile_or_no_version_known(make: Maker) -> None:
    result = make.answer(make.cell())
    assert compiler_alone(replace(result, trace=None)) == ()
    assert compiler_alone(replace(result, trace=TraceOutcome("error"))) == ()
    assert compiler_alone(replace(result, components={})) == ()


def test_the_page_has_the_same_lines(make: Maker) -> None:
    results = [old_backend(make), replace(make.answer(make.cell()), trace=None)]
    page, lines = page_data(results, ())
    shown = [json.loads(lines[blocks[1]])["alone"] for blocks in page["cells"]["blocks"]]
    assert shown == [list(compiler_alone(result)) for result in results]
    assert (len(shown[0]), len(shown[1])) == (5, 0)
