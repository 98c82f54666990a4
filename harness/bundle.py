"""A bundle: everything a GPU host needs, in one file, so that it needs no compiler and no network.

A zip archive: `manifest.json` (schema version, matrix digest, timeouts, the device cells with what is
statically known of each, and which cubins there are) and `cubins/<sha256>`. Kernels travel by name:
their host side is part of this package, and the case says the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import __version__
from harness.matrix.value import Timeouts
from harness.model import CellResult, Record

SCHEMA_VERSION = 1
_MANIFEST = "manifest.json"
_CUBINS = "cubins"
"""In the manifest, too: a wrong byte in an archive's directory can hide a member."""


_DAMAGE = (
    *(OSError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(LookupError, ValueError, OverflowError, RuntimeError),  # flags of encryption, names that are none
)
"""What the standard library raises for archives with wrong bytes in them, by where those are."""


class BundleError(ValueError):
    """The bundle cannot be used; the text is one sentence that says why and what to do."""


@dataclass(frozen=True)
class Bundle(Record):
    """An opened bundle's manifest. `results` are the static results of every cell, device cells too."""

    matrix_digest: str
    timeouts: Timeouts
    results: tuple[CellResult, ...]
    harness: str = __version__
    schema_version: int = SCHEMA_VERSION


def write_bundle(path: Path, bundle: Bundle, cubins: Iterable[tuple[str, bytes]]) -> int:
    """Write the bundle whole or not at all; `cubins` are (sha256, bytes). Returns its size in bytes."""
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            names = []
            for sha256, cubin in cubins:
                archive.writestr(f"cubins/{sha256}", cubin)
                names.append(sha256)
            manifest = {**bundle.to_json(), _CUBINS: names}
            archive.writestr(_MANIFEST, json.dumps(manifest, separators=(",", ":")))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path.stat().st_size


def read_bundle(path: Path) -> Bundle:
    """The manifest. Raises BundleError for what is no bundle, is damaged, or has another schema version."""
    with _explained(path), zipfile.ZipFile(path) as archive:
        data = _manifest(archive)
    found = data.get("schema_version")
    if found != SCHEMA_VERSION:
        raise BundleError(
            f"{path} has bundle schema {found}, this harness ({__version__}) reads {SCHEMA_VERSION}; "
            f"use harness {data.get('harness')} to execute it, or make it again"
        )
    try:
        return Bundle.from_json(data)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(
            f"{path} is damaged: its manifest cannot be read ({_said(error)}); copy it again"
        ) from error


def unpack_cubins(path: Path, target: Path) -> dict[str, Path]:
    """Write the cubins below `target`, each checked against its name; returns path by SHA-256.

    Raises BundleError for a damaged bundle.
    """
    target.mkdir(parents=True, exist_ok=True)
    unpacked = {}
    with contextlib.ExitStack() as stack:
        with _explained(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            listed = [str(sha256) for sha256 in _manifest(archive).get(_CUBINS, ())]
        for name in archive.namelist():
            if name == _MANIFEST:
                continue
            with _explained(path):
                cubin = archive.read(name)
            folder, _, sha256 = name.partition("/")
            if folder != "cubins" or hashlib.sha256(cubin).hexdigest() != sha256:
                raise BundleError(
                    f"{path} is damaged: cubin {sha256[:12]} does not match its name; copy it again"
                )
            unpacked[sha256] = target / f"{sha256}.cubin"
            unpacked[sha256].write_bytes(cubin)
    for sha256 in listed:
        if sha256 not in unpacked:
            raise BundleError(f"{path} is damaged: cubin {sha256[:12]} is missing; copy it again")
    return unpacked


def _manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    data = json.loads(archive.read(_MANIFEST))
    if not isinstance(data, dict):
        raise ValueError(f"{_MANIFEST} is no object")
    return data


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever reading an archive raises into a BundleError; damage shows in many ways."""
    try:
        yield
    except FileNotFoundError:
        raise BundleError(
            f"{path}: no such file; make it with: python -m harness compile matrix.toml --bundle {path}"
        ) from None
    except _DAMAGE as error:
        raise BundleError(
            f"{path} is not a bundle of this harness, or is damaged ({_said(error)}); copy or make it again"
        ) from error


def _said(error: Exception) -> str:
    return str(error).strip("'\"") or type(error).__name__
