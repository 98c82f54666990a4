"""Installs one component or frontend into a directory of its own, once, and knows its key files.

Each component package lies alone in `components/PACKAGE-VERSION-HASH`, so toolkits share what they
have in common. HASH covers the hashes of the wheels and the machine's architecture. Next to the
installed `files/` lies `manifest.json` with the size and SHA-256 of the files that matter, taken
once: a warm start reads the manifest and compares sizes, and hashes nothing.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model import Record, digest_of
from harness.toolchain.errors import IndexUnreachable, InstallError
from harness.toolchain.package_tools import PackageTools
from harness.toolchain.resolve import FRONTEND, NVCC, NVVM, TILEIRAS, Pin, absent
from harness.toolchain.store import Store, plain_name

KEY_FILES = {
    TILEIRAS: {"tileiras": "nvidia/*/bin/tileiras"},
    NVVM: {
        "libnvvm": "nvidia/*/lib*/libnvvm.so.*",
        "libdevice": "nvidia/*/nvvm/libdevice/libdevice.*.bc",
    },
    NVCC: {"ptxas": "nvidia/*/bin/ptxas"},
    FRONTEND: {"export": "cuda/tile/compilation/__init__.py"},
}
"""Package → role → where its file lies in the wheel."""

NEEDED_BYTES = {TILEIRAS: 200_000_000, NVVM: 300_000_000, NVCC: 300_000_000, FRONTEND: 5_000_000}
"""Roughly what downloading and unpacking takes; only said when a disk turns out to be full."""

_MANIFEST = "manifest.json"
_FILES = "files"


@dataclass(frozen=True)
class KeyFile(Record):
    """A file that matters: path relative to the installed root, size in bytes, SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Installed(Record):
    """A complete installation under `root`; `sha256` covers its contents where no key file does."""

    root: str
    package: str
    version: str
    files: dict[str, KeyFile]
    sha256: str = ""

    def path(self, role: str) -> Path:
        return Path(self.root) / self.files[role].path


@dataclass(frozen=True)
class Installer:
    """Puts packages into the store. `announce` and `waiting` as in `Provisioner`."""

    store: Store
    tools: PackageTools
    interpreter: str
    offline: bool
    announce: Callable[[str], None]
    waiting: Callable[[], None]

    def component(self, pin: Pin) -> Installed:
        """A backend component, alone."""
        return self._ensure("components", pin, (pin,), "")

    def frontend(self, pins: tuple[Pin, ...]) -> Installed:
        """A cuda-tile with what it imports, for the running Python."""
        own = next(pin for pin in pins if pin.package == FRONTEND)
        return self._ensure("frontends", own, pins, self.interpreter)

    def _ensure(self, shelf: str, pin: Pin, pins: tuple[Pin, ...], interpreter: str) -> Installed:
        key = [[p.to_json() for p in pins], interpreter, platform.machine()]
        parts = [pin.package, pin.version, *([interpreter] if interpreter else []), digest_of(key)[:8]]
        name = plain_name("-".join(parts))
        final = self.store.root / shelf / name
        installed = self._look(final, pin)
        if installed is not None:
            return installed
        what = f"{pin.package} {pin.version}"
        if self.offline:
            raise absent(self.store, what, "offline was asked for")
        self.store.directory(shelf)
        with self.store.lock(name, self._wait_for(what)):
            installed = self._look(final, pin)
            if installed is not None:
                return installed
            if final.exists():  # damaged by something other than us
                self.store.discard(final)
            self.announce(f"installing {what}")
            self._install(final, pin, pins)
            installed = self._look(final, pin)
        if installed is None:
            raise InstallError(f"{what} was installed but {final} does not hold what it should; remove it")
        return installed

    def _install(self, final: Path, pin: Pin, pins: tuple[Pin, ...]) -> None:
        needed = NEEDED_BYTES.get(pin.package)
        with self.store.scratch("package") as scratch, self.store.guarded(needed):
            built = scratch / final.name
            files = built / _FILES
            files.mkdir(parents=True)
            try:
                self.tools.install("\n".join(p.requirement for p in pins) + "\n", files, needed)
            except IndexUnreachable as error:
                raise absent(self.store, f"{pin.package} {pin.version}", str(error)) from error
            keys = {role: _key_file(files, pattern, pin) for role, pattern in KEY_FILES[pin.package].items()}
            manifest: dict[str, Any] = {role: key.to_json() for role, key in keys.items()}
            content = tree_digest(files / "cuda") if pin.package == FRONTEND else ""
            facts = {"package": pin.package, "version": pin.version, "files": manifest, "sha256": content}
            self.store.write_json(built / _MANIFEST, facts)
            self.store.publish(built, final)

    def _look(self, final: Path, pin: Pin) -> Installed | None:
        """What is installed there, or None where it is absent or not what its manifest says."""
        data = self.store.read_json(final / _MANIFEST)
        if data is None:
            return None
        try:
            installed = Installed.from_json({**data, "root": str(final / _FILES)})
            complete = installed.version == pin.version and set(installed.files) == set(
                KEY_FILES[pin.package]
            )
            intact = all(installed.path(r).stat().st_size == f.size for r, f in installed.files.items())
        except (OSError, TypeError, KeyError, ValueError, AttributeError):
            return None
        return installed if complete and intact else None

    def _wait_for(self, what: str) -> Callable[[], None]:
        said = False

        def waiting() -> None:
            nonlocal said
            if not said:
                self.announce(f"waiting for another run that installs {what}")
                said = True
            self.waiting()

        return waiting


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex; about 0.1 s per 100 MB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(root: Path) -> str:
    """SHA-256 over the names and contents of all files below `root`, compiled Python left out."""
    files = (p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return digest_of(sorted((p.relative_to(root).as_posix(), file_digest(p)) for p in files))


def _key_file(root: Path, pattern: str, pin: Pin) -> KeyFile:
    found = sorted(root.glob(pattern))
    if not found:
        raise InstallError(f"{pin.package} {pin.version} has no {pattern}; its wheel is laid out differently")
    path = found[0]
    return KeyFile(path.relative_to(root).as_posix(), path.stat().st_size, file_digest(path))
