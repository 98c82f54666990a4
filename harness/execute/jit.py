"""What it takes to launch cases as users do: a Python with torch, and an installed toolchain."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from harness.execute.options import PoolOptions
from harness.model import Toolchain

NEEDED = ("torch", "numpy", "ml_dtypes", "cuda.bindings")
_WORKER = Path(__file__).with_name("jit_worker.py")
_START_UP_SECONDS = 180.0
_WORKERS = 2
"""Each holds torch and a context, and compiles on the host."""


class NoJit(Exception):
    """Cases cannot be launched through cuda.tile here; the text says what is missing."""


@dataclass(frozen=True)
class JitTree:
    """An installed toolchain: `frontend` holds cuda/tile, `backend` bin/tileiras."""

    frontend: str
    backend: str


JitTrees = Callable[[Toolchain], JitTree]
"""Finds a toolchain's tree, or raises NoJit."""


def no_trees(toolchain: Toolchain) -> JitTree:
    """For a host without toolchains."""
    raise NoJit(
        f'engine "jit" needs the toolchain {toolchain.name} on this host: '
        "use harness run, or harness execute with --jit-root"
    )


def carried_trees(root: Path) -> JitTrees:
    """Trees below a directory: NAME/frontend and NAME/backend for a toolchain NAME."""

    def find(toolchain: Toolchain) -> JitTree:
        frontend, backend = (root / toolchain.name / part for part in ("frontend", "backend"))
        for needed in (frontend / "cuda" / "tile", backend / "bin" / "tileiras"):
            if not needed.exists():
                raise NoJit(f'engine "jit" needs {needed}; copy the toolchain there')
        return JitTree(str(frontend.resolve()), str(backend.resolve()))

    return find


def jit_options(options: PoolOptions, tree: JitTree) -> PoolOptions:
    """The pool's options for cases of this toolchain. Raises NoJit where no Python has torch."""
    return replace(
        options,
        worker_argv=(torch_python(), str(_WORKER), tree.frontend, tree.backend),
        workers=min(options.workers, _WORKERS),
        spares=min(options.spares, 1),
        start_up_seconds=max(options.start_up_seconds, _START_UP_SECONDS),
    )


@cache
def torch_python() -> str:
    """This Python or the system's, whichever has everything that is needed. Raises NoJit."""
    probe = f"import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in {NEEDED!r}))"
    for python in dict.fromkeys(filter(None, (sys.executable, shutil.which("python3")))):
        try:
            done = subprocess.run([python, "-c", probe], capture_output=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return python
    raise NoJit(f'engine "jit" needs a Python with {", ".join(NEEDED)}, and none is on PATH')
