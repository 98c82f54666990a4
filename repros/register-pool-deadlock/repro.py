"""With occupancy 16 warps wait for registers that nobody gives back: the kernel never ends

Can never finish on a GPU: it starts with 24 registers a thread and an empty pool, warps wait to grow to 32,
and no warp gives any back (1024 needed, 0 freed).

    pip install cuda-tile==1.5.0 'cuda-toolkit[nvcc,nvvm,tileiras]==13.3.1'
    python repro.py                  # launches where torch sees a GPU, else compiles for sm_90
    python repro.py --arch sm_120    # another target

The last line is SYMPTOM, OK or UNKNOWN with what was seen; the exit code 1, 0 or 2.
"""

import argparse
import contextlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

ARCH = "sm_90"  # where there is no GPU
SECONDS = 60  # for one compile
LAUNCH_SECONDS = 10  # for the kernel to end
NO_GPU = 3  # exit code


@ct.kernel(occupancy=16)
def kernel(x, y):
    ct.store(y, index=0, tile=ct.sum(ct.load(x, index=(0, 0), shape=(1, 4))))


def array(dtype, shape_divisible_by, stride_divisible_by, stride_constant, **more):
    """An array parameter: divisors and strides in elements, one a dimension; None is not known."""
    usual = {"base_addr_divisible_by": 16, "alias_groups": (), "may_alias_internally": False}
    return ArrayConstraint(
        dtype,
        len(stride_constant),
        **{"index_dtype": ct.int32, **usual, **more},
        stride_lower_bound_incl=0,
        shape_divisible_by=shape_divisible_by,
        stride_divisible_by=stride_divisible_by,
        stride_constant=stride_constant,
    )


def signature():
    """What a launch lets the compiler assume, and the constants that it bakes in."""
    parameters = [
        array(ct.float32, (1, 1), (4, 1), (None, 1)),  # x
        array(ct.float32, (1,), (1,), (1,)),  # y
    ]
    return KernelSignature(parameters, CallingConvention.cutile_python_v1())


def launch():
    """Launch the kernel once, and wait for it no longer than LAUNCH_SECONDS."""
    try:
        import torch
    except ImportError:
        sys.exit(NO_GPU)
    if not torch.cuda.is_available():
        sys.exit(NO_GPU)
    torch.manual_seed(0)
    x = torch.rand(1, 4, device="cuda").to(torch.float32)
    y = torch.rand(1, device="cuda").to(torch.float32)
    arguments = (x, y)
    ct.launch(torch.cuda.current_stream(), (1, 1, 1), kernel, arguments)
    signal.alarm(LAUNCH_SECONDS)  # ends the process, also while it is inside the driver
    torch.cuda.synchronize()


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


def last_words(output: str) -> str:
    """The exception that ended a process, on one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    start = next((i for i, line in enumerate(lines) if line.startswith("FAILED ")), len(lines) - 1)
    return " ".join(lines[start:]).removeprefix("FAILED ")[:300] if lines else "no output"


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
    return "fails", last_words(output) if code is not None else f"nothing happened within {SECONDS:g} s"


def main():
    """Show the symptom, as far as it shows here."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default=ARCH, help="architecture to compile for without a GPU")
    arch = parser.parse_args().arch
    with tempfile.TemporaryDirectory() as scratch:
        outcome, words = launch_apart(scratch)
        if outcome == "hangs":
            finish("SYMPTOM", words)
        if outcome == "finishes":
            finish("OK", words)

        code, cubin, output, _ = compile_apart(arch, scratch)
        if code is None:
            finish("UNKNOWN", f"compiling for {arch} did not end within {SECONDS:g} s")
        if code != 0:
            finish("UNKNOWN", last_words(output))

        registers, threads = resources(cubin)
        grow, shrink = pool_requests(cubin)
        facts = f"{arch}: {registers} registers, {threads} threads, warps grow to {grow}"
        facts += f", shrink to {shrink}"
        if any(count > registers for count in grow) and not any(count < registers for count in shrink):
            finish("SYMPTOM", f"{facts}: no warp ever gives back what others wait for")
        finish("OK", facts)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["compile"]:
            _, _, arch, path = sys.argv
            export_kernel(kernel, [signature()], path, gpu_code=arch, output_format="cubin")
        elif sys.argv[1:2] == ["launch"]:
            launch()
        else:
            main()
    except Exception as error:
        sys.exit(f"FAILED {type(error).__name__}: {error}")
