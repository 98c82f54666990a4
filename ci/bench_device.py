"""What running cases on a GPU costs: ours beside the plain way, and with hangs beside without.

    python3 ci/bench_device.py BUNDLE --out DIR [--only PART ...] [--seconds S]

Parts, each of about S seconds (default 25), so that all take about four minutes:

    warm      verified cases a second in warm processes, cases up to 1 M elements
    process   the same, a process per case
    torch     the same in the plain way: a fresh Python with torch per case, one at a time and many at once
    hang      one case in ten hangs on a 5-second deadline, beside the same cases without
    hang20    twenty hangs in a row, then the GPU's memory in use and a case that must pass

All parts run on the same machine, one after the other: compare the ratios. Writes DIR/bench_device.json
after every part, so that what is cut short keeps what it had, and prints a Markdown table at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.bundle import read_bundle, unpack_cubins
from harness.execute import Gpu, Launch, Observation, PoolOptions, execute, judge_run
from harness.execute.device import NoDevice, find
from harness.execute.launches import launch_of, nothing_to_launch
from harness.execute.protocol import Timeouts
from harness.kernels import get
from harness.model import CellResult, Verdict
from harness.process import Supervisor

MAX_ELEMENTS = 1 << 20
HANG_SECONDS = 5.0
HANGS_IN_A_ROW = 20
WAITING = 48
"""Hung processes that may wait for their deadline at once; each costs a context, about half a GB."""

SPIN = b""".version 7.8
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 y, .param .u32 shape, .param .u32 stride)
{
    .reg .pred %p;
    .reg .u32 %r;
    .reg .u64 %d;
    ld.param.u64 %d, [y];
    cvta.to.global.u64 %d, %d;
LOOP:
    ld.volatile.global.u32 %r, [%d];
    setp.ne.u32 %p, %r, 1;
    @%p bra LOOP;
    ret;
}
\0"""
"""Never ends. For bundles without a kernel that does the same."""


@dataclass
class Bench:
    """A bundle's launches on this machine's first GPU."""

    supervisor: Supervisor
    gpu: Gpu
    good: list[Launch]
    deadlocked: list[Launch]
    seconds: float
    folder: Path

    @property
    def cores(self) -> int:
        return len(os.sched_getaffinity(0))

    def cases(self) -> Iterator[Launch]:
        """Good cases without end: the bundle's own, then the same with other data."""
        seed = 0
        while True:
            for launch in self.good:
                yield replace(launch, case=f"{launch.case}-{seed}", seed=launch.seed + seed)
            seed += 1

    def measure(self, launches: Iterable[Launch], options: PoolOptions) -> dict[str, Any]:
        """Run to the end; cases, wall seconds, verdicts."""
        verdicts: Counter[str] = Counter()

        def judged(launch: Launch, observation: Observation) -> None:
            verdicts[str(judge_run(observation).verdict)] += 1

        started = time.monotonic()
        execute(self.supervisor, launches, (self.gpu,), judged, options)
        wall = time.monotonic() - started
        done = sum(verdicts.values())
        return {"cases": done, "wall": wall, "rate": done / wall, "verdicts": dict(verdicts)}

    def for_a_while(self) -> Iterator[Launch]:
        until = time.monotonic() + self.seconds
        for launch in self.cases():
            if time.monotonic() > until:
                return
            yield launch

    def hanging(self) -> Launch:
        """One case that never ends: the bundle's own if it has one."""
        if self.deadlocked:
            return self.deadlocked[0]
        path = self.folder / "spin.ptx"
        path.write_bytes(SPIN)
        y = next(a for a in self.good[0].arrays if a.name == "rstd")
        return replace(
            self.good[0],
            case="spin",
            cubin=str(path),
            cubin_sha256="spin",
            symbol="spin",
            grid=(1, 1, 1),
            arguments=(y,),
            reference=None,
            relations=(),
        )


# --- parts --------------------------------------------------------------------------------------


def warm(bench: Bench) -> dict[str, Any]:
    return bench.measure(bench.for_a_while(), PoolOptions(workers=max(2, min(12, bench.cores - 2))))


def process(bench: Bench) -> dict[str, Any]:
    options = PoolOptions(workers=bench.cores, spares=4, isolation="process")
    return bench.measure(bench.for_a_while(), options)


