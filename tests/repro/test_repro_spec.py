from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_repros import BAD, IDENTITY, made
from made_results import Maker

from harness.model import Verdict
from harness.oracle import Answer, Compared, HasAdvice, SameSignature, SameVerdict
from harness.repro.identity import duplicate, identity, oracle_of
from harness.repro.spec import SPEC_FILE, Kind, Place, Repro, ReproError, load, load_all
from harness.repro.spec_text import write_spec


def written(repro: Repro) -> Repro:
    repro.folder.mkdir(exist_ok=True, parents=True)
    (repro.folder / SPEC_FILE).write_text(write_spec(repro))
    return repro


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    repro = written(made(tmp_path / "deadlock"))
    assert load(repro.folder) == repro


def test_a_place_keeps_its_own_targets_and_pins(tmp_path: Path) -> None:
    pinned = replace(BAD, name="tile1.5.0-ctk13.3.1+ptxas13.4.92", ptxas="13.4.92")
    places = (Place(True, BAD, (), ("sm_90",)), Place(True, pinned, (), ("sm_90", "sm_100")))
    repro = written(made(tmp_path / "deadlock", places=places))
    assert load(repro.folder).places == places


def test_a_script_names_packages(tmp_path: Path) -> None:
    place = Place(True, None, ("cuda-tile==1.7.0", "cuda-toolkit[nvcc,nvvm]==13.1.1"), ())
    repro = written(made(tmp_path / "script", kind=Kind.SCRIPT, case=None, places=(place,)))
    assert load(repro.folder) == repro


@given(text=st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=60))
def test_any_words_can_be_kept(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("words")
    assert load(written(made(folder, title=text, summary=text)).folder).title == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('kind = "cell"', 'kind = "cells"'), 'repro.toml:1: key "kind": expected "cell" or "script"'),
        (("deadline = 60", "deadline = 0"), 'key "deadline"'),
        (('oracle = "signature"', 'orakle = "signature"'), 'unknown key; did you mean "oracle"?'),
        (("[[bad]]", "[[god]]"), 'unknown key; did you mean "good"?'),
        (('cuda_tile = "1.5.0"', ""), "needs cuda_tile and cuda_toolkit"),
        (('link = ""', 'link = "file:///etc/passwd"'), "https://"),
        (('targets = ["sm_90", "sm_120"]', 'targets = ["sm90"]'), 'did you mean "sm_90"?'),
        (("title =", "title"), "not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_with_place_and_remedy(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    repro = written(made(tmp_path / "deadlock"))
    path = repro.folder / SPEC_FILE
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(change[0], change[1], 1))
    with pytest.raises(ReproError) as caught:
        load(repro.folder)
    assert message in str(caught.value)


def test_a_repro_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    written(made(tmp_path / "deadlock"))
    with pytest.raises(ReproError, match=r'there is no repro "deadlok" in .*; there are deadlock'):
        load_all(tmp_path, ("deadlok",))
    assert [repro.name for repro in load_all(tmp_path)] == ["deadlock"]


def test_one_finding_has_one_repro(tmp_path: Path) -> None:
    repro = written(made(tmp_path / "deadlock"))
    assert duplicate(tmp_path, IDENTITY) == repro
    assert duplicate(tmp_path, "another") is None
    assert duplicate(tmp_path / "none", IDENTITY) is None


def test_the_identity_of_a_finding_is_its_signature(make: Maker) -> None:
    result = make.result(inspection=make.deadlocked())
    assert result.judgement.signature is not None
    own = SameSignature(result.judgement.signature)
    assert identity(result, own) == result.judgement.signature
    assert identity(result, SameVerdict(Verdict.PREDICTED_DEADLOCK)) == result.judgement.signature


def test_the_identity_of_a_remark_is_its_wording_without_numbers(make: Maker) -> None:
    one = make.result(inspection=make.inspection(255, 1))
    other = make.result(make.cell(occupancy=8), make.inspection(168, 2))
    oracle = HasAdvice("occupancy_missed")
    assert identity(one, oracle) == identity(other, oracle)
    assert identity(one, oracle).startswith("occupancy_missed/asked for <n>")
    known = identity(one, Compared("compile_seconds", ">", 4.0))
    assert known == "compile_seconds/compile_seconds><n> of rmsnorm.static_persistent 16384x512 bfloat16"


def test_the_oracle_of_a_repro_needs_no_original(tmp_path: Path, make: Maker) -> None:
    result = make.result(inspection=make.deadlocked())
    signature = result.judgement.signature
    assert oracle_of(made(tmp_path, identity=signature)).answer(result) is Answer.BAD
    assert oracle_of(made(tmp_path, oracle="advice=spills")) == HasAdvice("spills")
    assert oracle_of(made(tmp_path, oracle="verdict=compiler_crash")) == SameVerdict(Verdict.COMPILER_CRASH)
