"""What a compiler's run says, boiled down: the line that tells most, the signal, who is to blame. Pure."""

from __future__ import annotations

import re
import signal as signals
from typing import Any

from harness.model import CompileOutcome

EXCERPT = 4000
"""Characters of output and messages that evidence keeps; the end says most."""

_CATCH_ALL = re.compile(r"^(?:error: )?failed to compile Tile IR program\.?$")
_SCRATCH = re.compile(r"(?<!\S)\S*/tile-harness-[\w-]+/(?:mlir-kernels-\S+?(\.\w+))?")
"""A file in a directory of one run; its name says nothing, and is another every time."""

_LOCATION = re.compile(r"^(?:#[\w.]+<.*>|loc\(.*\)): (?=error: )")
"""Where in the kernel an operation comes from, as tileiras 13.1 and 13.2 put it before an error."""

_INVALID_BYTECODE = "input does not correspond to Tile IR bytecode"

_MACHINE = re.compile(r"No space left on device|unable to read input file|Read-only file system|Disk quota")
_FROM_OUTSIDE = (signals.SIGTERM, signals.SIGINT, signals.SIGHUP)

_TELLING = re.compile(r"\b(?:error|fatal|assert|unsupported|invalid|cannot|failed)", re.IGNORECASE)


def blame(said: str, diagnosis: dict[str, Any] | None) -> tuple[str, str]:
    """The guilty component and what it said itself, where the shim overheard it."""
    if diagnosis and diagnosis.get("ptxas_called") and diagnosis.get("ptxas_exit_code"):
        return "ptxas", str(diagnosis.get("ptxas_stderr") or "").strip()
    if re.search(r"^\s*ptxas\b", said, re.MULTILINE):
        return "ptxas", ""
    if re.search(r"\b(?:lib)?nvvm\b", said, re.IGNORECASE):
        return "nvvm", ""
    return "tileiras", ""


def rejects_bytecode(said: str) -> bool:
    """Whether tileiras found its input to be no valid bytecode: what wrote it is at fault."""
    return _INVALID_BYTECODE in said


def machine_failed(compile: CompileOutcome) -> bool:
    """Whether a failed run says nothing about the compiler: it was killed or stopped from outside, or could
    not read or write its files. An equal run may well come out otherwise."""
    return killed(death_signal(compile)) or files_failed(compile)


def killed(number: int | None) -> bool:
    """Whether a signal is none that a compiler brings upon itself: it was stopped, or memory ran out."""
    return number == signals.SIGKILL or stopped_from_outside(number)


def stopped_from_outside(number: int | None) -> bool:
    """Whether somebody ended the compiler: no compiler sends itself such a signal."""
    return number in _FROM_OUTSIDE


def ptxas_signal(diagnosis: dict[str, Any] | None) -> int | None:
    """The signal that ended ptxas under the shim."""
    code = diagnosis.get("ptxas_exit_code") if diagnosis else None
    return -code if isinstance(code, int) and code < 0 else None


def files_failed(compile: CompileOutcome) -> bool:
    """Whether the run could not read or write; a silent 2 is tileiras that cannot open its output file."""
    said = output(compile)
    silent = death_signal(compile) is None and compile.exit_code == 2 and not said
    return silent or _MACHINE.search(said) is not None


def what_is_wrong_with(diagnosis: dict[str, Any] | None) -> str:
    """A fault of the toolchain's own tree: a piece that is missing, or older than those that rely on it."""
    if not diagnosis:
        return ""
    if missing := diagnosis.get("missing"):
        return f"its {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    versions: dict[str, str] = diagnosis.get("components", {})
    minors = {name: tuple(version.split(".")[:2]) for name, version in versions.items()}
    if len(set(minors.values())) > 1:
        return "it mixes " + ", ".join(f"{name} {version}" for name, version in versions.items())
    return ""


def what_ptxas_did(diagnosis: dict[str, Any] | None) -> str:
    """What the shim saw, to be put behind a sentence; nothing where there was none."""
    if not diagnosis or "ptxas_called" not in diagnosis:
        return ""
    if not diagnosis["ptxas_called"]:
        return "; ptxas was never called, so tileiras or libnvvm failed before it"
    if diagnosis.get("ptxas_exit_code"):
        return f"; ptxas was called and ended with {ending(diagnosis['ptxas_exit_code'])}"
    return "; ptxas was called and did its part"


def output(compile: CompileOutcome) -> str:
    """All that was printed, errors first."""
    return "\n".join(part.strip() for part in (compile.stderr, compile.stdout) if part.strip())


def diagnosed(said: str) -> str:
    """What was said apart from tileiras's catch-all line, which tells nothing."""
    return "\n".join(
        line for line in said.splitlines() if line.strip() and not _CATCH_ALL.match(line.strip())
    )


def telling_line(said: str, telling: re.Pattern[str] = _TELLING) -> str:
    """The line that says most: the first telling one, else the last."""
    lines = [_SCRATCH.sub(_plain_name, line.strip()) for line in said.splitlines() if line.strip()]
    line = next((line for line in lines if telling.search(line)), lines[-1] if lines else "")
    line = _LOCATION.sub("", line)
    return line if len(line) <= 300 else line[:299] + "…"


def _plain_name(path: re.Match[str]) -> str:
    return f"kernel{path.group(1)}" if path.group(1) else ""


def run_facts(compile: CompileOutcome) -> dict[str, Any]:
    """What evidence keeps of a run."""
    return {
        "stage": "compile",
        "status": compile.status,
        "exit_code": compile.exit_code,
        "signal": death_signal(compile),
        "stderr": compile.stderr[-EXCERPT:],
        "stdout": compile.stdout[-EXCERPT:],
        "wall_seconds": compile.wall_seconds,
        "cpu_seconds": compile.cpu_seconds,
        "peak_rss_bytes": compile.peak_rss_bytes,
    }


def death_signal(compile: CompileOutcome) -> int | None:
    """The signal that ended tileiras, in either of the ways it may be told."""
    if compile.signal is not None:
        return compile.signal
    code = compile.exit_code
    return -code if code is not None and code < 0 else None


def ending(code: int) -> str:
    """How a process ended, in words that signatures keep; a signal is told as minus its number."""
    return signal_name(-code) if code < 0 else f"exit code {code}"


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signals.Signals(number).name
    except ValueError:  # one of the real-time signals between the named ones
        return f"signal {number}"


def memory_text(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def cpu_course(compile: CompileOutcome) -> str:
    """Whether the CPU was still used in the second half of the run: a tenth of a core says so."""
    late = compile.cpu_over_time[len(compile.cpu_over_time) // 2 :]
    if len(late) < 2 or late[-1][0] <= late[0][0]:
        return ""
    busy = (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0])
    return "to the end" if busy >= 0.1 else "but not any more at the end"


def memory_course(compile: CompileOutcome) -> str:
    """Whether memory still grew in the second half of the run: a tenth and 32 MiB say so."""
    late = [rss for _, rss in compile.rss_over_time[len(compile.rss_over_time) // 2 :]]
    if len(late) < 2:
        return ""
    first, last = late[0], late[-1]
    if last - first > max(32 << 20, first // 10):
        return f"memory was still growing, from {memory_text(first)} to {memory_text(last)}"
    return f"memory stayed flat at {memory_text(last)}"
