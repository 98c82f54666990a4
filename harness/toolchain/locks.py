"""Locks on files of the store: flocks, which the kernel releases with their holder, however that ended."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from harness.toolchain.errors import StoreFailed

LOCK_PATIENCE_SECONDS = 900.0
_LOCK_PAUSE_SECONDS = 0.05


def wait_for_lock(
    fd: int, kind: int, path: Path, waiting: Callable[[], None] | None, patience: float
) -> None:
    """Hold the lock of an open file; StoreFailed after `patience` seconds. `waiting` may raise to give up."""
    until = time.monotonic() + patience
    while not try_lock(fd, kind):
        if time.monotonic() >= until:
            raise StoreFailed(
                f"{path} has been held by another process for {patience:g} s; end that process and run again"
            )
        if waiting is not None:
            waiting()
        time.sleep(_LOCK_PAUSE_SECONDS)


def try_lock(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Hold the lock of an open file, if nobody else does."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def claim_lock(path: Path) -> int:
    """Make and hold a lock file; retried where a sweeper took it between making and holding."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if try_lock(fd) and path.exists():
            return fd
        os.close(fd)
