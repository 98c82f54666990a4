"""Functions that repro.py files are put together from.

`script.py` copies their text. So each stands for itself: it uses the standard library, cuda.tile as
`ct` and other parts only, and the names in capitals that every repro.py defines (see `Settings` there).
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time
from typing import Any

SECONDS: float = 60.0
LAUNCH_SECONDS: int = 10
NO_GPU: int = 3
DIFFERS: int = 4
TOLERANCE: float = 0.0


def run_apart(*arguments: str, scratch: str) -> tuple[int | None, str, dict[str, float]]:
    """Run this file again; its exit code (None at the deadline), output, and CPU seconds by process.

    It gets a process group of its own, which is killed whole: a killed tileiras leaves its ptxas running.
    """
    environment = {
        **os.environ,
        "CUDA_TILE_CACHE_DIR": "off",
        "CUDA_TILE_TEMP_DIR": scratch,
        "TMPDIR": scratch,
    }
    command = [sys.executable, os.path.abspath(__file__), *arguments]
    cpu: dict[tuple[str, str], float] = {}
    with open(os.path.join(scratch, "log"), "w+") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        until = time.monotonic() + SECONDS
        try:
            while child.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
                cpu.update(cpu_of_group(child.pid))
        finally:
            code = child.poll()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        log.seek(0)
        output = log.read()
    names = {name for _, name in cpu}
    return code, output, {name: sum(s for (_, n), s in cpu.items() if n == name) for name in names}


def cpu_of_group(group: int) -> dict[tuple[str, str], float]:
    """CPU seconds of the living processes of a group, by (pid, name)."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[2]) == group:
                ticks = int(fields[11]) + int(fields[12])
                found[pid, name] = ticks / os.sysconf("SC_CLK_TCK")
    return found


def sections(cubin: bytes) -> dict[str, bytes]:
    """Contents of the sections of an ELF file, by name."""
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count, strings = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + index * size) for index in range(count)]
    names = cubin[heads[strings][4] :]
    return {
        names[head[0] :].partition(b"\0")[0].decode(): cubin[head[4] : head[4] + head[5]] for head in heads
    }


def attribute(info: bytes, wanted: int) -> tuple[int, ...] | None:
    """The 32-bit words of an attribute of a .nv.info section: 0x2f register count, 0x10 threads."""
    position = 0
    while position + 4 <= len(info):
        form, name, size = struct.unpack_from("<BBH", info, position)
        position += 4
        if form == 4:
            if name == wanted:
                return struct.unpack_from(f"<{size // 4}I", info, position)
            position += size
    return None


def resources(cubin: bytes) -> tuple[int, int]:
    """Registers a thread and threads a block of a cubin's one kernel."""
    found = sections(cubin)
    registers = attribute(found[".nv.info"], 0x2F)
    kernel = next(info for name, info in found.items() if name.startswith(".nv.info."))
    threads = attribute(kernel, 0x10)
    assert registers is not None and threads is not None
    return registers[1], threads[0] * threads[1] * threads[2]


def instructions(cubin: bytes) -> list[tuple[int, int]]:
    """The two 64-bit words of every instruction; the low 12 bits of the first are the opcode."""
    code = next(data for name, data in sections(cubin).items() if name.startswith(".text."))
    words = struct.unpack(f"<{len(code) // 8}Q", code)
    return list(zip(words[::2], words[1::2], strict=True))


def pool_requests(cubin: bytes) -> tuple[list[int], list[int]]:
    """What USETMAXREG (opcode 0x9c8) grows warps to, and what it shrinks them to: registers a thread."""
    pool = [(first >> 32, second >> 8 & 7) for first, second in instructions(cubin) if first & 0xFFF == 0x9C8]
    return [count for count, kind in pool if kind == 6], [count for count, kind in pool if kind == 5]


def tensor_loads(cubin: bytes) -> int:
    """How many TMA loads of tiles (UTMALDG of rank 2 and more) there are."""
    words = [second for first, second in instructions(cubin) if first & 0xFFF in (0x3B4, 0x5B4)]
    return sum(second >> 15 & 7 > 0 for second in words)


def local_accesses(cubin: bytes) -> int:
    """How many instructions read or write local memory, where spilled registers lie (STL, LDL)."""
    return sum(first & 0xFFF in (0x387, 0x983) for first, _ in instructions(cubin))


