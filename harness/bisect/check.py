"""How a reader checks a bisection: a small matrix for this lab, and plain commands without it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from harness.bisect.result import BisectResult, Point
from harness.bisect.versions import BACKEND_COMPONENTS, TOOLKIT
from harness.model import Case, Toolchain

_TREE = "nvidia/cu13"


def check_matrix(result: BisectResult) -> str | None:
    """A matrix.toml of the versions beside each edge and of the mixes that name the component.

    None where the case cannot be written down: a kernel of the reader's own with its parameters.
    """
    case = result.cell.case
    if case.parameters:
        return None
    lines = [
        f"# The versions around {result.oracle!r}, as a bisection found them.",
        *(line for chain in _toolchains(result) for line in _toolchain_table(chain)),
        "",
        "[target]",
        f"arch = {json.dumps(result.cell.arch)}",
        "",
        "[[case]]",
        *_case_lines(case),
    ]
    return "\n".join(lines) + "\n"


def commands(result: BisectResult, folder: Path, store: Path | None) -> list[str]:
    """Lines for a shell: the harness's own check, then installing and running the compilers by hand.

    `folder` holds check.toml where there is one, and the bytecode files `bytecode_name` names.
    """
    lines = []
    if check_matrix(result) is not None:
        where = ["--store", str(store)] if store is not None else []
        out = str(folder / "check")
        lines.append(
            shlex.join(["python", "-m", "harness", "run", str(folder / "check.toml"), "--out", out, *where])
        )
    points = _points(result)
    for name, point in points.items():
        lines += _by_hand(name, point, result, folder)
    return lines


def bytecode_files(result: BisectResult) -> dict[str, str]:
    """File name → SHA-256 of the bytecode that the commands compile."""
    known = {
        probe.toolchain: probe.bytecode_sha256 for probe in result.probes if probe.bytecode_version is None
    }
    files = ((name, known.get(point.toolchain)) for name, point in _points(result).items())
    return {f"{name}.tileirbc": sha256 for name, sha256 in files if sha256 is not None}


def _points(result: BisectResult) -> dict[str, Point]:
    """The versions beside each edge by the name of their folder, each once."""
    named = {
        "last-good": result.last_good,
        "first-bad": result.first_bad,
        "last-bad": result.last_bad,
        "first-fixed": result.first_fixed,
    }
    kept: dict[str, Point] = {}
    for name, point in named.items():
        if point is not None and point not in kept.values():
            kept[name] = point
    return kept


def _toolchains(result: BisectResult) -> Iterator[Toolchain]:
    seen = set()
    points = [point.toolchain for point in _points(result).values()]
    for chain in [*points, *(mix for accusation in result.accusations for mix in accusation.proving)]:
        if chain not in seen:
            seen.add(chain)
            yield chain


def _toolchain_table(chain: Toolchain) -> Iterator[str]:
    yield ""
    yield "[[toolchain]]"
    for key in ("cuda_tile", "cuda_toolkit", *BACKEND_COMPONENTS):
        if getattr(chain, key) is not None:
            yield f"{key} = {json.dumps(getattr(chain, key))}"


def _case_lines(case: Case) -> Iterator[str]:
    plain = Case(case.kernel, case.shape, case.dtype)
    yield f"kernel = {json.dumps(case.kernel)}"
    yield f"shape = [{json.dumps(list(case.shape))}]"
    yield f"dtype = {json.dumps(case.dtype)}"
    for key, value in case.settings.items():
        if value is not None and value != plain.settings.get(key):
            yield f"{key} = {json.dumps(value)}"
    for key in ("layout", "values", "seed"):
        if getattr(case, key) != getattr(plain, key):
            yield f"{key} = {json.dumps(getattr(case, key))}"


def _by_hand(name: str, point: Point, result: BisectResult, folder: Path) -> Iterator[str]:
    """Install a backend and run it on the kernel's bytecode; neither harness nor GPU is needed."""
    if f"{name}.tileirbc" not in bytecode_files(result):
        return
    chain = point.toolchain
    packages = [f"{TOOLKIT}[nvcc,nvvm,tileiras]=={chain.cuda_toolkit}"]
    if any(getattr(chain, component) for component in BACKEND_COMPONENTS):
        pins = {"tileiras": "nvidia-cuda-tileiras", "nvvm": "nvidia-nvvm", "ptxas": "nvidia-cuda-nvcc"}
        packages = [f"{pins[component]}=={point.components[component]}" for component in BACKEND_COMPONENTS]
    tree = f"{name}/{_TREE}"
    yield shlex.join(["uv", "pip", "install", "--target", name, *packages])
    if point.components["tileiras"].startswith("13.1."):
        # This one looks for libnvvm where no package puts it.
        yield shlex.join(["mkdir", "-p", f"{tree}/nvvm/lib64"])
        yield shlex.join(["ln", f"{tree}/lib/libnvvm.so.4", f"{tree}/nvvm/lib64/libnvvm.so"])
    decorated = (probe.opt_level for probe in result.probes if probe.opt_level is not None)
    asked = result.cell.case.hints.opt_level
    level = asked if asked is not None else next(decorated, 3)
    options = ["--gpu-name", result.cell.arch, f"-O{level}", "--lineinfo"]
    source = str(folder / f"{name}.tileirbc")
    yield shlex.join([f"{tree}/bin/tileiras", source, "-o", f"{name}.cubin", *options])
    yield shlex.join(["nvdisasm", "-g", "-c", f"{name}.cubin"])
