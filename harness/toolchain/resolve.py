"""From what a user wrote to exact versions with hashes, remembered so that it is asked once.

Two kinds of memory lie in the store: `index/PACKAGE.json`, the versions that exist and when that was
asked, and `locked/NAME.json`, the exact versions and hashes a toolkit, a component or a frontend was
resolved to. A lock never expires and needs no network: cuda-toolkit only bounds some of its
packages, so the same version resolved next month would be another toolchain.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from packaging.version import Version

from harness.model import Record
from harness.toolchain import versions
from harness.toolchain.errors import IndexUnreachable, InstallError, NotInStore, UnknownVersion
from harness.toolchain.package_tools import PackageTools
from harness.toolchain.store import STORE_VARIABLE, Store, plain_name

TOOLKIT = "cuda-toolkit"
FRONTEND = "cuda-tile"
TILEIRAS = "nvidia-cuda-tileiras"
NVVM = "nvidia-nvvm"
NVCC = "nvidia-cuda-nvcc"
COMPONENTS = (TILEIRAS, NVVM, NVCC)

FIRST_TOOLKIT = Version("13.1")
"""The first cuda-toolkit that brings tileiras."""

FRESH_SECONDS = 24 * 3600.0
"""A list of versions younger than this answers which version of a series is the newest."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin(Record):
    """One package at one version; `sha256` are the hashes of all its wheels, sorted."""

    package: str
    version: str
    sha256: tuple[str, ...]

    @property
    def requirement(self) -> str:
        return " ".join([f"{self.package}=={self.version}", *(f"--hash=sha256:{h}" for h in self.sha256)])


@dataclass(frozen=True)
class Resolution(Record):
    """What `requirement` was resolved to, and when (UTC, ISO 8601)."""

    requirement: str
    resolved_at: str
    packages: tuple[Pin, ...]

    def pin(self, package: str) -> Pin:
        for pin in self.packages:
            if pin.package == package:
                return pin
        raise InstallError(f"{self.requirement} does not bring {package}")


def parse_pins(text: str) -> tuple[Pin, ...]:
    """Pins out of the requirements text that uv writes."""
    pins = []
    for line in text.replace("\\\n", " ").splitlines():
        found = _REQUIREMENT.match(line.strip())
        if found:
            pins.append(Pin(found[1].lower(), found[2], tuple(sorted(_HASH.findall(line)))))
    return tuple(sorted(pins, key=lambda pin: pin.package))


