"""`clean` deletes what the harness made, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.commands.clean import clean_store
from harness.lab import Lab
from harness.toolchain import StoreError, open_store
from harness.toolchain.marker import MARKER, SHELVES


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with something on every shelf, and a file of somebody else's."""
    root = open_store(tmp_path / "store").root
    for name in SHELVES:
        (root / name).mkdir(exist_ok=True)
        (root / name / "made").write_text("")
    (root / "precious.txt").write_text("precious")
    (root / "papers").mkdir()
    return root


def names(root: Path) -> set[str]:
    return {entry.name for entry in root.iterdir()}


def test_remembered_compiles_go_and_compilers_stay(store: Path) -> None:
    before = names(store)
    assert clean_store(store, everything=False) == 0
    assert names(store) == before - {"cache"}


def test_all_takes_every_shelf_and_no_more(store: Path) -> None:
    assert clean_store(store, everything=True) == 0
    assert names(store) == {MARKER, "precious.txt", "papers"}
    assert clean_store(store, everything=True) == 0, "it is still a store"
    with Lab(store):
        pass


@pytest.mark.parametrize("everything", [False, True])
def test_what_is_no_store_is_left_alone(tmp_path: Path, everything: bool) -> None:
    for name in ("cache", "components"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious.txt").write_text("precious")
    with pytest.raises(StoreError, match=f"is no store of this harness, as it has no {MARKER}"):
        clean_store(tmp_path, everything)
    assert len(list(tmp_path.rglob("precious.txt"))) == 2


def test_a_mistyped_path_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store at .*mistyped; nothing was deleted"):
        clean_store(tmp_path / "mistyped", everything=False)
    assert not (tmp_path / "mistyped").exists()


def test_a_run_that_uses_the_store_is_not_broken(store: Path) -> None:
    with Lab(store), pytest.raises(StoreError, match="a run is using the store"):
        clean_store(store, everything=True)
    assert set(SHELVES) <= names(store)


def test_links_are_not_followed(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = tmp_path / "elsewhere"
    (store / "components" / "made").unlink()
    os.rename(store / "components", elsewhere)
    (elsewhere / "precious.txt").write_text("")
    (store / "components").symlink_to(elsewhere)
    clean_store(store, everything=True)
    assert (elsewhere / "precious.txt").exists()
    assert "left alone, being links" in capsys.readouterr().out