def torch(bench: Bench) -> dict[str, Any]:
    """A fresh Python with torch per case: three one after the other, then one per core at once."""
    python = torch_python()
    if python is None:
        return {"skipped": "no Python here has torch"}
    plain = [
        launch
        for launch in bench.good
        if all(a.offset == 0 and _contiguous(a.shape, a.strides) for a in launch.arrays)
        and launch.arrays[0].dtype in ("bfloat16", "float16", "float32")
        and launch.arrays[0].values == "normal"
        and 0 not in launch.arrays[0].shape
    ]
    if not plain:
        return {"skipped": "the bundle has no contiguous case of normal values"}
    script = Path(__file__).with_name("torch_baseline.py")

    def one(number: int) -> int:
        launch = plain[number % len(plain)]
        request = bench.folder / f"torch-{number}.json"
        request.write_text(json.dumps(_request(launch, number)))
        command = [python, str(script), str(request)]
        done = bench.supervisor.run(command, deadline=120.0)
        return 0 if done.ok else 1

    one(0)  # reads torch from disk once
    started = time.monotonic()
    wrong = sum(one(n) for n in range(3))
    alone = 3 / (time.monotonic() - started)
    count = 2 * bench.cores
    started = time.monotonic()
    with ThreadPoolExecutor(bench.cores) as pool:
        wrong += sum(pool.map(one, range(count)))
    wall = time.monotonic() - started
    return {"cases": count, "wall": wall, "rate": count / wall, "rate_one_at_a_time": alone, "wrong": wrong}


def hang(bench: Bench) -> dict[str, Any]:
    """The same number of cases with and without one in ten that hangs."""
    options = PoolOptions(workers=max(2, min(12, bench.cores - 2)), waiting=WAITING, spares=6)
    plain = bench.measure(bench.for_a_while(), options)
    bad, count = bench.hanging(), plain["cases"]
    bad = replace(bad, timeouts=replace(bad.timeouts, launch=HANG_SECONDS))
    until = time.monotonic() + 4 * bench.seconds

    def mixed() -> Iterator[Launch]:
        for number, launch in enumerate(islice(bench.cases(), count)):
            if time.monotonic() > until:
                return
            yield replace(bad, case=f"{bad.case}-{number}") if number % 10 == 0 else launch

    seen = bench.measure(mixed(), options)
    slower = (seen["wall"] / seen["cases"]) / (plain["wall"] / plain["cases"]) if seen["cases"] else None
    return {**seen, "without": plain, "times_as_long": slower}


def hang20(bench: Bench) -> dict[str, Any]:
    bad, good = bench.hanging(), bench.good[0]
    bad = replace(bad, timeouts=replace(bad.timeouts, launch=1.0))
    alone = PoolOptions(workers=1, waiting=0, spares=1, confirm=False)
    hung = bench.measure((replace(bad, case=f"hang-{n}") for n in range(HANGS_IN_A_ROW)), alone)
    memory = _nvidia_smi("--query-gpu=index,memory.used")
    processes = _nvidia_smi("--query-compute-apps=pid,used_memory")
    after = bench.measure([good], alone)
    return {**hung, "memory_used": memory, "processes": processes, "next_case": after["verdicts"]}


PARTS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "warm": warm,
    "process": process,
    "torch": torch,
    "hang": hang,
    "hang20": hang20,
}


# --- what they need -----------------------------------------------------------------------------


