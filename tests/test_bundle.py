"""Bundles: whole or refused, never half read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from harness.bundle import Bundle, BundleError, read_bundle, unpack_cubins, write_bundle
from harness.matrix import Timeouts
from harness.model import CellResult

_CUBIN = b"not really a cubin"
_NAME = hashlib.sha256(_CUBIN).hexdigest()


@pytest.fixture
def bundle(lab_run: list[CellResult]) -> Bundle:
    return Bundle("digest", Timeouts(launch=3.0), tuple(lab_run[:9]))


def test_what_goes_in_comes_out(bundle: Bundle, tmp_path: Path) -> None:
    path = tmp_path / "cells.bundle"
    assert write_bundle(path, bundle, [(_NAME, _CUBIN)]) == path.stat().st_size
    assert read_bundle(path) == bundle
    cubins = unpack_cubins(path, tmp_path / "cubins")
    assert {name: p.read_bytes() for name, p in cubins.items()} == {_NAME: _CUBIN}
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".part"] == []


def test_another_schema_version_is_refused_with_a_sentence(bundle: Bundle, tmp_path: Path) -> None:
    path = tmp_path / "old.bundle"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({**bundle.to_json(), "schema_version": 99}))
    with pytest.raises(BundleError, match=r"old\.bundle has bundle schema 99, this harness .* reads 1"):
        read_bundle(path)


def test_a_damaged_cubin_is_noticed(bundle: Bundle, tmp_path: Path) -> None:
    path = tmp_path / "cells.bundle"
    write_bundle(path, bundle, [("0" * 64, _CUBIN)])
    with pytest.raises(BundleError, match="is damaged: cubin 000000000000 does not match its name"):
        unpack_cubins(path, tmp_path / "cubins")


def test_no_file_and_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such file; make it with"):
        read_bundle(tmp_path / "absent")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(BundleError, match="is not a bundle of this harness"):
        read_bundle(tmp_path / "text")
