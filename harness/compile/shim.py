"""A backend with a shim in place of ptxas, which records the call and passes it on.

tileiras answers exit code 5 to anything that fails inside, ptxas included, and says no more. The
shim shows whether ptxas was called at all, what it answered, and the PTX that it was given.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

_RECORD = "shim"

# No name is pasted into the script: it finds everything beside itself.
_SCRIPT = """#!/bin/sh
record=$(dirname "$0")/../shim
: > "$record/called"
for word; do
    case $word in *.ptx) cp -- "$word" "$record/input.ptx" ;; esac
done
"$record/ptxas" "$@" 2> "$record/stderr"
code=$?
echo "$code" > "$record/code"
cat "$record/stderr" >&2
exit "$code"
"""


def compose_with_shim(backend: Path, root: Path) -> Path:
    """A tree at `root` that runs like `backend`; returns `root`.

    tileiras finds ptxas and libnvvm from where its own file lies, so it must be a hard link or a
    copy; all else is a symbolic link. Raises OSError.
    """
    binaries, record = root / "bin", root / _RECORD
    binaries.mkdir(parents=True)
    record.mkdir()
    for entry in backend.iterdir():
        if entry.name not in ("bin", _RECORD):
            (root / entry.name).symlink_to(entry)
    for entry in (backend / "bin").iterdir():
        if entry.name == "tileiras":
            _link_or_copy(entry, binaries / entry.name)
        elif entry.name != "ptxas":
            (binaries / entry.name).symlink_to(entry)
    (record / "ptxas").symlink_to(backend / "bin" / "ptxas")
    shim = binaries / "ptxas"
    shim.write_text(_SCRIPT)
    shim.chmod(0o755)
    return root


def missing_pieces(backend: Path) -> list[str]:
    """What tileiras needs beside itself and does not find there."""
    libraries = ("lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so")
    found = {
        "ptxas": (backend / "bin" / "ptxas").exists(),
        "libnvvm": any((backend / library).exists() for library in libraries),
    }
    return [name for name, is_there in found.items() if not is_there]


def read_shim(root: Path) -> tuple[dict[str, Any], bytes | None]:
    """What the shim recorded, and the PTX that ptxas was given."""
    record = root / _RECORD
    code = _read(record / "code")
    answer = {
        "ptxas_called": (record / "called").exists(),
        "ptxas_exit_code": int(code) if code and code.strip().isdigit() else None,
        "ptxas_stderr": (_read(record / "stderr") or b"").decode("utf-8", "replace"),
    }
    return answer, _read(record / "input.ptx")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