def launches_of(results: Iterable[CellResult], cubins: dict[str, Path], gpu: Gpu) -> tuple[list, list]:
    """(good, deadlocked) launches of the bundle's device cells for this GPU's architecture. Cases of more
    than MAX_ELEMENTS get fewer rows, of the same divisibility."""
    good, deadlocked = [], []
    listed = list(results)
    static = {r.cell.id: r for r in listed if r.cell.device is None}
    for result in listed:
        cell = result.cell
        twin = static.get(replace(cell, device=None).id)
        if cell.device is None or cell.arch != gpu.arch or twin is None or twin.inspection is None:
            continue
        sha256 = twin.compile.cubin_sha256 if twin.compile else None
        kernel = get(cell.case.kernel)
        if sha256 not in cubins or kernel.reference is None or len(cell.case.shape) != 2:
            continue
        rows, columns = cell.case.shape
        most = max(16, MAX_ELEMENTS // columns // 16 * 16)
        case = replace(cell.case, shape=(most if rows % 16 == 0 else most - 1, columns))
        cell = cell if rows <= most else replace(cell, case=case)
        if nothing_to_launch(cell.case, kernel, gpu.sm_count) is not None:
            continue
        launch = launch_of(
            cell, kernel, twin.inspection, cubins[sha256], sha256, gpu.sm_count, Timeouts(launch=HANG_SECONDS)
        )
        (deadlocked if twin.verdict is Verdict.PREDICTED_DEADLOCK else good).append(launch)
    return good, deadlocked


def torch_python() -> str | None:
    """A Python that has torch: this one, or the system's."""
    for python in (sys.executable, shutil.which("python3"), "/usr/bin/python3"):
        if python and Path(python).exists():
            probe = [
                python,
                "-c",
                "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)",
            ]
            if subprocess.run(probe, capture_output=True, timeout=30, check=False).returncode == 0:
                return python
    return None


def _request(launch: Launch, seed: int) -> dict[str, Any]:
    assert launch.reference is not None
    return {
        "cubin": launch.cubin,
        "symbol": launch.symbol,
        "grid": launch.grid,
        "seed": seed,
        "eps": launch.reference.parameters["eps"],
        "offset": launch.reference.parameters["offset"],
        "arrays": [
            {"name": a.name, "dtype": a.dtype, "shape": a.shape, "role": a.role} for a in launch.arrays
        ],
    }


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride != expected:
            return False
        expected *= size
    return True


def _nvidia_smi(query: str) -> list[str]:
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"nvidia-smi: {error}"]
    return [line for line in done.stdout.splitlines() if line.strip()]


# --- the report ---------------------------------------------------------------------------------


def table(found: dict[str, Any]) -> str:
    """Markdown; a rate beside how many times it is the plain way's, where both were measured."""
    plain = found.get("torch", {}).get("rate")
    names = {
        "warm": "warm processes",
        "process": "a process per case",
        "torch": "plain: a fresh Python with torch per case, all cores",
        "hang": f"one case in ten hangs, {HANG_SECONDS:g} s deadline",
        "hang20": f"{HANGS_IN_A_ROW} hangs in a row, 1 s deadline",
    }
    lines = [
        "| what | cases | seconds | cases/s | × plain | verdicts |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for part, name in names.items():
        seen = found.get(part)
        if seen is None:
            continue
        if "rate" not in seen:
            lines.append(f"| {name} | | | | | {seen.get('skipped') or seen.get('failed')} |")
            continue
        ratio = f"{seen['rate'] / plain:.1f}" if plain else ""
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in seen.get("verdicts", {}).items())
        lines.append(
            f"| {name} | {seen['cases']} | {seen['wall']:.1f} | {seen['rate']:.2f} | {ratio} | {verdicts} |"
        )
    if (alone := found.get("torch", {}).get("rate_one_at_a_time")) is not None:
        lines.append(
            f"\nThe plain way, one at a time: {alone:.2f} cases/s; wrong: {found['torch']['wrong']}."
        )
    if (slower := found.get("hang", {}).get("times_as_long")) is not None:
        lines.append(f"\nWith one case in ten hanging, a case takes {slower:.2f} times as long as without.")
    if "memory_used" in found.get("hang20", {}):
        after = found["hang20"]
        lines.append(
            f"\nAfter {HANGS_IN_A_ROW} hangs: memory in use {after['memory_used']}, processes "
            f"{after['processes']}, the next case: {after['next_case']}."
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path, default=Path("harness-results"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=25.0)
    options = parser.parse_args()
    try:
        gpu = find()[0]
    except NoDevice as reason:
        print(reason, file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"gpu": gpu.to_json(), "cores": len(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory(prefix="bench-device-") as scratch, Supervisor() as supervisor:
        cubins = unpack_cubins(options.bundle, Path(scratch) / "cubins")
        good, deadlocked = launches_of(read_bundle(options.bundle).results, cubins, gpu)
        if not good:
            print(f"{options.bundle} has no case for {gpu.arch}", file=sys.stderr)
            return 2
        bench = Bench(supervisor, gpu, good, deadlocked, options.seconds, Path(scratch))
        for part, measure in PARTS.items():
            if part not in options.only:
                continue
            print(f"{part} …", file=sys.stderr, flush=True)
            try:
                found[part] = measure(bench)
            except Exception as error:
                traceback.print_exc()
                found[part] = {"failed": f"{type(error).__name__}: {error}"}
            (options.out / "bench_device.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"{gpu.name}, driver {gpu.driver}, {found['cores']} cores\n\n{table(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
