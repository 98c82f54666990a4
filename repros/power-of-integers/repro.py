"""Raising integers to a power ends in an internal error of cuda.tile

cuda-tile 1.7.0 failed inside with InternalError: Internal error: Missing binary arithmetic implementation
for pow, int

    pip install cuda-tile==1.7.0 'cuda-toolkit[nvcc,nvvm,tileiras]==13.2.2'
    python repro.py                  # launches where torch sees a GPU, else compiles for sm_100
    python repro.py --arch sm_120    # another target

The last line is SYMPTOM, OK or UNKNOWN with what was seen; the exit code 1, 0 or 2.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

ARCH = "sm_100"  # where there is no GPU
SECONDS = 60  # for one compile
LAUNCH_SECONDS = 10  # for the kernel to end
NO_GPU, DIFFERS = 3, 4  # exit codes


@ct.kernel
def kernel(a):
    t = ct.load(a, index=(0, 0), shape=(1, 1))
    ct.store(a, index=(0, 0), tile=t**t)


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
        array(ct.int8, (1, 1), (16, 1), (None, 1)),  # a
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
    # Sizes are a guess: the fault shows while compiling.
    a = torch.rand(18561, device="cuda").to(torch.int8).as_strided((129, 129), (144, 1), 0)
    ct.launch(torch.cuda.current_stream(), (1, 1, 1), kernel, (a,))
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


def main():
    """Show the symptom, as far as it shows here."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default=ARCH, help="architecture to compile for without a GPU")
    arch = parser.parse_args().arch
    with tempfile.TemporaryDirectory() as scratch:
        code, _, output, _ = compile_apart(arch, scratch)
        words = last_words(output)
        if code == 1 and "InternalError" in words.partition(":")[0]:
            finish("SYMPTOM", f"tracing the kernel fails: {words}")
        finish("OK" if code == 0 else "UNKNOWN", "the kernel becomes bytecode" if code == 0 else words)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["compile"]:
            _, _, arch, path = sys.argv
            export_kernel(kernel, [signature()], path, gpu_code=arch, output_format="tileir_bytecode", bytecode_version="13.1")
        elif sys.argv[1:2] == ["launch"]:
            launch()
        else:
            main()
    except Exception as error:
        sys.exit(f"FAILED {type(error).__name__}: {error}")
