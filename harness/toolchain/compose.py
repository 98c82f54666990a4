"""Composes a runnable compiler out of components, by hard link.

tileiras finds `ptxas` beside itself and libnvvm below the directory above; it follows neither PATH
nor configuration. So a small tree makes any mix of components run:

    bin/tileiras  bin/ptxas  lib/libnvvm.so.4  nvvm/lib64/libnvvm.so  nvvm/libdevice/libdevice.10.bc

`nvvm/lib64/libnvvm.so` is the only place where tileiras 13.1 looks, and the first where later ones
do; no wheel ships it. It is the same file as `lib/libnvvm.so.4`, so every tree has both, and a
13.1 tileiras mixes with any nvvm. A tree is named by the contents of its files, never by version labels.

Some mixes cannot work (an nvvm newer than its ptxas writes PTX that ptxas refuses). They compose all
the same: a bisect asks about them, and the control kernel tells a broken mix from a broken kernel.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from packaging.version import Version

from harness.model import Backend, Component, digest_of
from harness.process import StartError, Supervisor
from harness.toolchain.install import Installed
from harness.toolchain.store import Store

_FACTS = "facts.json"
_QUESTION_DEADLINE_SECONDS = 30.0
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)
_FIRST_MINOR = 1


def compose(
    store: Store, supervisor: Supervisor, tileiras: Installed, nvvm: Installed, ptxas: Installed
) -> Backend:
    """A tree that runs these components; made on first use, then only looked at."""
    layout = {
        "bin/tileiras": (tileiras, "tileiras"),
        "bin/ptxas": (ptxas, "ptxas"),
        f"lib/{nvvm.path('libnvvm').name}": (nvvm, "libnvvm"),
        "nvvm/lib64/libnvvm.so": (nvvm, "libnvvm"),
        f"nvvm/libdevice/{nvvm.path('libdevice').name}": (nvvm, "libdevice"),
    }
    sizes = {place: source.files[role].size for place, (source, role) in layout.items()}
    name = digest_of({place: source.files[role].sha256 for place, (source, role) in layout.items()})[:16]
    tree = store.root / "backends" / name
    known = _bytecode_versions(store, tree, sizes)
    if known is None:
        store.directory("backends")
        with store.lock(f"backend-{name}"):
            known = _bytecode_versions(store, tree, sizes)
            if known is None:
                _build(store, supervisor, tree, {p: s.path(r) for p, (s, r) in layout.items()}, tileiras)
                known = _bytecode_versions(store, tree, sizes) or ()
    return Backend(
        root=str(tree),
        tileiras=Component("tileiras", tileiras.version, tileiras.files["tileiras"].sha256),
        nvvm=Component("nvvm", nvvm.version, nvvm.files["libnvvm"].sha256),
        ptxas=Component("ptxas", ptxas.version, ptxas.files["ptxas"].sha256),
        bytecode_versions=known,
    )


def parse_bytecode_versions(text: str) -> tuple[str, ...]:
    """Out of `tileiras --list-versions`: one version a line, oldest first."""
    found = re.findall(r"^\s*(\d+\.\d+(?:\.\d+)?)\s*$", text, re.MULTILINE)
    return tuple(sorted(set(found), key=Version))


def implied_bytecode_versions(tileiras_version: str) -> tuple[str, ...]:
    """What a tileiras takes that cannot list it (before 13.3): 13.1 up to its own series."""
    major, minor = Version(tileiras_version).release[:2]
    return tuple(f"{major}.{n}" for n in range(_FIRST_MINOR, minor + 1))


def _bytecode_versions(store: Store, tree: Path, sizes: Mapping[str, int]) -> tuple[str, ...] | None:
    """What the tree's tileiras takes, as found when it was made; None where the tree is not intact."""
    facts = store.read_json(tree / _FACTS)
    listed = facts.get("bytecode_versions") if facts is not None else None
    if not isinstance(listed, list):
        return None
    try:
        intact = all((tree / place).stat().st_size == size for place, size in sizes.items())
    except OSError:
        return None
    return tuple(str(v) for v in listed) if intact else None


def _build(
    store: Store, supervisor: Supervisor, tree: Path, sources: Mapping[str, Path], tileiras: Installed
) -> None:
    if tree.exists():
        store.discard(tree)
    with store.scratch("tree") as scratch, store.guarded():
        built = scratch / tree.name
        for place, source in sources.items():
            (built / place).parent.mkdir(parents=True, exist_ok=True)
            link_or_copy(source, built / place)
        taken = _ask(supervisor, built / "bin" / "tileiras") or implied_bytecode_versions(tileiras.version)
        store.write_json(built / _FACTS, {"bytecode_versions": taken})
        store.publish(built, tree)


def _ask(supervisor: Supervisor, tileiras: Path) -> tuple[str, ...]:
    """Nothing where it cannot say, or not even start: that is for the control kernel to find."""
    with contextlib.suppress(StartError):
        done = supervisor.run([tileiras, "--list-versions"], deadline=_QUESTION_DEADLINE_SECONDS)
        if done.ok:
            return parse_bytecode_versions(done.stdout)
    return ()


def link_or_copy(source: Path, target: Path) -> None:
    """A hard link, or a copy where the file system has none to give."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copy2(source, target)
