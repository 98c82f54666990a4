"""junit.xml: it loads in junitparser and satisfies the schemas CI servers check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped, xunit2
from lxml import etree
from made_results import Maker, Unreadable

from harness.judge import judge_compile, judge_not_run
from harness.model import CellResult, Judgement, Verdict
from harness.report import junit
from harness.report.junit import write_junit, xml_text

SCHEMAS = Path(__file__).parent / "schemas"


@pytest.fixture(scope="module")
def jenkins() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))


@pytest.fixture(scope="module")
def surefire() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(SCHEMAS / "surefire-3.0.xsd"))


def check(path: Path, jenkins: etree.XMLSchema, surefire: etree.XMLSchema) -> etree._ElementTree:
    """The whole file against Jenkins' schema, every suite alone against Surefire's."""
    document = etree.parse(path)
    jenkins.assertValid(document)
    for suite in document.getroot():
        surefire.assertValid(etree.ElementTree(etree.fromstring(etree.tostring(suite))))
    return document


def every_verdict(make: Maker) -> list[CellResult]:
    plain = make.answer(make.cell())
    return [
        CellResult(
            make.cell(shape=(rows, 512)),
            Judgement(verdict, None if verdict.is_good else f"{verdict}/x/y", f"says {verdict}"),
            components=plain.components,
        )
        for rows, verdict in enumerate(Verdict, 1)
    ]


def test_a_whole_run_is_valid(
    tmp_path: Path, lab_run: list[CellResult], jenkins: etree.XMLSchema, surefire: etree.XMLSchema
) -> None:
    path = tmp_path / "junit.xml"
    write_junit(lab_run, path)
    check(path, jenkins, surefire)
    loaded = JUnitXml.fromfile(str(path))
    suites = list(loaded)
    assert loaded.tests == len(lab_run) == sum(suite.tests for suite in suites)
    assert (loaded.failures, loaded.errors) == (10, 0)
    assert sum(suite.skipped for suite in suites) == 17
    assert suites[0].name == "tile1.5.0-ctk13.2.2 sm_90"
    assert {suite.name for suite in suites} >= {"tile1.5.0-ctk13.3.1 sm_90 on h200"}


def test_every_verdict_is_valid_and_none_but_the_good_look_green(
    tmp_path: Path, make: Maker, jenkins: etree.XMLSchema, surefire: etree.XMLSchema
) -> None:
    path = tmp_path / "junit.xml"
    results = every_verdict(make)
    write_junit(results, path)
    check(path, jenkins, surefire)
    (suite,) = JUnitXml.fromfile(str(path))
    kinds = {}
    for result, case in zip(results, suite, strict=True):
        kinds[result.verdict] = type(case.result[0]) if case.result else None
    assert {v for v, kind in kinds.items() if kind is None} == {Verdict.PASS, Verdict.COMPILES}
    assert {v for v, kind in kinds.items() if kind is Skipped} == {Verdict.SKIPPED, Verdict.UNSUPPORTED}
    assert {v for v, kind in kinds.items() if kind is Error} == {
        Verdict.INFRA_ERROR,
        Verdict.TOOLCHAIN_BROKEN,
        Verdict.NOT_RUN,
        Verdict.TAINTED,
    }
    assert {v for v, kind in kinds.items() if kind is Failure} == {v for v in Verdict if v.is_finding}


def test_a_failure_tells_its_story(tmp_path: Path, make: Maker) -> None:
    result = make.answer(make.cell())
    write_junit([result], tmp_path / "junit.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    (case,) = suite
    (failure,) = case.result
    assert case.classname == "rmsnorm.static_persistent"
    assert case.name.startswith("16384×512 bfloat16 occupancy=16 ")
    assert case.name.endswith(f"[{result.cell.id}]")
    assert (failure.type, failure.message) == ("predicted_deadlock", result.judgement.summary)
    assert f"signature: {result.judgement.signature}" in failure.text
    assert "proof: No warp gives registers back." in failure.text
    assert f"python -m harness explain {result.cell.id}" in failure.text
    assert case.time == pytest.approx(0.58)


def test_properties_hold_versions_and_measurements(tmp_path: Path, make: Maker) -> None:
    result = make.answer(make.cell(occupancy=None))
    write_junit([result], tmp_path / "junit.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    properties = {item.name: item.value for item in suite.properties()}
    cell = result.cell.id
    assert properties["cuda_tile"] == "1.5.0"
    assert properties["tileiras"] == "13.3.36"
    assert properties["arch"] == "sm_90"
    assert properties[f"{cell}.registers"] == "255"
    assert properties[f"{cell}.seconds.compile"] == "8.400"
    assert properties[f"{cell}.bytecode_sha256"] == "b" * 64
    assert properties[f"{cell}.cubin_sha256"] == "c" * 64


def test_advice_goes_to_the_output(tmp_path: Path, make: Maker) -> None:
    write_junit([make.answer(make.cell(allow_tma=True))], tmp_path / "junit.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    (case,) = suite
    assert case.result == []
    assert "advice: occupancy_missed: asked for 16 CTAs per SM, 255 registers allow 1" in case.system_out


@given(st.text(max_size=60))
def test_no_character_breaks_the_file(make: Maker, text: str) -> None:
    cleaned = xml_text(text)
    etree.fromstring(f"<a>{cleaned.replace('&', '&amp;').replace('<', '&lt;')}</a>")


def test_hostile_compiler_output(
    tmp_path: Path, make: Maker, jenkins: etree.XMLSchema, surefire: etree.XMLSchema
) -> None:
    said = "error: \x00\x1b[31m]]></failure><script>&amp;\ud800\ufffe 'x'"
    cell = make.cell(kernel="k.py:<b>\x07")
    judged = judge_compile(cell, make.trace(), make.failed(5, said), None)
    results = [CellResult(cell, judged), CellResult(cell, judge_not_run(cell, said))]
    path = tmp_path / "junit.xml"
    write_junit(results, path)
    document = check(path, jenkins, surefire)
    assert document.find(".//script") is None
    assert "]]></failure>" in document.find(".//failure").get("message")


def test_an_odd_result_costs_only_its_own_case(tmp_path: Path, make: Maker, jenkins: etree.XMLSchema) -> None:
    odd = make.result()
    odd = replace(odd, judgement=replace(odd.judgement, summary=Unreadable()))
    write_junit([odd, make.answer(make.cell(occupancy=2))], tmp_path / "junit.xml")
    document = etree.parse(tmp_path / "junit.xml")
    assert [case.findtext("error") is not None for case in document.iter("testcase")] == [True, False]


def test_a_kernel_without_a_shape_has_a_plain_name(tmp_path: Path, make: Maker) -> None:
    write_junit([make.result(make.cell(shape=()))], tmp_path / "junit.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    (case,) = suite
    assert case.name.startswith("bfloat16 occupancy=")


def test_long_times_are_valid(
    tmp_path: Path, make: Maker, jenkins: etree.XMLSchema, surefire: etree.XMLSchema
) -> None:
    result = make.answer(make.cell(occupancy=None))
    results = [replace(result, seconds={"compile": amount}) for amount in (123456.78901, 1e-9, 0.1 + 0.2)]
    write_junit(results, tmp_path / "junit.xml")
    check(tmp_path / "junit.xml", jenkins, surefire)


def test_no_results_is_a_valid_file(tmp_path: Path, jenkins: etree.XMLSchema) -> None:
    write_junit([], tmp_path / "junit.xml")
    jenkins.assertValid(etree.parse(tmp_path / "junit.xml"))


def reran(make: Maker, verdict: Verdict, evidence: dict[str, object], attempts: int) -> CellResult:
    cell = make.cell(device=None)
    judgement = Judgement(verdict, f"{verdict}/x", f"says {verdict}", evidence=evidence)
    return CellResult(cell, judgement, observation={"attempts": [{}] * attempts})


def test_a_confirmed_failure_has_a_rerun_for_every_further_run(
    tmp_path: Path, make: Maker, jenkins: etree.XMLSchema, surefire: etree.XMLSchema
) -> None:
    path = tmp_path / "junit.xml"
    write_junit([reran(make, Verdict.HANG, {"confirmed": True}, 2)], path)
    check(path, jenkins, surefire)
    (suite,) = xunit2.JUnitXml.fromfile(str(path))
    (case,) = suite
    assert [failure.type for failure in case.result] == ["hang"]
    assert [rerun.type for rerun in case.rerun_failures()] == ["hang", "hang"]
    assert case.rerun_failures()[1].message == "run 3, in a fresh process: says hang"
    assert case.is_rerun and not case.is_flaky


def test_a_flaky_cell_fails_and_tells_every_bad_run(
    tmp_path: Path, make: Maker, jenkins: etree.XMLSchema, surefire: etree.XMLSchema
) -> None:
    path = tmp_path / "junit.xml"
    runs = [
        Judgement(verdict, None, f"said {verdict} <&\x00").to_json()
        for verdict in (Verdict.HANG, Verdict.PASS, Verdict.WRONG_RESULT)
    ]
    write_junit([reran(make, Verdict.FLAKY, {"verdicts": runs}, 2)], path)
    check(path, jenkins, surefire)
    (suite,) = xunit2.JUnitXml.fromfile(str(path))
    (case,) = suite
    assert suite.failures == 1
    assert [failure.type for failure in case.result] == ["flaky"]
    assert [(flake.type, flake.message) for flake in case.flaky_failures()] == [
        ("hang", "run 1 of 3: said hang <&\\x00"),
        ("wrong_result", "run 3 of 3: said wrong_result <&\\x00"),
    ]
    assert case.flaky_failures()[0].stack_trace == "run 1 of 3: said hang <&\\x00"


def test_evidence_is_cut_a_case_and_a_file(
    tmp_path: Path, make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [
        CellResult(
            make.cell(shape=(rows, 64)), Judgement(Verdict.HANG, "x", "x", evidence={"raw": "y" * 9000})
        )
        for rows in range(1, 4)
    ]
    monkeypatch.setattr(junit, "_ALL_EVIDENCE", 10_000)
    write_junit(results, tmp_path / "junit.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    kept = [case.system_out.count("y") for case in suite]
    assert kept[0] <= 6000 and kept[1] <= 4000 and kept[2] <= 1
    assert all("in all, in results.jsonl" in case.system_out for case in suite)


def test_names_are_unique(tmp_path: Path, lab_run: list[CellResult]) -> None:
    """GitLab ignores all but the first of equal names."""
    write_junit(lab_run, tmp_path / "junit.xml")
    names = [case.name for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml")) for case in suite]
    assert len(names) == len(set(names)) == len(lab_run)


def test_names_tell_apart_what_differs_in_its_parameters(make: Maker) -> None:
    document = junit.build([make.result(make.own_cell(rank)) for rank in (1, 2)])
    names = [case.name for suite in document for case in suite]
    assert " x.rank=1 [" in names[0] and " x.rank=2 [" in names[1]
