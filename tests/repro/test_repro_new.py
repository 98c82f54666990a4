from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_repros import BAD, GOOD, made
from made_results import Maker

from harness.lab import Lab
from harness.model import CellResult
from harness.oracle import parse_oracle
from harness.repro.identity import identity
from harness.repro.new import Duplicate, make
from harness.repro.places import of_interest, status_of
from harness.repro.request import Request
from harness.repro.spec import SPEC_FILE, Place, ReproError, Status
from harness.repro.spec_text import write_spec

NEWER = replace(GOOD, name="tile1.5.0-ctk13.5.0", cuda_toolkit="13.5.0")


@pytest.fixture
def deadlock(make: Maker) -> CellResult:
    return make.result(inspection=make.deadlocked())


def request(result: CellResult, repros: Path, name: str = "again", **changes: object) -> Request:
    oracle = parse_oracle("", result)
    plain = Request(result, oracle, name, repros, (), ())
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_known_signature_points_to_its_repro(tmp_path: Path, deadlock: CellResult) -> None:
    repro = made(tmp_path / "deadlock", identity=deadlock.judgement.signature)
    repro.folder.mkdir()
    (repro.folder / SPEC_FILE).write_text(write_spec(repro))
    known = pytest.raises(Duplicate, match="deadlock is about this finding already")
    with Lab(tmp_path / "store", offline=True) as lab, known:
        make(lab, request(deadlock, tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deadlock", "store"]


@pytest.mark.parametrize("name", ["", "../evil", "Deadlock", "a/b", ".hidden", "x" * 80])
def test_a_name_is_a_plain_folder(tmp_path: Path, deadlock: CellResult, name: str) -> None:
    with (
        Lab(tmp_path / "store", offline=True) as lab,
        pytest.raises(ReproError, match="is no name for a repro"),
    ):
        make(lab, request(deadlock, tmp_path, name))


def test_a_folder_is_not_overwritten(tmp_path: Path, deadlock: CellResult) -> None:
    (tmp_path / "again").mkdir()
    with Lab(tmp_path / "store", offline=True) as lab, pytest.raises(ReproError, match="exists already"):
        make(lab, request(deadlock, tmp_path))


def test_fixed_means_that_the_newest_is_good_on_every_target() -> None:
    bad = Place(True, BAD, (), ("sm_90", "sm_120"))
    assert status_of([bad, Place(False, GOOD, (), ("sm_90", "sm_120"))]) is Status.FIXED
    assert status_of([bad, Place(False, GOOD, (), ("sm_90",))]) is Status.OPEN
    assert (
        status_of([bad, Place(False, GOOD, (), ("sm_90",)), Place(True, NEWER, (), ("sm_90",))])
        is Status.OPEN
    )
    assert status_of([bad]) is Status.OPEN


def test_what_was_never_bad_is_of_no_interest() -> None:
    bad = Place(True, NEWER, (), ("sm_90",))
    good = Place(False, GOOD, (), ("sm_90", "sm_100"))
    own = Place(True, BAD, (), ("sm_90",))
    assert of_interest([good, bad, own], BAD) == (own, bad, replace(good, targets=("sm_90",)))


def test_a_signature_that_says_nothing_is_told_with_the_kernel(make: Maker) -> None:
    mute = make.result(compile=make.failed(None, signal=11))
    assert (
        identity(mute, parse_oracle("", mute))
        == "compiler_crash/tileiras/SIGSEGV of rmsnorm.static_persistent"
    )
    told = make.result(inspection=make.deadlocked())
    assert identity(told, parse_oracle("", told)) == told.judgement.signature
