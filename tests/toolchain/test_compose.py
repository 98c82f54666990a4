from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.process import Supervisor
from harness.toolchain.compose import compose, implied_bytecode_versions, parse_bytecode_versions
from harness.toolchain.install import Installed, KeyFile, file_digest
from harness.toolchain.store import Store

LISTS = "#!/bin/sh\necho 13.2\necho 13.1\necho noise\n"
CANNOT_LIST = "#!/bin/sh\necho \"Unknown command line argument '--list-versions'\" >&2\nexit 1\n"


def component(root: Path, version: str, files: dict[str, tuple[str, str]]) -> Installed:
    """`files`: role → (path, content)."""
    keys = {}
    for role, (place, content) in files.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
        keys[role] = KeyFile(place, path.stat().st_size, file_digest(path))
    return Installed(str(root), root.name, version, keys)


def tileiras(root: Path, version: str = "13.2.51", script: str = LISTS) -> Installed:
    return component(root / "t", version, {"tileiras": ("bin/tileiras", script)})


def nvvm(root: Path, version: str = "13.2.51", content: str = "nvvm") -> Installed:
    files = {
        "libnvvm": ("lib/libnvvm.so.4", content),
        "libdevice": ("nvvm/libdevice/libdevice.10.bc", "bc"),
    }
    return component(root / "n", version, files)


def ptxas(root: Path, version: str = "13.2.51") -> Installed:
    return component(root / "p", version, {"ptxas": ("bin/ptxas", "ptxas")})


def test_the_tree_holds_all_that_tileiras_looks_for(
    store: Store, supervisor: Supervisor, tmp_path: Path
) -> None:
    parts = tileiras(tmp_path), nvvm(tmp_path), ptxas(tmp_path)
    backend = compose(store, supervisor, *parts)
    tree = Path(backend.root)
    assert sorted(p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file()) == [
        "bin/ptxas",
        "bin/tileiras",
        "facts.json",
        "lib/libnvvm.so.4",
        "nvvm/lib64/libnvvm.so",
        "nvvm/libdevice/libdevice.10.bc",
    ]
    assert (tree / "bin/tileiras").stat().st_ino == parts[0].path("tileiras").stat().st_ino
    assert (tree / "nvvm/lib64/libnvvm.so").samefile(tree / "lib/libnvvm.so.4")
    assert backend.bytecode_versions == ("13.1", "13.2")
    assert backend.tileiras.sha256 == file_digest(tree / "bin/tileiras")


def test_equal_contents_are_one_tree_whatever_their_versions(
    store: Store, supervisor: Supervisor, tmp_path: Path
) -> None:
    one = compose(store, supervisor, tileiras(tmp_path), nvvm(tmp_path), ptxas(tmp_path))
    two = compose(store, supervisor, tileiras(tmp_path), nvvm(tmp_path, "13.9.9"), ptxas(tmp_path))
    mix = compose(store, supervisor, tileiras(tmp_path), nvvm(tmp_path, "13.9.9", "other"), ptxas(tmp_path))
    assert one.root == two.root != mix.root
    assert one.identity == two.identity != mix.identity
    assert two.components == {"tileiras": "13.2.51", "nvvm": "13.9.9", "ptxas": "13.2.51"}


def test_a_second_time_nothing_is_started(
    store: Store, supervisor: Supervisor, idle: Supervisor, tmp_path: Path
) -> None:
    parts = tileiras(tmp_path), nvvm(tmp_path), ptxas(tmp_path)
    first = compose(store, supervisor, *parts)
    assert compose(store, idle, *parts) == first


def test_a_damaged_tree_is_made_again(store: Store, supervisor: Supervisor, tmp_path: Path) -> None:
    parts = tileiras(tmp_path), nvvm(tmp_path), ptxas(tmp_path)
    tree = Path(compose(store, supervisor, *parts).root)
    (tree / "bin/ptxas").unlink()
    compose(store, supervisor, *parts)
    assert (tree / "bin/ptxas").read_text() == "ptxas"


def test_without_hard_links_it_copies(
    store: Store, supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    parts = tileiras(tmp_path), nvvm(tmp_path), ptxas(tmp_path)
    tree = Path(compose(store, supervisor, *parts).root)
    assert (tree / "bin/tileiras").stat().st_ino != parts[0].path("tileiras").stat().st_ino
    assert os.access(tree / "bin/tileiras", os.X_OK)


@pytest.mark.parametrize("script", [CANNOT_LIST, "no executable at all", "#!/bin/sh\nkill -11 $$\n"])
def test_a_tileiras_that_cannot_list_is_judged_by_its_version(
    store: Store, supervisor: Supervisor, tmp_path: Path, script: str
) -> None:
    parts = tileiras(tmp_path, "13.2.51", script), nvvm(tmp_path), ptxas(tmp_path)
    assert compose(store, supervisor, *parts).bytecode_versions == ("13.1", "13.2")


def test_implied_versions() -> None:
    assert implied_bytecode_versions("13.1.80") == ("13.1",)
    assert implied_bytecode_versions("13.3.36") == ("13.1", "13.2", "13.3")


@given(st.lists(st.integers(1, 30), unique=True))
def test_listed_versions_come_in_order(minors: list[int]) -> None:
    text = "".join(f"13.{n}\n" for n in minors)
    assert parse_bytecode_versions(text) == tuple(f"13.{n}" for n in sorted(minors))
