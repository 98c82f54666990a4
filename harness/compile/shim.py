"""A backend with a shim in place of ptxas, which records the call and passes it on.

tileiras answers exit code 5 to anything that fails inside, ptxas included, and says no more. The
shim shows whether ptxas was called at all, what it answered, and the PTX that it was given.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from harness.legible import legible

_RECORD = "shim"

# No name is pasted into a script: they find everything beside themselves.
_LAUNCHER = """#!/bin/sh
record=$(dirname "$0")/../shim
exec "$record/python" -ISs "$record/shim.py" "$@"
"""

# A shell cannot tell exit code 139 from a death by SIGSEGV, so the wait status is read by Python.
_SCRIPT = """\
import os, shutil, signal, subprocess, sys

record = os.path.dirname(os.path.abspath(__file__))
open(os.path.join(record, "called"), "w").close()
for word in sys.argv[1:]:
    if word.endswith(".ptx"):
        shutil.copyfile(word, os.path.join(record, "input.ptx"))
said = os.path.join(record, "stderr")
with open(said, "wb") as stderr:
    code = subprocess.call([os.path.join(record, "ptxas"), *sys.argv[1:]], stderr=stderr)
with open(os.path.join(record, "code"), "w") as file:
    file.write(str(code))
with open(said, "rb") as file:
    shutil.copyfileobj(file, sys.stderr.buffer)
sys.stderr.flush()
if code < 0:
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
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
    (record / "python").symlink_to(os.path.realpath(sys.executable))
    (record / "shim.py").write_text(_SCRIPT, encoding="ascii")
    shim = binaries / "ptxas"
    shim.write_text(_LAUNCHER, encoding="ascii")
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
    """What the shim recorded, and the PTX that ptxas was given. A signal that ended ptxas is told as an
    exit code of minus its number."""
    record = root / _RECORD
    code = _read(record / "code")
    answer = {
        "ptxas_called": (record / "called").exists(),
        "ptxas_exit_code": int(code) if code else None,
        "ptxas_stderr": legible((_read(record / "stderr") or b"").decode("utf-8", "replace")),
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
