"""`harness gate`, with every exit code: on recorded results, and on the real compilers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import Maker
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.model import CellResult, Device, Judgement, Toolchain, Verdict
from harness.report.jsonl import write_results
from harness.store import Store

MATRIX = """
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = ["13.3.1", "13.4.3"]
[target]
arch = "sm_90"
[[case]]
kernel = "rmsnorm.static_persistent"
shape = [16384, 512]
dtype = "bfloat16"
"""


def gate(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gate", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX)
    return path


def recorded(out: Path, results: list[CellResult]) -> Path:
    with Store.open(out) as store:
        run = store.start_run("m", [result.cell for result in results])
        for result in results:
            store.record(run, result)
        store.finish_run(run)
    return out


def on_driver(make: Maker, name: str, verdicts: dict[int, Verdict]) -> list[CellResult]:
    """What one host's driver made of the same cells."""
    device = Device(name, "H200", "sm_90")
    return [
        CellResult(
            make.cell("13.4.3", shape=(rows, 64), device=device),
            Judgement(verdict, f"{verdict}/driver/x" if verdict.is_finding else None, f"says {verdict}"),
        )
        for rows, verdict in verdicts.items()
    ]


V = Verdict


@pytest.mark.parametrize(
    ("before", "after", "code", "decision"),
    [
        ({1: V.PASS, 2: V.HANG}, {1: V.PASS, 2: V.PASS}, 0, "go"),
        ({1: V.PASS, 2: V.PASS}, {1: V.PASS, 2: V.HANG}, 1, "no-go"),
        ({1: V.PASS, 2: V.PASS}, {1: V.PASS, 2: V.TAINTED}, 1, "no-go"),
        ({1: V.PASS, 2: V.PASS}, {1: V.PASS, 2: V.INFRA_ERROR}, 3, "cannot tell"),
        ({1: V.SKIPPED}, {1: V.SKIPPED}, 3, "cannot tell"),
    ],
)
def test_two_drivers(
    tmp_path: Path,
    make: Maker,
    matrix: Path,
    before: dict[int, Verdict],
    after: dict[int, Verdict],
    code: int,
    decision: str,
) -> None:
    old = recorded(tmp_path / "old", on_driver(make, "h200-580", before))
    new = recorded(tmp_path / "new", on_driver(make, "h200-590", after))
    out = tmp_path / "out"
    done = gate(matrix, "--results-baseline", old, "--results-candidate", new, "--out", out)
    assert (done.exit_code, done.stdout.partition(":")[0]) == (code, decision)
    told = json.loads((out / "gate.json").read_text())
    assert (told["decision"], told["exit_code"]) == (decision, code)
    assert {path.name for path in out.iterdir()} >= {
        *("gate.md", "gate.json", "junit.xml", "report.html", "results.jsonl", "harness.sqlite")
    }
    for reason in told["reasons"]:
        if reason["command"]:
            assert reason["command"].partition(" --out ")[2] in map(str, (old, new, out))


