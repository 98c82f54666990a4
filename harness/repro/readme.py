"""README.md of a repro: what a compiler engineer should know within a minute. Pure but for bisect.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.repro.spec import BISECT_FILE, PTX_FILE, SCRIPT_FILE, Place, Repro, bytecode_file


def readme_text(repro: Repro) -> str:
    """The whole file."""
    return "\n".join(_lines(repro)) + "\n"


def _lines(repro: Repro) -> Iterator[str]:
    yield f"# {repro.title}"
    yield ""
    yield repro.summary
    yield ""
    yield f"Expected: {repro.expected}"
    yield ""
    yield "| toolchain | targets | symptom |"
    yield "| --- | --- | --- |"
    for place in repro.places:
        yield f"| {where(place)} | {' '.join(place.targets) or 'any'} | {'yes' if place.bad else 'no'} |"
    yield ""
    facts = [f"Status: {repro.status}."]
    if repro.link:
        facts.append(f"Upstream: <{repro.link}>.")
    if repro.component:
        facts.append(f"Component: {repro.component}.")
    yield " ".join(facts)
    if repro.observed:
        yield ""
        yield repro.observed
    edges = bisect_words(bisected(repro.folder))
    if edges:
        yield ""
        yield f"Bisection: {edges}."
    if repro.origin:
        yield ""
        yield f"Made from: {repro.origin}."
    yield ""
    yield "```"
    yield from install_lines(repro.bad[0])
    yield f"python {SCRIPT_FILE}"
    yield "```"
    if repro.bytecode and repro.case is not None:
        target = repro.bad[0].targets[0]
        options = f"--gpu-name {target} -O{repro.opt_level} --lineinfo"
        yield ""
        yield f"Without Python, on the bytecode (version {repro.bytecode_version}):"
        yield ""
        yield "```"
        yield f"tileiras {bytecode_file(target)} -o kernel.cubin {options}"
        yield "```"
    if (repro.folder / PTX_FILE).is_file():
        yield ""
        yield f"`{PTX_FILE}` is what ptxas was given there."
    yield ""
    yield f"Checked by `python -m harness repro verify {repro.name}`."


def where(place: Place) -> str:
    """A toolchain or packages in words."""
    chain = place.toolchain
    if chain is None:
        return ", ".join(place.packages)
    pins = ((name, getattr(chain, name)) for name in ("tileiras", "nvvm", "ptxas"))
    more = "".join(f", {name} {version}" for name, version in pins if version)
    return f"cuda-tile {chain.cuda_tile}, cuda-toolkit {chain.cuda_toolkit}{more}"


def install_lines(place: Place) -> list[str]:
    """What a reader types to get this toolchain."""
    chain = place.toolchain
    if chain is None:
        return ["pip install " + " ".join(f"'{package}'" for package in place.packages)]
    toolkit = f"'cuda-toolkit[nvcc,nvvm,tileiras]=={chain.cuda_toolkit}'"
    return [f"pip install cuda-tile=={chain.cuda_tile} {toolkit}"]


def bisected(folder: Path) -> dict[str, Any]:
    """The bisection that was kept, as plain JSON; empty where there is none."""
    try:
        found = json.loads((folder / BISECT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def bisect_words(found: dict[str, Any]) -> str:
    """Edges and component of a bisection: "last good 13.2.86, first bad 13.3.36 (tileiras)"."""
    names = ("last_good", "first_bad", "last_bad", "first_fixed")
    edges = [f"{name.replace('_', ' ')} {found[name]}" for name in names if found.get(name)]
    words = ", ".join(edges)
    named = found.get("named_by")
    if words and named:
        words = f"by {named}: {words}"
    if words and found.get("component"):
        words += f"; guilty component {found['component']}"
    return words
