"""The text of a repro.toml: the way back from `spec.load`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from harness.matrix.explain import toml
from harness.matrix.write import case_table
from harness.repro.spec import Place, Repro


def write_spec(repro: Repro) -> str:
    """The text of the file."""
    targets = _common_targets(repro)
    lines = [
        f"kind = {toml(repro.kind)}",
        f"title = {toml(repro.title)}",
        f"status = {toml(repro.status)}",
        f"link = {toml(repro.link)}",
        f"summary = {toml(repro.summary)}",
        f"expected = {toml(repro.expected)}",
        "",
        "# What must hold: the oracle tells bad from good, and bad cells have this verdict.",
        f"identity = {toml(repro.identity)}",
        f"oracle = {toml(repro.oracle)}",
    ]
    lines += [f"{key} = {toml(getattr(repro, key))}" for key in _OPTIONAL if getattr(repro, key)]
    lines += [f"deadline = {repro.deadline:g}", f"targets = {toml(list(targets))}"]
    if repro.case is not None:
        lines += ["", "[case]"]
        for key, value in case_table(repro.case).items():
            lines += _parameters(value) if key == "parameters" else [f"{key} = {toml(value)}"]
    for place in repro.places:
        lines += ["", "[[bad]]" if place.bad else "[[good]]", *_place_lines(place, targets)]
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)
    return text


_OPTIONAL = ("verdict", "component", "origin", "observed", "bytecode_version")


def _parameters(tables: list[dict[str, object]]) -> list[str]:
    return ["parameters = [", *(f"    {toml(table)}," for table in tables), "]"]


def _place_lines(place: Place, targets: tuple[str, ...]) -> Iterator[str]:
    if place.toolchain is not None:
        for key in ("cuda_tile", "cuda_toolkit", "tileiras", "nvvm", "ptxas"):
            if getattr(place.toolchain, key) is not None:
                yield f"{key} = {toml(getattr(place.toolchain, key))}"
    else:
        yield f"packages = {toml(list(place.packages))}"
    if place.code_sha256 is not None:
        yield f"code_sha256 = {toml(place.code_sha256)}"
    if place.targets != targets:
        yield f"targets = {toml(list(place.targets))}"


def _common_targets(repro: Repro) -> tuple[str, ...]:
    """The targets that most places share, so that fewest need their own."""
    every = [place.targets for place in repro.places]
    return max(every, key=lambda targets: (every.count(targets), len(targets)), default=())
