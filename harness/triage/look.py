"""Look into a reader's file: its kernels, its launches, and what its comments say of their parameters."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.model import Frontend
from harness.process import Supervisor
from harness.triage import look_worker
from harness.triage.source import Module

DEADLINE = 60.0
"""Seconds a reader's script may run. Whatever it launched until then is known afterwards only if it ends."""

MAX_BYTES = 1_000_000

_CAPABILITIES = ("9.0", "10.0", "12.0")
"""Compute capabilities of the GPUs that a script is told of, until it launches something."""

_PLACE = re.compile(r" \([^()]*, line \d+\)$")
"""How a SyntaxError ends, whose place is told apart from that."""

_COMMENT = re.compile(r"#\s*harness:\s*(?P<text>.+?)\s*$")


class TriageError(ValueError):
    """The file cannot be triaged; the text says what to do."""


@dataclass(frozen=True)
class FoundParameter:
    """A parameter as the file tells it. `said`: constant, int, float, bool, or nothing; `of` the type of a
    constant, where its annotation says it."""

    name: str
    said: str
    of: str = ""


@dataclass(frozen=True)
class FoundLaunch:
    """A recorded launch: the grid, a description per argument in the kernel's order, the line it is made at,
    the hints that are not those of the kernel's decorator, and the file of that line."""

    grid: tuple[int, ...]
    arguments: tuple[dict[str, Any], ...]
    line: int = 0
    hints: tuple[tuple[str, int], ...] = ()
    file: str = ""


@dataclass(frozen=True)
class FoundKernel:
    """A kernel of the file, or one that it launches. `line` is that of its first decorator.

    `bound` is its name in the module `module` of the reader's, None where it has none: `nested` then tells
    where it is defined (see `lift`). `hints` are those of its decorator.
    """

    name: str
    function: str
    line: int
    parameters: tuple[FoundParameter, ...]
    launches: tuple[FoundLaunch, ...] = ()
    module: str | None = "__main__"
    bound: str | None = None
    nested: dict[str, Any] | None = None
    hints: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Search:
    """A search over configurations: of `size` many, `asked` were recorded."""

    line: int
    size: int
    asked: int


@dataclass(frozen=True)
class Seen:
    """A file, looked into. `modules` are the file (`__main__`) and what it imports of the reader's own,
    `torch`: real | stand-in | unused, `error` what running it raised, with the reader's line, `stopped`
    whether it launched more than was recorded."""

    path: Path
    text: str
    kernels: tuple[FoundKernel, ...]
    modules: dict[str, Module] = field(default_factory=dict)
    torch: str = "unused"
    error: str | None = None
    searches: tuple[Search, ...] = ()
    stopped: bool = False
    ended: str | None = None
    """How the script ended itself before it was through, and what it said."""

    @property
    def cut_short(self) -> str:
        """Why not all of the file was seen, in sentences; empty if it was."""
        if self.error:
            return f"Running it raised {self.error}."
        if self.ended:
            how = f"python -m harness triage {self.path.name} -- ARGS"
            return f"It ended itself {self.ended}. What it needs on its command line can be given: {how}"
        return ""

    @property
    def different_launches(self) -> int:
        """Launches of all kernels, equal ones counted once."""
        return sum(len(kernel.launches) for kernel in self.kernels)


def look(
    path: Path,
    frontend: Frontend,
    supervisor: Supervisor,
    deadline: float = DEADLINE,
    arguments: Sequence[str] = (),
) -> Seen:
    """Run the file, with these arguments, with launches recorded instead of made. Raises TriageError.

    A file that launches nothing is run again as if on another GPU, as long as that may be the reason.
    """
    text = _read(path)
    seen: Seen | None = None
    for capability in _CAPABILITIES:
        worker: list[str | Path] = [
            sys.executable,
            "-I",
            look_worker.__file__,
            frontend.root,
            path.absolute(),
            capability,
        ]
        another = _look(path, text, [*worker, *arguments], supervisor, deadline)
        if seen is None or any(kernel.launches for kernel in another.kernels):
            seen = another
        if any(kernel.launches for kernel in seen.kernels) or "capability" not in text:
            break
    assert seen is not None
    if not seen.kernels and seen.cut_short:
        raise TriageError(f"{path}: no kernel was launched or bound to a name. {seen.cut_short}")
    if not seen.kernels:
        raise TriageError(
            f"{path} neither binds a kernel to a module-level name nor launches one; decorate a "
            "function with @ct.kernel"
        )
    return seen


def _look(
    path: Path, text: str, command: Sequence[str | Path], supervisor: Supervisor, deadline: float
) -> Seen:
    finished = supervisor.run(
        command,
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
        last = _last(finished.stderr) or "it said nothing"
        raise TriageError(f"{path} could not be run: its process ended with {how} ({last})") from None
    error, ended = report["error"], report["ended"]
    return Seen(
        path.absolute(),
        text,
        tuple(map(_kernel, report["kernels"])),
        {name: _module(name, told, path, text) for name, told in report["modules"].items()},
        report["torch"],
        _told(error, path) if error else None,
        tuple(Search(**entry) for entry in report["searches"]),
        report["stopped"],
        _ended(ended, path, finished.stderr) if ended else None,
    )


def _kernel(found: dict[str, Any]) -> FoundKernel:
    return FoundKernel(
        found["name"],
        found["function"],
        found["line"],
        tuple(FoundParameter(**parameter) for parameter in found["parameters"]),
        tuple(
            FoundLaunch(
                tuple(entry["grid"]),
                tuple(entry["arguments"]),
                entry["line"],
                tuple(sorted(entry["hints"].items())),
                entry["file"],
            )
            for entry in found["launches"]
        ),
        found["module"],
        found["bound"],
        found["nested"],
        tuple(sorted(found["hints"].items())),
    )


def _module(name: str, told: dict[str, Any], path: Path, text: str) -> Module:
    if name != "__main__":
        text = Path(told["file"]).read_text(encoding="utf-8", errors="replace")
    return Module(name, text, told["values"], told["file"])


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
    words = f"{error['type']}: {error['message']}".rstrip(": ").partition("\n")[0]
    words = _PLACE.sub("", words)
    place = _place(error["traceback"], path)
    return f"{words} ({place})" if place else words


def _ended(ended: dict[str, str], path: Path, stderr: str) -> str:
    """Where a script ended itself, and with which words: those that it ended with, or that it said last."""
    place, message = _place(ended["traceback"], path), ended["message"]
    code = message if re.fullmatch(r"-?\d+", message) else None
    words = _last(stderr if code or message in ("", "None") else message)
    how = f"with exit code {code}" if code else "with words" if words else "without a word"
    return f"{how}{f' ({place})' if place else ''}{f', saying: {words}' if words else ''}"


def _last(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1].strip()


def _place(traceback: str, path: Path) -> str:
    """The last line of the reader's file in a traceback, with its code."""
    places = re.findall(rf'File "{re.escape(str(path.absolute()))}", line (\d+)', traceback)
    if not places:
        return ""
    line = int(places[-1])
    source = path.read_text(encoding="utf-8").splitlines()
    code = source[line - 1].strip() if line <= len(source) else ""
    return f"{path.name}, line {line}: {code}"


def comments(text: str) -> list[tuple[int, str]]:
    """What `# harness:` comments say, with the line of each."""
    found = ((number, _COMMENT.search(line)) for number, line in enumerate(text.splitlines(), 1))
    return [(number, match["text"]) for number, match in found if match is not None]
