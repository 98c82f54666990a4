"""What a run costs: our CPU seconds beside the compilers' own, and beside the naive way.

    python ci/bench.py [MATRIX] [--naive N] [--jobs J]

One process tree after the other, on the same machine, in the same minutes: compare the ratios, not
the seconds. The naive way is a fresh Python per cell that calls `cuda.tile.compilation.export_kernel`
to a cubin, with the same frontends and backends; it is measured on every N-th cell and scaled up (N
prime to the number of toolchains and architectures, so that none is left out). Compilers are
installed before the clock starts; the cubin cache is cold.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.kernels import get
from harness.lab import Lab
from harness.matrix import load_matrix
from harness.model import Cell
from harness.plan import plan

_NAIVE = """
import importlib.util, io, json, sys
request = json.load(sys.stdin)
sys.path.insert(0, request["tracer"])
from tracer_worker import SignatureBuilder, with_hints
from cuda.tile.compilation import export_kernel
import cuda.tile
spec = importlib.util.spec_from_file_location("kernel", request["spec"]["source"]["path"])
module = importlib.util.module_from_spec(spec)
sys.modules["kernel"] = module
spec.loader.exec_module(module)
kernel = with_hints(getattr(module, request["spec"]["source"]["function"]), request["spec"]["hints"])
build = SignatureBuilder(request["version"]).build
signature = build(request["spec"]["parameters"], request["spec"]["calling_convention"])
export_kernel(kernel, [signature], io.BytesIO(), gpu_code=request["arch"], output_format="cubin")
"""


def cpu_of_children() -> float:
    """CPU seconds of all children waited for so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured_run(matrix: Path, out: Path, store: Path, jobs: int) -> tuple[float, float, dict]:
    """(wall, CPU, facts) of one `harness run`."""
    before, started = cpu_of_children(), time.monotonic()
    command = [
        sys.executable,
        "-m",
        "harness",
        "run",
        str(matrix),
        "--out",
        str(out),
        "--store",
        str(store),
        "-q",
    ]
    done = subprocess.run(
        [*command, "--jobs", str(jobs)], stdout=subprocess.DEVNULL, timeout=3600, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"harness run ended in {done.returncode}")
    wall, cpu = time.monotonic() - started, cpu_of_children() - before
    return wall, cpu, json.loads((out / "run.json").read_text())


def naive_cpu(lab: Lab, cells: list[Cell]) -> float:
    """CPU seconds of a fresh Python per cell that exports to a cubin; failures cost what they cost."""
    before = cpu_of_children()
    for cell in cells:
        frontend = lab.provisioner.frontend(cell.toolchain.cuda_tile)
        backend = lab.provisioner.backend(cell.toolchain)
        request = {
            "tracer": str(Path(__file__).parents[1] / "harness/compile"),
            "spec": get(cell.case.kernel).specialise(cell.case).to_json(),
            "version": frontend.version,
            "arch": cell.arch,
        }
        environment = {
            **os.environ,
            "PYTHONPATH": frontend.root,
            "PATH": f"{backend.root}/bin:{os.environ['PATH']}",
            "CUDA_TILE_CACHE_DIR": "0",
        }
        subprocess.run(
            [sys.executable, "-c", _NAIVE],
            input=json.dumps(request).encode(),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
    return cpu_of_children() - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrix", type=Path, nargs="?", default=Path("matrix.toml"))
    parser.add_argument("--naive", type=int, default=5, help="measure the naive way on every N-th cell")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        store, out = Path(scratch) / "store", Path(scratch) / "out"
        matrix = load_matrix(arguments.matrix)
        cells = [cell for cell in plan(matrix) if cell.device is None]
        with Lab(store) as lab:
            for toolchain in matrix.toolchains:
                lab.provisioner.backend(toolchain)
                lab.provisioner.frontend(toolchain.cuda_tile)
            wall, cpu, facts = measured_run(arguments.matrix, out, store, arguments.jobs)
            again_wall, again_cpu, _ = measured_run(arguments.matrix, out, store, arguments.jobs)
            sample = cells[:: arguments.naive]
            naive = naive_cpu(lab, sample) * len(cells) / len(sample)
    inside = facts["cpu_seconds"]["compilers"] + facts["cpu_seconds"]["tracers"]
    print(f"cells compiled                      {len(cells)}, {facts['compiles']} compiles")
    print(f"cold cubin cache                    {wall:.1f} s wall, {cpu:.1f} s CPU")
    print(f"  inside compilers and tracers      {inside:.1f} s CPU")
    print(f"  ours / theirs                     {cpu / inside:.3f}   (at most 1.15)")
    print(
        f"repeat                              {again_wall:.1f} s wall, {again_cpu:.1f} s CPU   (at most 5 s)"
    )
    print(f"naive, from {len(sample)} of {len(cells)} cells         {naive:.1f} s CPU")
    print(f"  naive / ours                      {naive / cpu:.2f}   (2 expected)")


if __name__ == "__main__":
    main()
