"""Since 13.4 a 16 x 128 tile of float32 takes tileiras fifty times as long

Compiling takes 13.9 s of CPU (tileiras 7.2 s, ptxas 6.5 s).

    pip install cuda-tile==1.7.0 'cuda-toolkit[nvcc,nvvm,tileiras]==13.5.0'
    python repro.py                  # launches where torch sees a GPU, else compiles for sm_90
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

ARCH = "sm_90"  # where there is no GPU
SECONDS = 120  # for one compile
LAUNCH_SECONDS = 10  # for the kernel to end
NO_GPU = 3  # exit code


@ct.kernel
def static_persistent(
    x,
    w,
    y,
    rstd,
    TILE_M: ct.Constant[int],
    TILE_N: ct.Constant[int],
    EPS: ct.Constant[float],
    OFFSET: ct.Constant[float],
    ALLOW_TMA: ct.Constant[bool],
    LATENCY: ct.Constant[int],
):
    """As many blocks as SMs stride over tiles of rows; a tile spans a whole row, w is loaded once."""
    columns = x.shape[1]
    w_tile = ct.load(w, index=(0,), shape=(TILE_N,), padding_mode=ct.PaddingMode.ZERO)
    scale = (OFFSET + w_tile.astype(ct.float32)).reshape((1, TILE_N))
    for tile in range(ct.bid(0), ct.cdiv(x.shape[0], TILE_M), ct.num_blocks(0)):
        x_tile = ct.load(
            x,
            index=(tile, 0),
            shape=(TILE_M, TILE_N),
            padding_mode=ct.PaddingMode.ZERO,
            latency=LATENCY,
            allow_tma=ALLOW_TMA,
        ).astype(ct.float32)
        mean_square = ct.sum(x_tile * x_tile, axis=1, keepdims=True) / columns
        inverse = ct.rsqrt(mean_square + EPS)
        ct.store(rstd, index=(tile,), tile=inverse.reshape((TILE_M,)), allow_tma=False)
        y_tile = (x_tile * inverse * scale).astype(y.dtype)
        ct.store(y, index=(tile, 0), tile=y_tile, allow_tma=False, latency=3)


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
        array(ct.float32, (16, 1), (4, 1), (None, 1)),  # x
        array(ct.float32, (1,), (1,), (1,)),  # w
        array(ct.float32, (16, 1), (4, 1), (None, 1)),  # y
        array(ct.float32, (16,), (1,), (1,)),  # rstd
        16,  # TILE_M
        128,  # TILE_N
        1e-06,  # EPS
        0.0,  # OFFSET
        True,  # ALLOW_TMA
        10,  # LATENCY
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
    x = torch.rand(256, 100, device="cuda").to(torch.float32)
    w = torch.rand(100, device="cuda").to(torch.float32)
    y = torch.rand(256, 100, device="cuda").to(torch.float32)
    rstd = torch.rand(256, device="cuda").to(torch.float32)
    arguments = (x, w, y, rstd, 16, 128, 1e-06, 0.0, True, 10)
    ct.launch(torch.cuda.current_stream(), (16, 1, 1), static_persistent, arguments)
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


def main():
    """Show the symptom, as far as it shows here."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", default=ARCH, help="architecture to compile for without a GPU")
    arch = parser.parse_args().arch
    with tempfile.TemporaryDirectory() as scratch:
        code, _, output, cpu = compile_apart(arch, scratch)
        if code not in (0, None):
            finish("UNKNOWN", last_words(output))
        seconds = sum(cpu.get(name, 0.0) for name in ("tileiras", "ptxas"))
        facts = f"compiling for {arch} took {seconds:.1f} s of CPU ({shares(cpu)})"
        finish("SYMPTOM" if seconds > 2 or code is None else "OK", facts)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["compile"]:
            _, _, arch, path = sys.argv
            export_kernel(static_persistent, [signature()], path, gpu_code=arch, output_format="cubin")
        elif sys.argv[1:2] == ["launch"]:
            launch()
        else:
            main()
    except Exception as error:
        sys.exit(f"FAILED {type(error).__name__}: {error}")
