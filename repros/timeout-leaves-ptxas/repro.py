"""A compile timeout of cuda.tile leaves ptxas running.

CUDA_TILE_COMPILER_TIMEOUT_SEC ends tileiras alone. If it strikes while tileiras waits for its child ptxas,
that goes on, without a parent, until it is done: for minutes, with large kernels, and with a whole core.

    pip install cuda-tile==1.7.0 'cuda-toolkit[nvcc,nvvm,tileiras]==13.5.0'
    python repro.py

Needs no GPU. It first watches a compile to learn when ptxas runs, then sets the timeout to strike then, shows
what is left, and ends it. The last line is SYMPTOM, OK or UNKNOWN; the exit code 1, 0 or 2.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

ARCH = "sm_100"
SECONDS = 120  # for one compile
ATTEMPTS = (0.5, 0.3, 0.7, 0.5, 0.4, 0.6)  # where in ptxas's time the timeout shall strike


@ct.kernel
def long_to_assemble(x):
    """So many instructions in a row that ptxas takes seconds."""
    tile = ct.load(x, index=(0, 0), shape=(128, 128))
    for _ in ct.static_iter(range(3)):
        tile = ct.sin(tile) + ct.exp(tile)
    ct.store(x, index=(0, 0), tile=tile)


def compile_here(path):
    x = ArrayConstraint(
        ct.float32,
        2,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(None, 1),
        stride_divisible_by=(4, 1),
        shape_divisible_by=(16, 16),
        base_addr_divisible_by=16,
    )
    signature = KernelSignature([x], CallingConvention.cutile_python_v1())
    export_kernel(
        long_to_assemble, [signature], path, gpu_code=ARCH, output_format="cubin", bytecode_version="13.1"
    )


def members(group):
    """pid: (name, CPU seconds, parent) of the living processes of a group."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[2]) == group and fields[0] not in "ZX":
                cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                found[int(pid)] = (name, cpu, int(fields[1]))
    return found


@contextlib.contextmanager
def compiling(scratch, **variables):
    """This file again, compiling, in a process group of its own that is killed in the end."""
    environment = {
        **os.environ,
        "CUDA_TILE_CACHE_DIR": "off",
        "CUDA_TILE_TEMP_DIR": scratch,
        "TMPDIR": scratch,
        **variables,
    }
    command = [sys.executable, os.path.abspath(__file__), "compile", os.path.join(scratch, "kernel.cubin")]
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, start_new_session=True
    )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stderr.close()


def when_ptxas_runs(scratch):
    """Seconds after the start of the last tileiras when ptxas was first and last seen."""
    tileiras, began, seen = None, 0.0, []
    with compiling(scratch) as child:
        until = time.monotonic() + SECONDS
        while child.poll() is None and time.monotonic() < until:
            now = time.monotonic()
            for pid, (name, _, _) in members(child.pid).items():
                if name == "tileiras" and pid != tileiras:
                    tileiras, began, seen = pid, now, []
                elif name == "ptxas":
                    seen.append(now - began)
            time.sleep(0.02)
        if child.returncode != 0:
            finish("UNKNOWN", f"a compile without a timeout fails: {child.stderr.read().decode()[-300:]}")
    if not seen:
        finish("UNKNOWN", "ptxas was never seen")
    return seen[0], seen[-1]


def left_over(scratch, timeout):
    """What is left of a compile after its timeout: CPU seconds of ptxas now and a second later, or None."""
    with compiling(scratch, CUDA_TILE_COMPILER_TIMEOUT_SEC=f"{timeout:.2f}") as child:
        child.wait(SECONDS)
        if b"TileCompilerTimeoutError" not in child.stderr.read():
            return None
        before = {pid: facts for pid, facts in members(child.pid).items() if facts[0] == "ptxas"}
        time.sleep(1)
        after = members(child.pid)
        orphans = [(facts[1], after[pid][1]) for pid, facts in before.items() if pid in after]
        return orphans[0] if orphans else None


def finish(word, text):
    print(f"{word}: {text}")
    sys.exit({"SYMPTOM": 1, "OK": 0}.get(word, 2))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for part in ATTEMPTS:
            first, last = when_ptxas_runs(scratch)
            timeout = first + part * (last - first)
            print(f"ptxas runs from {first:.1f} to {last:.1f} s; timeout {timeout:.1f} s")
            orphan = left_over(scratch, timeout)
            if orphan is not None:
                words = f"{orphan[0]:.1f} s of CPU then, {orphan[1]:.1f} s a second later"
                finish("SYMPTOM", f"after TileCompilerTimeoutError ptxas runs on without a parent ({words})")
        finish("OK", f"no ptxas outlived its compile in {len(ATTEMPTS)} attempts")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compile"]:
        compile_here(sys.argv[2])
    else:
        main()
