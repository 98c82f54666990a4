"""GPU core dumps: asked for, read with cuda-gdb, and put into words.

The driver, told so by the environment before the context is made, opens a named pipe; a byte
written to it makes it write a core dump of the GPU and end the process. `cuda-gdb` then
lists the warps of the SM in focus with their PCs. Everything here is bounded in time and size, and
whatever fails becomes a note: a verdict never depends on it.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.execute.protocol import Warp
from harness.model import PoolSite
from harness.process import ProcessError, Supervisor

MAX_CORE_BYTES = 512 << 20
MAX_RAW_CHARS = 20_000
DUMP_SECONDS = 20.0
DEBUGGER_SECONDS = 60.0
MAX_PCS = 32

_FLAGS = "skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory"


@dataclass(frozen=True)
class DumpPaths:
    """Where one process's pipe and core file are."""

    pipe: Path
    core: Path


def environment(paths: DumpPaths, *, on_fault: bool) -> dict[str, str]:
    """What a process must have in its environment before its context is made.

    `on_fault`: dump when a kernel traps, and let the process report the error all the same; otherwise dump
    when told to through the pipe.
    """
    common = {"CUDA_COREDUMP_FILE": str(paths.core)}
    if on_fault:
        return common | {
            "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
            "CUDA_COREDUMP_GENERATION_FLAGS": f"{_FLAGS},skip_abort",
        }
    return common | {
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1",
        "CUDA_COREDUMP_PIPE": str(paths.pipe),
        "CUDA_COREDUMP_GENERATION_FLAGS": _FLAGS,
    }


def debugger() -> str | None:
    """The cuda-gdb of this machine, if there is one."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("cuda-gdb") or shutil.which("cuda-gdb", path=str(Path(home) / "bin"))


def trigger(paths: DumpPaths, *, gone: Callable[[], bool], seconds: float = DUMP_SECONDS) -> str | None:
    """Ask for a dump and wait until it is whole; None, or a note that says why there is none.

    `gone` tells whether the process has ended, which it does when the dump is complete.
    """
    try:
        fd = os.open(paths.pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENXIO):
            return "no core dump: the driver did not open its pipe"
        return f"no core dump: the driver's pipe cannot be opened: {error.strerror}"
    try:
        os.write(fd, b"1")
    except OSError as error:
        return f"no core dump: the driver's pipe cannot be written: {error.strerror}"
    finally:
        os.close(fd)
    return wait_for_core(paths.core, gone=gone, seconds=seconds)


def wait_for_core(core: Path, *, gone: Callable[[], bool], seconds: float) -> str | None:
    """Wait until a core file is whole: the process has ended, or the file stopped growing for a second."""
    until = time.monotonic() + seconds
    size, since = -1, time.monotonic()
    while time.monotonic() < until:
        now = core.stat().st_size if core.exists() else 0
        if now > MAX_CORE_BYTES:
            return f"no core dump: it grew beyond {MAX_CORE_BYTES >> 20} MiB"
        if now != size:
            size, since = now, time.monotonic()
        elif now and time.monotonic() - since > 1.0:
            return None
        if gone():
            return (
                None
                if core.exists() and core.stat().st_size
                else "no core dump: the process ended without one"
            )
        time.sleep(0.05)
    return f"no core dump: it was not complete after {seconds:g} s"


@dataclass(frozen=True)
class Reading:
    """What a core dump told: warps, instructions around them by offset, the debugger's text, notes."""

    warps: tuple[Warp, ...] = ()
    listing: Mapping[int, tuple[str, str | None]] = field(default_factory=dict)
    raw: str = ""
    notes: tuple[str, ...] = ()


