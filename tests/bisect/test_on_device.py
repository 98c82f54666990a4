"""What only a GPU shows is bisected by the machine code that a GPU ran: no compiler here, and no GPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_results import Maker

from harness.bisect import laboratory
from harness.bisect.check import device_commands, device_matrix
from harness.bisect.result import RESULT_FILE, folder_of, kept
from harness.bisect.run import Bisection, Request
from harness.bisect.show import remarks
from harness.matrix import load_matrix
from harness.model import CellResult, Device, Judgement, Verdict

H200 = Device("h200", "H200", "sm_90", "")
WRONG = Judgement(Verdict.WRONG_RESULT, "wrong_result: y beyond the bound", "y is wrong")
RIGHT = Judgement(Verdict.PASS, None, "y within 0 ULP")


def seen_by(make: Maker, toolkit: str, code: str, judgement: Judgement | None) -> CellResult:
    """A result of a GPU host, or what compiling alone comes to."""
    inspection = replace(make.inspection(32, 16), code_sha256=code)
    compiled = make.result(make.cell(toolkit), inspection)
    if judgement is None:
        return compiled
    cell = replace(compiled.cell, device=H200)
    return replace(compiled, cell=cell, judgement=judgement, observation={"gpu": {"name": "NVIDIA H200"}})


@pytest.fixture
def ask(make: Maker, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A laboratory whose compilers write the code that CODE says, and that has no GPU."""
    codes = {"13.3.0": "a", "13.3.1": "a", "13.4.3": "b", "13.5.0": "c"}

    def judged(cell: Any, examination: Any, components: Any, **more: Any) -> CellResult:
        return replace(seen_by(make, cell.toolchain.cuda_toolkit, codes[cell.toolchain.cuda_toolkit], None))

    def absent(supervisor: Any, cells: Any, static: Any, cubins: Any, report: Any, **more: Any) -> None:
        skipped = Judgement(Verdict.SKIPPED, None, "Skipped: no NVIDIA driver on this machine")
        report(replace(next(iter(static.values())), cell=cells[0], judgement=skipped))

    monkeypatch.setattr(laboratory, "judged", judged)
    monkeypatch.setattr(laboratory, "run_on_devices", absent)
    provisioner = SimpleNamespace(
        backend=lambda toolchain: SimpleNamespace(components={}),
        component_versions=lambda toolchain: {"tileiras": toolchain.cuda_toolkit},
        frontend=lambda version: None,
        versions=lambda over: list(codes),
    )
    lab: Any = SimpleNamespace(
        provisioner=provisioner,
        examine=lambda question: None,
        supervisor=None,
        cache=SimpleNamespace(intact=lambda sha256: None),
        disassembler=None,
    )

    def world(*recorded: CellResult) -> Any:
        return laboratory.world(lab, None, False, lambda text: None, recorded)

    return world


def test_equal_machine_code_needs_one_answer(make: Maker, ask: Any) -> None:
    world = ask(seen_by(make, "13.3.1", "a", WRONG), seen_by(make, "13.5.0", "c", RIGHT))
    on_device = replace(make.cell("13.3.0"), device=H200)
    assert world.ask(on_device, None).verdict is Verdict.WRONG_RESULT
    fixed = replace(make.cell("13.5.0"), device=H200)
    assert world.ask(fixed, None).verdict is Verdict.PASS
    unknown = replace(make.cell("13.4.3"), device=H200)
    assert world.ask(unknown, None).verdict is Verdict.SKIPPED
    assert world.ask(make.cell("13.4.3"), None).verdict is Verdict.COMPILES


def test_where_the_file_lies_and_which_bytecode_it_was_do_not_matter(make: Maker, ask: Any) -> None:
    result = seen_by(make, "13.3.1", "a", WRONG)
    case = replace(result.cell.case, kernel="/elsewhere/k.py:k", bytecode_version="13.3")
    world = ask(replace(result, cell=replace(result.cell, case=case)))
    asked = replace(result.cell, case=replace(case, kernel="k.py:k", bytecode_version=None))
    kernel, laboratory.get = laboratory.get, lambda name, base: SimpleNamespace(specialise=lambda case: _SPEC)
    try:
        assert world.ask(asked, None).verdict is Verdict.WRONG_RESULT
    finally:
        laboratory.get = kernel


_SPEC = SimpleNamespace()


def test_a_search_goes_by_what_the_gpu_host_sent(make: Maker, ask: Any, tmp_path: Path) -> None:
    bad = seen_by(make, "13.3.1", "a", WRONG)
    bisection = Bisection(
        bad.cell, bad, Request(components=False), ask(bad, seen_by(make, "13.5.0", "c", RIGHT))
    )
    result = bisection.run()
    assert result.last_bad is not None and result.last_bad.stands_for[-1] == "13.3.1"
    assert result.first_fixed is not None and result.first_fixed.stands_for == ("13.5.0",)
    assert [point.version for point in result.newer.gap] == ["13.4.3"]
    (tmp_path / "versions.toml").write_text(device_matrix(result))
    matrix = load_matrix(tmp_path / "versions.toml")
    assert [device.name for device in matrix.devices] == ["h200"]
    assert {chain.cuda_toolkit for chain in matrix.toolchains} == {"13.3.0", "13.3.1", "13.4.3", "13.5.0"}
    compile_, execute, merge = device_commands(tmp_path, Path("out"))
    assert (
        "--bundle" in compile_ and "execute" in execute and merge.startswith("python -m harness merge out ")
    )


def test_each_oracle_has_a_bisection_of_its_own(make: Maker, ask: Any, tmp_path: Path) -> None:
    bad = seen_by(make, "13.3.1", "a", WRONG)
    world = ask(bad, seen_by(make, "13.5.0", "c", RIGHT))
    for oracle in ("signature", "registers>=32"):
        result = Bisection(bad.cell, bad, Request(oracle, components=False), world).run()
        folder = folder_of(tmp_path, bad.cell.id, oracle, None)
        folder.mkdir(parents=True)
        (folder / RESULT_FILE).write_text(json.dumps(result.to_json()))
    one, other = (
        kept(tmp_path, bad.cell.id, text) for text in (f"signature={WRONG.signature}", "registers>=32")
    )
    assert one is not None and other is not None
    assert one[0].oracle != other[0].oracle
    assert kept(tmp_path, bad.cell.id, "registers>=33") is None


def test_what_was_stopped_says_so_and_is_kept_by_no_repro(make: Maker, ask: Any, tmp_path: Path) -> None:
    bad = seen_by(make, "13.3.1", "a", WRONG)
    bisection = Bisection(bad.cell, bad, Request(components=False), ask(bad))
    stopped = bisection.result()
    assert not stopped.complete and "stopped before the end" in remarks(stopped)[0]
    folder = folder_of(tmp_path, bad.cell.id, "signature", None)
    folder.mkdir(parents=True)
    (folder / RESULT_FILE).write_text(json.dumps(stopped.to_json()))
    assert kept(tmp_path, bad.cell.id, f"signature={WRONG.signature}") is None
    assert bisection.run().complete
