"""Bundles: whole or refused, never half read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_wrong_byte_anywhere_is_harmless_or_told_in_a_sentence(
    bundle: Bundle, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "cells.bundle"
    if not path.exists():
        write_bundle(path, bundle, [(_NAME, _CUBIN)])
    content = bytearray(path.read_bytes())
    # The directory at the end and the headers are where parsers go astray, so half the bytes lie there.
    at = data.draw(st.integers(0, len(content) - 1) | st.integers(len(content) - 300, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    damaged = tmp_path / "damaged.bundle"
    damaged.write_bytes(content)
    try:
        assert read_bundle(damaged) == bundle
        cubins = unpack_cubins(damaged, tmp_path / "cubins")
        assert {name: p.read_bytes() for name, p in cubins.items()} == {_NAME: _CUBIN}
    except BundleError as error:
        assert str(damaged) in str(error)
        assert "\n" not in str(error)


def test_a_cubin_that_a_wrong_byte_hides_is_missed(bundle: Bundle, tmp_path: Path) -> None:
    path = tmp_path / "cells.bundle"
    other = b"another"
    write_bundle(path, bundle, [(_NAME, _CUBIN), (hashlib.sha256(other).hexdigest(), other)])
    content = bytearray(path.read_bytes())
    entries = [at for at in range(len(content)) if content[at : at + 4] == b"PK\x01\x02"]
    comment_length = entries[0] + 32
    content[comment_length] = entries[1] - entries[0]  # the first entry's comment is now the second entry
    path.write_bytes(content)
    with pytest.raises(BundleError, match=r"is damaged: cubin [0-9a-f]{12} is missing; copy it again"):
        unpack_cubins(path, tmp_path / "cubins")


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_bundle_that_was_cut_off_is_told_in_a_sentence(
    bundle: Bundle, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "cells.bundle"
    write_bundle(path, bundle, [(_NAME, _CUBIN)])
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(BundleError, match="copy or make it again"):
        read_bundle(path)


@pytest.mark.parametrize("manifest", [[], {"schema_version": 1}, {"schema_version": 1, "results": [{}]}])
def test_a_manifest_that_is_none(tmp_path: Path, manifest: object) -> None:
    path = tmp_path / "cells.bundle"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
    with pytest.raises(BundleError, match=r"damaged.*again"):
        read_bundle(path)


def test_no_file_and_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such file; make it with"):
        read_bundle(tmp_path / "absent")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(BundleError, match="is not a bundle of this harness"):
        read_bundle(tmp_path / "text")
