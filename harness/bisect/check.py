"""How a reader checks a bisection: a small matrix for this lab, and plain commands without it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.bisect.result import BisectResult, Point
from harness.bisect.versions import BACKEND_COMPONENTS, TOOLKIT
from harness.command_text import command
from harness.matrix.expand import is_own
from harness.matrix.explain import toml
from harness.matrix.write import case_table
from harness.model import Cell, Toolchain, Verdict

_TREE = "nvidia/cu13"
_DISASSEMBLER = "nvidia-cuda-nvdisasm"
_COMPILED = (Verdict.PREDICTED_DEADLOCK, Verdict.HANG, Verdict.WRONG_RESULT, Verdict.NONDETERMINISTIC)


def check_matrix(result: BisectResult, base: Path | None = None) -> str:
    """A matrix.toml of the versions beside each edge and of the mixes that name the component.

    `base` is the folder that the path of a reader's own kernel starts from.
    """
    return _matrix(
        f"The versions around {result.oracle!r}, as a bisection found them.",
        _toolchains(result),
        result.cell,
        base,
    )


def device_matrix(result: BisectResult, base: Path | None = None) -> str:
    """A matrix.toml of every toolchain that was asked about, mixes too, to be run on the cell's device
    elsewhere. What decides is the machine code, so it does not matter which bytecode it came from."""
    chains = dict.fromkeys(probe.toolchain for probe in result.probes)
    versions = dict.fromkeys(probe.bytecode_version or "default" for probe in result.probes)
    title = "Every toolchain that a bisection asked about, to be run on the device."
    return _matrix(title, chains, result.cell, base, bytecode_version=list(versions))


def device_commands(folder: Path, out: Path) -> list[str]:
    """How the answers of a GPU host get into the results that a bisection reads."""
    bundle, seen = folder / "versions.bundle", folder / "on-device"
    return [
        command("compile", folder / "versions.toml", "--bundle", bundle),
        command("execute", bundle, out=seen) + "    # on the GPU host",
        command("merge", out, seen, "--out", out),
    ]


def _matrix(title: str, chains: Iterable[Toolchain], cell: Cell, base: Path | None, **more: object) -> str:
    table = case_table(cell.case) | more
    if base is not None and is_own(cell.case.kernel):
        table["kernel"] = str(base.absolute() / cell.case.kernel)
    lines = [
        f"# {title}",
        *(line for chain in chains for line in _toolchain_table(chain)),
        *("", "[target]", f"arch = {toml(cell.arch)}"),
    ]
    if cell.device is not None:
        told = {key: value for key, value in cell.device.to_json().items() if value}
        lines += ["", "[[device]]", *(f"{key} = {toml(value)}" for key, value in told.items())]
    lines += ["", "[[case]]", *(f"{key} = {toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def commands(result: BisectResult, folder: Path, store: Path | None) -> list[str]:
    """Lines for a shell: the harness's own check, then installing and running the compilers by hand.

    `folder` holds check.toml, and the bytecode files `bytecode_name` names.
    """
    lines = [command("run", folder / "check.toml", out=folder / "check", store=store)]
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
            yield f"{key} = {toml(getattr(chain, key))}"


def _by_hand(name: str, point: Point, result: BisectResult, folder: Path) -> Iterator[str]:
    """Install a backend and run it on the kernel's bytecode; neither harness nor GPU is needed."""
    if f"{name}.tileirbc" not in bytecode_files(result):
        return
    chain = point.toolchain
    packages = [f"{TOOLKIT}[nvcc,nvvm,tileiras]=={chain.cuda_toolkit}"]
    if any(getattr(chain, component) for component in BACKEND_COMPONENTS):
        pins = {"tileiras": "nvidia-cuda-tileiras", "nvvm": "nvidia-nvvm", "ptxas": "nvidia-cuda-nvcc"}
        packages = [f"{pins[component]}=={point.components[component]}" for component in BACKEND_COMPONENTS]
    compiles = _makes_a_cubin(point, result)
    tree = f"{name}/{_TREE}"
    more = [_DISASSEMBLER] if compiles else []
    yield shlex.join(["python", "-m", "pip", "install", "--target", name, *packages, *more])
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
    if compiles:
        yield shlex.join([f"{tree}/bin/nvdisasm", "-g", "-c", f"{name}.cubin"])


def _makes_a_cubin(point: Point, result: BisectResult) -> bool:
    """Whether there is machine code to look at: a crash, say, leaves none."""
    verdicts = {probe.verdict for probe in result.probes if probe.toolchain == point.toolchain}
    return any(verdict.is_good or verdict in _COMPILED for verdict in verdicts)
