"""The gate's answer on a terminal, in Markdown and for CI servers."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from lxml import etree
from made_results import Maker
from rich.console import Console

from harness.gate import Decision, compare, decide
from harness.gate.compare import Side, question
from harness.matrix import GateRules
from harness.model import CellResult, Judgement, Verdict
from harness.report.gate_console import render_decision
from harness.report.gate_junit import write_gate_junit
from harness.report.gate_markdown import code, escape, markdown
from harness.report.github import append_summary, workflow_commands

SCHEMAS = Path(__file__).parent / "schemas"


def judged(before: list[CellResult], after: list[CellResult]) -> Decision:
    sides = [
        Side({question(r.cell, r.cell.toolchain.cuda_tile): r for r in side}, {}) for side in (before, after)
    ]
    pairs = compare(*sides, GateRules())
    return decide(pairs, GateRules(), "13.4.3", "13.3.1", explain=lambda r: f"explain {r.cell.id}")


@pytest.fixture(scope="module")
def no_go(lab_run: list[CellResult]) -> Decision:
    by_toolkit = [
        [r for r in lab_run if r.cell.toolchain.cuda_toolkit == toolkit] for toolkit in ("13.4.3", "13.3.1")
    ]
    return judged(*by_toolkit)


def shown(decision: Decision, *, quiet: bool = False, width: int = 100, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    render_decision(decision, [Path("gate.md")], Console(file=file, width=width), quiet=quiet)
    file.flush()
    return raw.getvalue().decode(encoding)


def test_the_first_line_is_the_decision_however_narrow(no_go: Decision) -> None:
    for width in (40, 200):
        first = shown(no_go, width=width).splitlines()[0]
        assert first == f"no-go: 13.4.3 → 13.3.1: {no_go.headline}"


def test_then_the_reasons_with_their_commands(no_go: Decision) -> None:
    lines = shown(no_go).splitlines()
    assert lines[2] == "✖ regressed (fails)"
    assert f"  more      explain {no_go.reasons[0].example}" in [line.rstrip() for line in lines]


def test_quiet_leaves_out_what_has_no_weight(no_go: Decision) -> None:
    assert "noted" in shown(no_go)
    assert "noted" not in shown(no_go, quiet=True)
    assert "regressed" in shown(no_go, quiet=True)


def test_a_terminal_without_unicode(no_go: Decision) -> None:
    assert shown(no_go, encoding="ascii").startswith("no-go: 13.4.3 -> 13.3.1: ")


def test_markdown_starts_with_the_decision(no_go: Decision) -> None:
    text = markdown(no_go)
    assert text.startswith("# ❌ no-go: 13.4.3 → 13.3.1\n")
    assert text.index("## Against it") < text.index("**regressed**") < text.index("## Worth knowing")
    assert f"`explain {no_go.reasons[0].example}`" in text


@given(st.text(max_size=80))
def test_no_text_leaves_its_place_in_markdown(text: str) -> None:
    span = code(text)
    fence = re.match("`+", span)[0]
    assert span.endswith(fence)
    assert fence not in re.findall("`+", span[len(fence) : -len(fence)])
    assert "\n" not in span + escape(text)
    assert not re.search(r"(?<!\\)[<\[|@#!*_`]", escape(text))


def test_hostile_words(tmp_path: Path, make: Maker) -> None:
    said = "x|y\n# go\n<img src=x onerror=alert(1)> [a](http://b) @team www.evil.example \x1b[31m\x00"
    judgement = Judgement(Verdict.COMPILER_CRASH, said, said)
    before = [make.answer(make.cell("13.4.3"))]
    after = [CellResult(make.cell("13.3.1"), judgement)]
    decision = judged(before, after)
    text = markdown(decision)
    assert "<img" not in text and "\n# go" not in text and "(http://b)" not in text
    assert "\x1b" not in shown(decision) and "\x00" not in text
    write_gate_junit(decision, tmp_path / "junit.xml")
    check(tmp_path / "junit.xml")


def test_a_huge_summary_is_cut_at_a_line(no_go: Decision) -> None:
    reason = replace(no_go.reasons[0], details=("é" * 100_000,) * 15)
    text = markdown(replace(no_go, reasons=(reason,)))
    assert len(text.encode()) < 1 << 20
    assert text.endswith("Cut here; gate.json has the rest.\n")


def check(path: Path) -> None:
    document = etree.parse(path)
    etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd")).assertValid(document)
    surefire = etree.XMLSchema(etree.parse(SCHEMAS / "surefire-3.0.xsd"))
    for suite in document.getroot():
        surefire.assertValid(etree.ElementTree(etree.fromstring(etree.tostring(suite))))


def test_junit_has_a_case_for_each_pair(tmp_path: Path, no_go: Decision) -> None:
    write_gate_junit(no_go, tmp_path / "junit.xml")
    check(tmp_path / "junit.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert suite.tests == len(no_go.pairs)
    assert (suite.failures, suite.errors) == (6, 0)
    assert {item.name: item.value for item in suite.properties()}["decision"] == "no-go"
    failed = [case for case in suite if any(isinstance(result, Failure) for result in case.result)]
    assert "predicted_deadlock" in failed[0].result[0].text
    assert "explain: explain " in failed[0].result[0].text


def test_junit_tells_the_undecided_from_the_unknown(tmp_path: Path, make: Maker) -> None:
    good = [make.answer(make.cell("13.4.3", shape=(rows, 64), occupancy=2)) for rows in (1, 2, 3)]
    machine, skipped = (Judgement(v, None, str(v)) for v in (Verdict.INFRA_ERROR, Verdict.SKIPPED))
    cells = [make.cell("13.3.1", shape=(rows, 64), occupancy=2) for rows in (1, 2, 3)]
    after = [make.answer(cells[0]), CellResult(cells[1], machine), CellResult(cells[2], skipped)]
    before = [*good[:2], replace(good[2], judgement=skipped)]
    write_gate_junit(judged(before, after), tmp_path / "junit.xml")
    check(tmp_path / "junit.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    kinds = [type(case.result[0]) if case.result else None for case in suite]
    assert kinds == [None, Error, Skipped]


def test_github_is_told_what_fails_and_what_warns(no_go: Decision) -> None:
    lines = list(workflow_commands(no_go))
    assert lines[0].startswith("::error title=no-go%3A regressed (13.4.3 → 13.3.1)::6 cells good before: ")
    assert {line.partition(" ")[0] for line in lines} == {"::error", "::warning"}
    assert f"%0Aexplain {no_go.reasons[0].example}" in lines[0]


def test_no_text_makes_a_workflow_command_of_its_own(make: Maker) -> None:
    said = "x\n::set-env name=PATH::/evil\r\n100%,a:b"
    before = [make.answer(make.cell("13.4.3"))]
    after = [CellResult(make.cell("13.3.1"), Judgement(Verdict.HANG, said, said))]
    decision = replace(judged(before, after), candidate=said)
    for line in workflow_commands(decision):
        assert "\n" not in line and "\r" not in line
        title = line.partition("title=")[2].partition("::")[0]
        assert "," not in title and ":" not in title


def test_github_shows_ten_of_a_kind(no_go: Decision) -> None:
    many = replace(no_go, reasons=no_go.reasons[:1] * 30)
    assert len(list(workflow_commands(many))) == 10


def test_the_summary_is_added_to_the_jobs(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    for text in ("one\n", "two\n"):
        append_summary(text, {"GITHUB_STEP_SUMMARY": str(path)})
    assert path.read_text() == "one\ntwo\n"
    append_summary("nowhere", {})