def last_words(output: str) -> str:
    """The exception that ended a process, on one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    start = next((i for i, line in enumerate(lines) if line.startswith("FAILED ")), len(lines) - 1)
    return " ".join(lines[start:]).removeprefix("FAILED ")[:300] if lines else "no output"


def refused(words: str) -> bool:
    """Whether the compiler says that it does not know the target, or bytecode this new."""
    told = (
        *("Cannot find option named", "invalid GPU architecture"),
        *("unsupported Tile version", "unsupported Tile IR bytecode version"),
    )
    return any(text in words for text in told)


def shares(cpu: dict[str, float]) -> str:
    """CPU seconds by process, in words."""
    told = [f"{name} {seconds:.1f} s" for name, seconds in sorted(cpu.items(), key=lambda pair: -pair[1])]
    return ", ".join(told) or "none"


def finish(word: str, text: str) -> None:
    """The last line, and the exit code: 1 for SYMPTOM, 0 for OK, 2 for UNKNOWN."""
    print(f"{word}: {text}")
    sys.exit({"SYMPTOM": 1, "OK": 0}.get(word, 2))


def compile_apart(arch: str, scratch: str) -> tuple[int | None, bytes, str, dict[str, float]]:
    """Compile ahead of time; exit code (None at the deadline), cubin, output, CPU seconds by process."""
    path = os.path.join(scratch, "kernel.cubin")
    code, output, cpu = run_apart("compile", arch, path, scratch=scratch)
    if code != 0:
        return code, b"", output, cpu
    with open(path, "rb") as file:
        return code, file.read(), output, cpu


def launch_apart(scratch: str) -> tuple[str, str]:
    """Launch on the GPU; one of finishes, hangs, fails, "no GPU", and a sentence."""
    code, output, _ = run_apart("launch", scratch=scratch)
    if code == NO_GPU:
        return "no GPU", ""
    if code == -signal.SIGALRM:
        return "hangs", f"the kernel was launched and did not end within {LAUNCH_SECONDS} s"
    if code == 0:
        return "finishes", "the kernel was launched and ended"
    if code == DIFFERS:
        return "differs", last_words(output)
    return "fails", last_words(output) if code is not None else f"nothing happened within {SECONDS:g} s"


def fenced(torch: Any, given: Any) -> tuple[Any, Any]:
    """An output that no kernel has written, and the memory behind it, which no kernel may write."""
    fill = float("nan") if given.is_floating_point() else 77
    base = torch.full((given.numel() + 64,), fill, device=given.device).to(given.dtype)
    return base[: given.numel()].view(given.shape), base[given.numel() :]


def overrun(fences: dict[str, Any]) -> str:
    """Which outputs were written beyond their end, in a sentence; "" if none."""
    found = []
    for name, fence in ((name, one.double()) for name, one in fences.items()):
        touched = ~(fence.isnan() | (fence == 77))
        if touched.any():
            found.append(f"{name}: {int(touched.sum())} elements behind its end were overwritten")
    return "; ".join(found)


def disagreement(launches: list[dict[str, Any]], expected: dict[str, Any]) -> str:
    """What is wrong with the outputs of equal launches, in a sentence; "" if nothing is.

    `launches` holds a dict of tensors for each, `expected` the same in float64 for outputs that have a
    reference.
    """
    found = []
    for name, first in ((name, one.double()) for name, one in launches[0].items()):
        total = first.numel()
        for later in (one[name].double() for one in launches[1:]):
            unequal = (later != first) & ~(later.isnan() & first.isnan())
            if unequal.any():
                found.append(f"{name}: {int(unequal.sum())} of {total} elements differ between two launches")
                break
        if name in expected:
            exact = expected[name].double().expand(first.shape)
            room = TOLERANCE * exact[exact.isfinite()].abs().max() if exact.isfinite().any() else 0.0
            for one in launches:
                got = one[name].double()
                close = ((got - exact).abs() <= room) | (got == exact) | (got.isnan() & exact.isnan())
                if not close.all():
                    at = tuple((~close).nonzero()[0].tolist())
                    words = f"{int((~close).sum())} of {total} elements are wrong, the first at {list(at)}: "
                    found.append(f"{name}: {words}{got[at].item():.6g} for {exact[at].item():.6g}")
                    break
    return "; ".join(found)
