"""The store: one directory that holds everything installed, resolved and composed.

Invariants, for any number of runs at once and for any moment of a power cut or SIGKILL:

- What has its final name is complete. Everything is built in a scratch directory of the same file
  system and gets its name by one atomic rename (`publish`, `write_json`).
- A lock is an flock, so the kernel releases it with its holder, however that ended.
- Whoever uses the store shares it (`shared`); `clean` deletes only while it is `alone`.
- A scratch directory belongs to whoever holds the lock beside it. One that nobody holds is litter
  of a dead run, and the next `open_store` sweeps it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from harness.toolchain.errors import StoreError, StoreFailed
from harness.toolchain.locks import LOCK_PATIENCE_SECONDS, claim_lock, try_lock, wait_for_lock
from harness.toolchain.marker import MARKER, is_marked, is_store, mark

STORE_VARIABLE = "HARNESS_STORE"
"""Environment variable that moves the store."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*")


@dataclass(frozen=True)
class Store:
    """An open store. All methods raise StoreError where the directory refuses.

    One that is not `writable` serves what it holds; whatever must write there raises.
    """

    root: Path
    writable: bool = True

    def directory(self, name: str) -> Path:
        """A subdirectory, made if need be."""
        path = self.root / plain_name(name)
        with self.guarded():
            path.mkdir(exist_ok=True)
        return path

    @contextlib.contextmanager
    def lock(
        self,
        name: str,
        waiting: Callable[[], None] | None = None,
        patience: float = LOCK_PATIENCE_SECONDS,
    ) -> Iterator[None]:
        """Hold the lock of this name against other processes and threads.

        `waiting` is called before every pause (about 20 a second) while someone else holds it, and may
        raise to give up. StoreError after `patience` seconds.
        """
        path = self.directory("locks") / f"{plain_name(name)}.lock"
        with self.guarded():
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            wait_for_lock(fd, fcntl.LOCK_EX, path, waiting, patience)
            yield
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def shared(self, patience: float = LOCK_PATIENCE_SECONDS) -> Iterator[None]:
        """Use the store together with other runs, and keep `clean` off; waits for one that is at work."""
        if not self.writable and not is_marked(self.root):
            yield  # an older store that nobody can mark, and nobody can clean
            return
        marker = self.root / MARKER
        with self.guarded():
            fd = os.open(marker, os.O_RDONLY | os.O_CLOEXEC)
        try:
            wait_for_lock(fd, fcntl.LOCK_SH, marker, None, patience)
            yield
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every run out of the store. StoreError, at once, where one is using it."""
        with self.guarded():
            fd = os.open(self.root / MARKER, os.O_RDWR | os.O_CLOEXEC)
        try:
            if not try_lock(fd):
                raise StoreError(
                    f"a run is using the store {self.root}; wait for its end, or end it, and try again"
                )
            yield
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def scratch(self, purpose: str) -> Iterator[Path]:
        """A private, empty directory on the store's file system, removed at the end."""
        path = self.directory("scratch") / f"{plain_name(purpose)}-{os.getpid()}-{secrets.token_hex(6)}"
        claim = path.with_name(path.name + ".lock")
        with self.guarded():
            fd = claim_lock(claim)
        try:
            with self.guarded():
                path.mkdir()
            yield path
        finally:
            _remove(path, claim)
            os.close(fd)

    def publish(self, built: Path, final: Path) -> bool:
        """Give a finished directory its name; False where another run was first (and is kept)."""
        with self.guarded():
            _flush(built)
            try:
                built.rename(final)
            except OSError as error:
                if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                    return False
                raise
            _flush(final.parent)
        return True

    def discard(self, path: Path) -> None:
        """Take a published directory away: its name vanishes at once, then its contents."""
        with self.scratch("discard") as grave, contextlib.suppress(FileNotFoundError):
            path.rename(grave / path.name)

    def read_json(self, path: Path) -> dict[str, Any] | None:
        """An object that was written here, or None where there is none that can be read."""
        try:
            data = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            raise _explain(self.root, error) from error
        return data if isinstance(data, dict) else None

    def write_json(self, path: Path, data: dict[str, Any]) -> None:
        """Write an object so that a reader sees the old one or the new one, nothing between."""
        with self.scratch("json") as scratch, self.guarded():
            fresh = scratch / path.name
            with fresh.open("w", encoding="utf-8") as file:
                json.dump(data, file, indent=1, sort_keys=True)
                file.flush()
                os.fsync(file.fileno())
            path.parent.mkdir(exist_ok=True)
            fresh.replace(path)

    @contextlib.contextmanager
    def guarded(self, needed_bytes: int | None = None) -> Iterator[None]:
        """Turn an OSError inside into a StoreError that says what to do."""
        try:
            yield
        except OSError as error:
            raise _explain(self.root, error, needed_bytes) from error

    def full_disk(self, needed_bytes: int | None = None) -> StoreFailed:
        """The error for a disk that has no room left."""
        return _full_disk(self.root, needed_bytes)

    def sweep(self) -> int:
        """Remove scratch directories whose owner is dead; returns how many."""
        swept = 0
        with self.guarded():
            entries = sorted(self.directory("scratch").iterdir())
        for claim in entries:
            if claim.suffix != ".lock":
                continue
            try:
                fd = os.open(claim, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                if try_lock(fd):
                    _remove(claim.with_suffix(""), claim)
                    swept += 1
            finally:
                os.close(fd)
        return swept


def open_store(path: Path | None = None) -> Store:
    """Open, or make, the store at `path`, else $HARNESS_STORE, else the user cache directory.

    A store that is there but may not be written is opened for reading. StoreError where there is
    nothing to read, StoreFailed where the disk is full. Sweeps what dead runs left behind.
    """
    store = Store(_root(path))
    try:
        with store.guarded():
            store.root.mkdir(parents=True, exist_ok=True)
            mark(store.root)
        with store.shared():
            with store.scratch("probe") as probe, store.guarded():
                (probe / "probe").write_bytes(b"\n")
            store.sweep()
    except StoreFailed as failure:
        cause = failure.__cause__.errno if isinstance(failure.__cause__, OSError) else None
        if cause in _NOT_ALLOWED and is_store(store.root):
            return Store(store.root, writable=False)
        if cause in _FULL:
            raise
        raise StoreError(str(failure)) from failure
    return store


def existing_store(path: Path | None = None) -> Store:
    """The store that is there already, for whoever wants to delete. StoreError where there is none."""
    root = _root(path)
    if not root.is_dir():
        raise StoreError(f"there is no store at {root}; nothing was deleted")
    if not is_marked(root):
        raise StoreError(
            f"{root} is no store of this harness, as it has no {MARKER}, so nothing was deleted; if an older "
            "version made it, mark it first with: python -m harness doctor --store"
        )
    return Store(root)


def plain_name(name: str) -> str:
    """The name itself if it is safe as a file name; versions reach us from files users wrote."""
    if not _PLAIN_NAME.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a file in the store; use letters, digits and . _ + ! -")
    return name


def _root(path: Path | None) -> Path:
    return Path(os.path.abspath((path or _default_root()).expanduser()))


def _default_root() -> Path:
    moved = os.environ.get(STORE_VARIABLE)
    return Path(moved) if moved else platformdirs.user_cache_path("tile-harness")


def _explain(root: Path, error: OSError, needed_bytes: int | None = None) -> StoreFailed:
    if error.errno in _FULL:
        return _full_disk(root, needed_bytes)
    reason = error.strerror or str(error)
    return StoreFailed(
        f"the store {root} cannot be written ({reason.lower()}); "
        f"set {STORE_VARIABLE} to a directory where you may write"
    )


def _full_disk(root: Path, needed_bytes: int | None) -> StoreFailed:
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(_existing(root)).free
        needed = f"about {_megabytes(needed_bytes)} needed, " if needed_bytes else ""
        room = f" ({needed}{_megabytes(free)} free)"
        return StoreFailed(
            f"the disk of the store {root} is full{room}; "
            f"free some space, or set {STORE_VARIABLE} to a directory on a larger disk"
        )
    return StoreFailed(f"the disk of the store {root} is full; free some space there")


def _existing(path: Path) -> Path:
    return next(p for p in (path, *path.parents) if p.exists())


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"


def _remove(path: Path, claim: Path) -> None:
    """Best effort: what cannot be removed now keeps its claim and is litter for the next sweep."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        with contextlib.suppress(OSError):
            claim.unlink()


def _flush(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