def read(supervisor: Supervisor, core: Path, cuda_gdb: str) -> Reading:
    """Ask cuda-gdb twice: where the warps are, then what stands there."""
    first, note = _ask(
        supervisor, core, cuda_gdb, ["info cuda kernels", "info cuda warps", "info symbol $pc"]
    )
    raw = first[:MAX_RAW_CHARS]
    if note:
        return Reading(raw=raw, notes=(note,))
    warps = parse_warps(first)
    if not warps:
        return Reading(raw=raw, notes=("cuda-gdb listed no warps",))
    pcs = sorted({warp.pc for warp in warps})[:MAX_PCS]
    questions = [
        line for pc in pcs for line in (f"echo @@ {pc:#x}\\n", f"info symbol {pc:#x}", f"x/2i {pc - 16:#x}")
    ]
    second, note = _ask(supervisor, core, cuda_gdb, questions)
    located, listing = locate(warps, second)
    raw = f"{first}\n{second}"[:MAX_RAW_CHARS]
    return Reading(located, listing, raw, (note,) if note else ())


def _ask(
    supervisor: Supervisor, core: Path, cuda_gdb: str, commands: Sequence[str]
) -> tuple[str, str | None]:
    lines = ["set pagination off", "set width 0", "set confirm off", f"target cudacore {core}", *commands]
    argv = [cuda_gdb, "-nx", "-batch", *(word for line in lines for word in ("-ex", line))]
    try:
        finished = supervisor.run(argv, deadline=DEBUGGER_SECONDS, cwd=core.parent)
    except ProcessError as error:
        return "", f"cuda-gdb did not run: {error}"
    text = finished.stdout
    if finished.timed_out:
        return text, f"cuda-gdb was stopped after {DEBUGGER_SECONDS:g} s"
    if not finished.ok and not text.strip():
        return finished.stderr, f"cuda-gdb ended with exit code {finished.exit_code}"
    return text, None


_WARP_ROW = re.compile(
    r"^\s*(?P<focus>\*)?\s*(?P<warp>\d+)\s+(?P<active>0x[0-9a-fA-F]+)\s+(?P<divergent>0x[0-9a-fA-F]+)\s+"
    r"(?P<pc>0x[0-9a-fA-F]{9,16}|0x[0-9a-fA-F]+)\s+(?P<rest>.*)$"
)
_TRIPLE = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\)")
_SYMBOL = re.compile(r"^(?P<symbol>\S+)(?: \+ (?P<offset>\d+))? in section ")
_INSTRUCTION = re.compile(
    r"^\s*(?:=>|\*>)?\s*(?P<pc>0x[0-9a-fA-F]+)\s*(?:<(?P<symbol>.+?)(?:\+(?P<offset>\d+))?>)?\s*:\s*(?P<text>.*?)\s*$"
)


def parse_warps(text: str) -> tuple[Warp, ...]:
    """The rows of `info cuda warps`; slots without a warp ("n/a") are left out.

    Columns: focus mark, Wp, Active Lanes Mask, Divergent Lanes Mask, Active (Physical) PC, Kernel, BlockIdx,
    First Active ThreadIdx; newer debuggers add more behind the PC.
    """
    found = []
    for line in text.splitlines():
        row = _WARP_ROW.match(line)
        if row is None or int(row["active"], 16) == 0:
            continue
        triples = _TRIPLE.findall(row["rest"])
        if not triples:
            continue
        block = tuple(int(n) for n in triples[0])
        found.append(Warp(int(row["warp"]), (block[0], block[1], block[2]), int(row["pc"], 16)))
    return tuple(found)


def locate(warps: Sequence[Warp], text: str) -> tuple[tuple[Warp, ...], dict[int, tuple[str, str | None]]]:
    """Give every warp its offset in the kernel and its instruction, and all instructions seen, by offset.

    `text` answers, for each PC behind a line "@@ PC", `info symbol` and `x/i`; either will do.
    """
    offsets: dict[int, int] = {}
    instructions: dict[int, str] = {}
    asked: int | None = None
    for line in text.splitlines():
        if line.startswith("@@ "):
            asked = int(line.split()[1], 16)
        elif symbol := _SYMBOL.match(line):
            if asked is not None:
                offsets[asked] = int(symbol["offset"] or 0)
        elif one := _INSTRUCTION.match(line):
            pc = int(one["pc"], 16)
            instructions[pc] = one["text"]
            if one["symbol"]:
                offsets[pc] = int(one["offset"] or 0)
    found = tuple(
        replace(warp, offset=offsets.get(warp.pc), instruction=instructions.get(warp.pc, ""))
        for warp in warps
    )
    return found, {offsets[pc]: (code, None) for pc, code in instructions.items() if pc in offsets}


