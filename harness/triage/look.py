"""Look into a reader's file: its kernels, its launches, and what its comments say of their parameters."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.model import Frontend
from harness.process import Supervisor
from harness.triage import look_worker

DEADLINE = 60.0
"""Seconds a reader's script may run. Whatever it launched until then is known afterwards only if it ends."""

MAX_BYTES = 1_000_000

_COMMENT = re.compile(r"#\s*harness:\s*(?P<text>.+?)\s*$")


class TriageError(ValueError):
    """The file cannot be triaged; the text says what to do."""


@dataclass(frozen=True)
class FoundParameter:
    """A parameter as the file tells it. `said`: constant, int, float, bool, or nothing."""

    name: str
    said: str


@dataclass(frozen=True)
class FoundLaunch:
    """A recorded `ct.launch`: the grid, and a description per argument in the kernel's order."""

    grid: tuple[int, ...]
    arguments: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class FoundKernel:
    """A kernel that the file binds to a name. `line` is that of its first decorator."""

    name: str
    function: str
    line: int
    parameters: tuple[FoundParameter, ...]
    launches: tuple[FoundLaunch, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A file, looked into. `values` are its plain module-level values, `torch`: real | stand-in | unused,
    `error` what running it raised, with the reader's line."""

    path: Path
    text: str
    kernels: tuple[FoundKernel, ...]
    values: dict[str, Any] = field(default_factory=dict)
    torch: str = "unused"
    error: str | None = None
    unnamed: int = 0
    """Launches of kernels that no module-level name is bound to."""


def look(path: Path, frontend: Frontend, supervisor: Supervisor, deadline: float = DEADLINE) -> Seen:
    """Run the file with launches recorded instead of made. Raises TriageError."""
    text = _read(path)
    finished = supervisor.run(
        [sys.executable, "-I", look_worker.__file__, frontend.root, path.absolute()],
        deadline=deadline,
        cwd=path.absolute().parent,
        env={name: value for name, value in os.environ.items() if "CUDA_TILE" not in name},
        max_output=8 << 20,
    )
    if finished.timed_out:
        raise TriageError(
            f"{path} did not end within {deadline:.0f} s; put what it measures or compares behind "
            'if __name__ == "__main__": or name the parameters with --parameters'
        )
    lines = finished.stdout.strip().splitlines()
    try:
        report = json.loads(lines[-1])
    except (IndexError, ValueError):
        how = f"signal {finished.signal}" if finished.signal else f"exit code {finished.exit_code}"
        last = (finished.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise TriageError(f"{path} could not be run: its process ended with {how} ({last})") from None
    error = report["error"]
    told = _told(error, path) if error else None
    launches = report["launches"]
    kernels = tuple(
        FoundKernel(
            found["name"],
            found["function"],
            found["line"],
            tuple(FoundParameter(p["name"], p["said"]) for p in found["parameters"]),
            tuple(
                FoundLaunch(tuple(entry["grid"]), tuple(entry["arguments"]))
                for entry in launches
                if entry["kernel"] == found["name"]
            ),
        )
        for found in report["kernels"]
    )
    if not kernels and told:
        raise TriageError(f"{path} raised before it defined a kernel: {told}")
    if not kernels:
        raise TriageError(f"{path} binds no kernel to a module-level name; decorate one with @ct.kernel")
    unnamed = sum(entry["kernel"] is None for entry in launches)
    return Seen(path.absolute(), text, kernels, report["globals"], report["torch"], told, unnamed)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise TriageError(f"there is no file {path}; name a Python file with a cuda.tile kernel in it")
        data = path.read_bytes()
    except OSError as error:
        raise TriageError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise TriageError(f"{path} is larger than {MAX_BYTES:,} bytes; cut out the kernel")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise TriageError(f"{path} is not UTF-8 text") from None


def _told(error: dict[str, str], path: Path) -> str:
    """What was raised, and at which line of the reader's file."""
    places = re.findall(rf'File "{re.escape(str(path.absolute()))}", line (\d+)', error["traceback"])
    words = f"{error['type']}: {error['message']}".rstrip(": ").partition("\n")[0]
    if not places:
        return words
    line = int(places[-1])
    source = path.read_text(encoding="utf-8").splitlines()
    code = source[line - 1].strip() if line <= len(source) else ""
    return f"{words} ({path.name}, line {line}: {code})"


def comments(text: str) -> list[tuple[int, str]]:
    """What `# harness:` comments say, with the line of each."""
    found = ((number, _COMMENT.search(line)) for number, line in enumerate(text.splitlines(), 1))
    return [(number, match["text"]) for number, match in found if match is not None]
