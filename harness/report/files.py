"""Writing report files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

_EARLIER = ".previous"


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by a complete new file in UTF-8. Raises OSError and then leaves the old one alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def set_aside(directory: Path, names: Iterable[str]) -> None:
    """Rename reports of an earlier run: they must not pass for those of one that is killed."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            (directory / name).replace(directory / (name + _EARLIER))


def forget_earlier(directory: Path, names: Iterable[str]) -> None:
    """Delete what was set aside, once there are reports in its place."""
    for name in names:
        (directory / (name + _EARLIER)).unlink(missing_ok=True)


def _umask() -> int:
    """The process's umask, which can only be read by setting it; mkstemp made the file private."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