_BARRIERS = ("BAR.", "BARRIER", "B2B", "WARPSYNC", "UCGABAR_WAIT", "SYNCS.PHASECHK", "ACQBULK", "DEPBAR")
_LOOP_BYTES = 0x40
"""A try-alloc loop is a few instructions long: allocate, test, branch back."""


def explain(
    warps: Sequence[Warp], sites: Sequence[PoolSite], sass: Mapping[int, tuple[str, str | None]] | None = None
) -> tuple[Warp, ...]:
    """Say of each warp what it is doing. `sass` maps offsets to instruction and source line, where known."""
    lines = dict(sass or {})
    allocations = [site for site in sites if site.kind == "alloc"]
    done = []
    for warp in warps:
        if warp.offset is None:
            done.append(warp)
            continue
        text, source = lines.get(warp.offset, (warp.instruction, None))
        site = next((s for s in allocations if -16 <= warp.offset - s.pc <= _LOOP_BYTES), None)
        before = lines.get(warp.offset - 16, ("", None))
        if site is not None:
            doing, text, source = "spins", site.text, site.source or source
        elif "USETMAXREG" in text:
            doing = "spins"
        elif _is_barrier(text) or _is_barrier(before[0]):
            doing = "waits"
            text, source = (text, source) if _is_barrier(text) else before
        else:
            doing = "runs"
        done.append(replace(warp, instruction=text, source=source, doing=doing))
    return tuple(done)


def _is_barrier(text: str) -> bool:
    words = [word for word in text.split() if not word.startswith("@")]
    return bool(words) and words[0].startswith(_BARRIERS)


def opcode(text: str) -> str:
    """The opcode of an instruction, without predicate and operands."""
    words = [word for word in text.split() if not word.startswith("@")]
    return words[0].rstrip(";,") if words else ""


def summarise(warps: Sequence[Warp]) -> str:
    """One sentence about one CTA: "4 of 8 warps spin at … ; 4 wait at a barrier …"."""
    if not warps:
        return ""
    block = Counter(warp.block for warp in warps).most_common(1)[0][0]
    cta = [warp for warp in warps if warp.block == block]
    groups: dict[tuple[str, str, str | None], list[Warp]] = {}
    for warp in cta:
        groups.setdefault((warp.doing, opcode(warp.instruction), warp.source), []).append(warp)
    spinning = any(doing == "spins" for doing, _, _ in groups)
    parts: list[str] = []
    order = {"spins": 0, "waits": 1, "runs": 2}
    for (doing, code, source), members in sorted(
        groups.items(), key=lambda g: (order[g[0][0]], g[1][0].warp)
    ):
        count = f"{len(members)} of {len(cta)} warps" if not parts else str(len(members))
        one = len(members) == 1
        where = _where(members, code, source)
        if doing == "spins":
            parts.append(f"{count} {'spins' if one else 'spin'} at {where}")
        elif doing == "waits":
            behind = " behind them" if spinning else ""
            parts.append(f"{count} {'waits' if one else 'wait'} at a barrier{behind} ({where})")
        else:
            parts.append(f"{count} {'stands' if one else 'stand'} at {where}")
    return "; ".join(parts)


def _where(members: Sequence[Warp], code: str, source: str | None) -> str:
    offsets = sorted({warp.offset for warp in members if warp.offset is not None})
    places = ", ".join(f"+{offset:#x}" for offset in offsets) or f"PC {members[0].pc:#x}"
    return (f"{code} " if code else "") + places + (f", {source}" if source else "")


def pattern(warps: Sequence[Warp]) -> str:
    """What equal hangs share, whatever the addresses and number of warps: what is done at which opcode."""
    known = [warp for warp in warps if warp.offset is not None]
    spinning = [warp for warp in known if warp.doing == "spins"]
    kinds = {f"{warp.doing} {opcode(warp.instruction)}".strip() for warp in spinning or known}
    return ", ".join(sorted(kinds))