@dataclass
class Resolver:
    """Finds versions and locks them. `interpreter` tells apart locks that depend on the Python."""

    store: Store
    tools: PackageTools
    interpreter: str
    offline: bool = False
    announce: Callable[[str], None] = lambda text: None
    waiting: Callable[[], None] = lambda: None
    _asked: set[str] = field(default_factory=set)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def versions(self, package: str) -> tuple[str, ...]:
        """Every usable version, oldest first; from the store while fresh or when the index is away."""
        listed, fresh = self._remembered(package)
        return listed if fresh else self._refresh(package, listed)

    def choose(self, package: str, wanted: str) -> str:
        """The exact version meant by "13.3.1" or "13.3". Raises UnknownVersion."""
        chosen = self.find(package, wanted)
        if chosen is None:
            raise UnknownVersion(versions.unknown(package, wanted, self.versions(package)))
        return chosen

    def find(self, package: str, wanted: str) -> str | None:
        """As `choose`, but None where there is no such version."""
        if versions.parse(wanted) is None:
            return None
        if self.locked(package, wanted) is not None:
            return wanted
        listed, fresh = self._remembered(package)
        if wanted in listed:
            return wanted
        if not fresh or versions.match(wanted, listed) is None:
            listed = self._refresh(package, listed)
        chosen = versions.match(wanted, listed)
        if chosen not in (None, wanted) and (package, wanted) not in self._told:
            self._told.add((package, wanted))
            self.announce(f"{package} {wanted} is {chosen}")
        return chosen

    def toolkit(self, version: str) -> Resolution:
        """All packages of an exact cuda-toolkit version."""
        resolution = self._lock(TOOLKIT, version, f"{TOOLKIT}[nvcc,nvvm,tileiras]=={version}")
        for package in COMPONENTS:
            resolution.pin(package)
        return resolution

    def component(self, package: str, wanted: str) -> Pin:
        """A component named by its own version or by that of the cuda-toolkit that brings it."""
        known = self.locked(package, wanted)
        if known is not None:
            return known.pin(package)
        pinned = self._pinned(package, wanted)
        if pinned is not None:
            return pinned
        if self.locked(TOOLKIT, wanted) is None and wanted in self.versions(package):
            return self._lock(package, wanted, f"{package}=={wanted}", dependencies=False).pin(package)
        toolkit = self.find(TOOLKIT, wanted)
        if toolkit is None:
            own = versions.unknown(package, wanted, self.versions(package))
            raise UnknownVersion(f"{own} A {TOOLKIT} version may stand there, too.")
        return self.toolkit(toolkit).pin(package)

    def frontend(self, version: str) -> Resolution:
        """An exact cuda-tile version with what it needs, for this Python."""
        return self._lock(FRONTEND, version, f"{FRONTEND}=={version}")

    def locked(self, package: str, version: str) -> Resolution | None:
        """What this very version was resolved to before; never asks anybody."""
        return _revive(self.store.read_json(self.store.root / "locked" / self._lock_name(package, version)))

    def report(self) -> dict[str, Any]:
        """Every lock, by name: requirement, when, and packages with versions and hashes."""
        found = {}
        for path in sorted(self.store.directory("locked").glob("*.json")):
            resolution = _revive(self.store.read_json(path))
            if resolution is not None:
                found[path.stem] = resolution.to_json()
        return found

    def _pinned(self, package: str, version: str) -> Pin | None:
        """The pin of a component that some locked toolkit brought, so that a mix needs no network."""
        for path in sorted(self.store.directory("locked").glob(f"{TOOLKIT}-*.json")):
            resolution = _revive(self.store.read_json(path))
            for pin in resolution.packages if resolution else ():
                if (pin.package, pin.version) == (package, version):
                    return pin
        return None

    def _lock_name(self, package: str, version: str) -> str:
        suffix = f"-{self.interpreter}" if package == FRONTEND else ""
        return plain_name(f"{package}-{version}{suffix}.json")

    def _lock(self, package: str, version: str, requirement: str, *, dependencies: bool = True) -> Resolution:
        known = self.locked(package, version)
        if known is not None:
            return known
        if self.offline:
            raise self._absent(f"{package} {version}", "offline was asked for")
        path = self.store.directory("locked") / self._lock_name(package, version)
        with self.store.lock(f"resolve-{path.stem}", self.waiting):
            known = self.locked(package, version)
            if known is not None:
                return known
            self.announce(f"resolving {package} {version}")
            try:
                text = self.tools.resolve(requirement, dependencies=dependencies)
            except IndexUnreachable as error:
                raise self._absent(f"{package} {version}", str(error)) from error
            resolution = Resolution(requirement, _now(), _complete(parse_pins(text), requirement))
            self.store.write_json(path, resolution.to_json())
            return resolution

    def _remembered(self, package: str) -> tuple[tuple[str, ...], bool]:
        data = self.store.read_json(self.store.root / "index" / plain_name(f"{package}.json")) or {}
        listed, asked_at = data.get("versions"), data.get("asked_at")
        if not isinstance(listed, list) or not isinstance(asked_at, int | float):
            return (), False
        return tuple(str(v) for v in listed), 0 <= time.time() - asked_at < FRESH_SECONDS

    def _refresh(self, package: str, known: tuple[str, ...]) -> tuple[str, ...]:
        """Ask the index, at most once per package and run; what is known already is the fallback."""
        if known and (self.offline or package in self._asked):
            return known
        if self.offline:
            raise self._absent(f"the list of {package} versions", "offline was asked for")
        self._asked.add(package)
        try:
            found = self.tools.list_versions(package)
        except (IndexUnreachable, InstallError) as error:
            if known:
                self.announce(f"cannot ask for newer versions of {package}: {error}")
                return known
            if isinstance(error, InstallError):
                raise
            raise self._absent(f"the list of {package} versions", str(error)) from error
        listed = _usable(package, found)
        if not listed:
            raise InstallError(f"the package index has no usable {package}: it lists only {', '.join(found)}")
        if self.store.writable:
            path = self.store.directory("index") / plain_name(f"{package}.json")
            self.store.write_json(path, {"package": package, "versions": listed, "asked_at": time.time()})
        return listed

    def _absent(self, what: str, why: str) -> NotInStore:
        return absent(self.store, what, why)


def absent(store: Store, what: str, why: str) -> NotInStore:
    """The error for what the store lacks while no index can be asked."""
    return NotInStore(
        f"{what} is not in the store {store.root} and the package index cannot be asked ({why}); "
        f"run once with a network, or point {STORE_VARIABLE} at a store that has it"
    )


def _usable(package: str, listed: Iterable[str]) -> tuple[str, ...]:
    ordered = versions.in_order(listed)
    if package == TOOLKIT:
        return tuple(v for v in ordered if Version(v) >= FIRST_TOOLKIT)
    return ordered


def _complete(pins: tuple[Pin, ...], requirement: str) -> tuple[Pin, ...]:
    bare = [pin.package for pin in pins if not pin.sha256]
    if bare or not pins:
        what = " and ".join(bare) or "any package"
        raise InstallError(f"cannot lock {requirement}: uv gave no hash for {what}")
    return pins


def _revive(data: dict[str, Any] | None) -> Resolution | None:
    try:
        return Resolution.from_json(data) if data is not None else None
    except (TypeError, KeyError, ValueError, AttributeError):
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