def test_json_is_all_that_stdout_gets(tmp_path: Path, make: Maker, matrix: Path) -> None:
    old = recorded(tmp_path / "old", on_driver(make, "a", {1: V.PASS}))
    done = gate(
        *(matrix, "--results-baseline", old, "--results-candidate", old),
        *("--json", "--out", tmp_path / "out"),
    )
    assert json.loads(done.stdout)["decision"] == "go"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to compare: name toolchains with --baseline and --candidate, or directories with"),
        (["--baseline", "13.3.1"], "name both --baseline and --candidate, or neither and two directories"),
        (["--results-baseline", "{old}"], "nothing to compare"),
        (
            ["--results-baseline", "{old}", "--results-candidate", "{empty}"],
            "holds no results; name a directory that --out wrote, or one with *.jsonl files",
        ),
        (
            ["--results-baseline", "{two}", "--results-candidate", "{old}"],
            "the directories share no toolchain (a and b against tile1.5.0-ctk13.4.3); name one of each",
        ),
    ],
)
def test_a_wrong_request(
    tmp_path: Path, make: Maker, matrix: Path, arguments: list[str], sentence: str
) -> None:
    old = on_driver(make, "a", {1: V.PASS})
    places = {"old": recorded(tmp_path / "old", old), "empty": tmp_path / "empty"}
    others = [
        replace(old[0], cell=replace(old[0].cell, toolchain=Toolchain(name, "1", "2"))) for name in "ab"
    ]
    places["two"] = recorded(tmp_path / "two", others)
    places["empty"].mkdir()
    done = gate(matrix, *(argument.format(**places) for argument in arguments), "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert sentence in done.stderr


# --- the real compilers -----------------------------------------------------------------------

SHIPPED = Path(__file__).parents[2] / "matrix.toml"


@pytest.mark.toolchain
def test_the_upgrade_of_the_shipped_matrix_is_a_go_and_mends_the_deadlock(tmp_path: Path) -> None:
    done = gate(SHIPPED, "--baseline", "13.3.1", "--candidate", "13.4.3", "--out", tmp_path)
    assert done.exit_code == 0
    assert done.stdout.startswith("go: 13.3.1 → 13.4.3: ")
    reasons = json.loads((tmp_path / "gate.json").read_text())["reasons"]
    (fixed,) = [reason for reason in reasons if reason["kind"] == "fixed"]
    assert fixed["signature"].startswith("predicted_deadlock/tileiras/register pool")
    assert "occupancy=16, allow_tma=false" in fixed["where"]
    assert {"registers", "compile_seconds"} <= {reason["kind"] for reason in reasons}


@pytest.mark.toolchain
def test_the_way_back_is_a_no_go_with_the_deadlock_first(tmp_path: Path) -> None:
    done = gate(SHIPPED, "--baseline", "13.4.3", "--candidate", "13.3.1", "--out", tmp_path)
    assert done.exit_code == 1
    assert done.stdout.startswith("no-go: 13.4.3 → 13.3.1: ")
    first = json.loads((tmp_path / "gate.json").read_text())["reasons"][0]
    assert (first["kind"], first["weight"]) == ("regressed", "fails")
    assert first["signature"].startswith("predicted_deadlock/tileiras/register pool")
    story = CliRunner().invoke(app, first["command"].split()[3:])
    assert story.exit_code == 0
    assert "TRY_ALLOC" in story.stdout


@pytest.mark.toolchain
def test_recorded_device_time_names_the_slowdown(tmp_path: Path, make: Maker) -> None:
    """What a GPU host measured joins what is compiled here: 35.9 to 44.3 µs, as on an H200."""
    device = Device("h200", "H200", "sm_90", ">=590")  # another range of drivers than the matrix asks for

    def ran(toolkit: str, median_us: float) -> CellResult:
        made = make.answer(make.cell(toolkit, occupancy=None))
        return replace(
            made,
            cell=replace(made.cell, device=device),
            judgement=Judgement(Verdict.PASS, None, "y within 1 ULP (bound 2)"),
            compile=replace(made.compile, cubin_sha256=toolkit),
            observation={"timing": {"median_us": median_us, "spread_us": 2.0}},
        )

    host = tmp_path / "h200"
    write_results([ran("13.3.1", 35.9), ran("13.4.3", 44.3)], host / "results.jsonl")
    done = gate(
        *(SHIPPED, "--baseline", "tile1.5.0-ctk13.3.1", "--candidate", "tile1.5.0-ctk13.4.3"),
        *("--results-baseline", host, "--results-candidate", host, "--out", tmp_path / "out"),
    )
    assert done.exit_code == 0
    reasons = json.loads((tmp_path / "out" / "gate.json").read_text())["reasons"]
    (slower,) = [reason for reason in reasons if reason["kind"] == "device_time"]
    assert slower["details"] == ["35.9 → 44.3 (×1.23): sm_90 occupancy=default allow_tma=false device=h200"]
