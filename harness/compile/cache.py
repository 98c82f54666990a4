"""Content-addressed blobs and remembered outcomes, as plain files.

Layout below the root: `blobs/ab/<sha256>` and `memo/<kind>/ab/<sha256 of the key>.json`. Files are
written beside their place and renamed into it, so a reader sees a whole file or none, and
concurrent runs may share a cache. A blob is checked against its name whenever it is read, a memo
against the digest that it begins with; whatever is corrupt counts as absent.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from harness.model import canonical_json

T = TypeVar("T")

_LOCK_RANGE = 1 << 62
_POLL_SECONDS = 0.05


class CacheError(Exception):
    """The cache cannot be written; the text says why and what to do."""


class Cache:
    """Blobs by digest, outcomes by key. Safe to share between threads and between processes.

    One that is not `writable` serves what it holds and remembers nothing new.
    """

    def __init__(self, root: Path, *, writable: bool = True) -> None:
        self.root = root
        self._writable = writable
        self._guard = threading.Lock()
        self._locks: weakref.WeakValueDictionary[str, _Exclusive] = weakref.WeakValueDictionary()

    def put(self, data: bytes) -> str:
        """Store a blob; returns its SHA-256. Raises `CacheError`."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._blob(sha256)
        if not (path.exists() and path.stat().st_size == len(data)):
            self._write(path, data)
        return sha256

    def path(self, sha256: str) -> Path:
        """Where a blob lies if it is there; for showing to people, not for reading."""
        return self._blob(sha256)

    def intact(self, sha256: str) -> Path | None:
        """Where a blob lies that is there as it was put; None where it is missing."""
        return self.path(sha256) if self.get(sha256) is not None else None

    def get(self, sha256: str) -> bytes | None:
        """A blob, or None where it is missing; a corrupt one is deleted and missing from then on."""
        path = self._blob(sha256)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def remember(self, kind: str, key: str, value: dict[str, Any]) -> None:
        """Store an outcome under a key; the last writer wins. Raises `CacheError`."""
        if not self._writable:
            return
        self._write(self._memo(kind, key), _sealed(canonical_json([kind, key, value]).encode("ascii")))

    def recall(self, kind: str, key: str) -> dict[str, Any] | None:
        """What was remembered under the key, or None."""
        try:
            entry = json.loads(_unsealed(self._memo(kind, key).read_bytes()))
        except (OSError, ValueError):
            return None
        if not (isinstance(entry, list) and len(entry) == 3 and entry[:2] == [kind, key]):
            return None
        return entry[2] if isinstance(entry[2], dict) else None

    def recall_as(self, kind: str, key: str, decode: Callable[[dict[str, Any]], T]) -> T | None:
        """What was remembered, decoded; None where this version of the lab cannot decode it."""
        value = self.recall(kind, key)
        if value is None:
            return None
        try:
            return decode(value)
        except (LookupError, TypeError, ValueError, AttributeError):
            return None

    @contextlib.contextmanager
    def exclusive(
        self, key: str, patience: float, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Hold off equal work elsewhere: threads of this process, and other processes.

        Saves work, guards nothing: after `patience` seconds of another process holding the key, or
        once `stop` answers true, the caller goes ahead all the same.
        """
        with self._guard:
            mine = self._locks.setdefault(key, _Exclusive())
        with mine.lock, contextlib.ExitStack() as others:
            if self._writable:
                others.enter_context(self._between_processes(key, patience, stop))
            yield

    @contextlib.contextmanager
    def _between_processes(self, key: str, patience: float, stop: Callable[[], bool]) -> Iterator[None]:
        """One byte of one lock file stands for the key, so no lock files pile up."""
        position = int(hashlib.sha256(key.encode()).hexdigest(), 16) % _LOCK_RANGE
        self._make(self.root)
        until = time.monotonic() + patience
        descriptor = self._lock_file()
        held = False
        while not held and not stop() and time.monotonic() < until:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
                held = True
            except (BlockingIOError, PermissionError):
                time.sleep(_POLL_SECONDS)
            except OSError:
                break  # a file system without locks
        try:
            yield
        finally:
            if held:
                fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, position)

    def _lock_file(self) -> int:
        """Opened once and never closed: closing any descriptor of it would drop all its locks."""
        with self._guard:
            path = str(self.root / "lock")
            if path not in _LOCK_FILES:
                try:
                    _LOCK_FILES[path] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                except OSError as error:
                    raise _explained(error, self.root) from error
            return _LOCK_FILES[path]

    def _blob(self, sha256: str) -> Path:
        return self.root / "blobs" / sha256[:2] / sha256

    def _memo(self, kind: str, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self.root / "memo" / kind / name[:2] / f"{name}.json"

    def _make(self, directory: Path) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _explained(error, self.root) from error

    def _write(self, path: Path, data: bytes) -> None:
        self._make(path.parent)
        temporary = None
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
                temporary = file.name
                file.write(data)
            os.replace(temporary, path)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise _explained(error, self.root) from error


_HEAD, _MIDDLE, _END = b'{"sha256":"', b'","memo":', b"}\n"


def _sealed(body: bytes) -> bytes:
    """JSON text with its own digest in front. The digest is of the bytes, so a look-up need not write
    the JSON out again to check it."""
    return _HEAD + hashlib.sha256(body).hexdigest().encode("ascii") + _MIDDLE + body + _END


def _unsealed(data: bytes) -> bytes:
    """The text again. Raises ValueError for what is not as it was written."""
    body = data[len(_HEAD) + 64 + len(_MIDDLE) : -len(_END)]
    if data != _sealed(body):
        raise ValueError("not as it was written")
    return body


class _Exclusive:
    """A lock that a weak dictionary can hold."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_LOCK_FILES: dict[str, int] = {}


def _explained(error: OSError, root: Path) -> CacheError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CacheError(
            f"no space left to write the cache at {root}: "
            "free some space, or move the store with HARNESS_STORE"
        )
    return CacheError(
        f"cannot write the cache at {root}: {error.strerror or error}; "
        "check its permissions, or move the store with HARNESS_STORE"
    )
