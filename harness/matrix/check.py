"""Faults of toolchains, targets and devices that no single value shows: versions that do not exist,
exclusions without effect, repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from packaging.version import InvalidVersion, Version
from pydantic import BaseModel

from harness.matrix import expand, schema
from harness.matrix.document import Document
from harness.matrix.explain import example
from harness.matrix.locate import TomlPath
from harness.matrix.problems import Problem, listing, nearest, quote, suggestion
from harness.matrix.rules import OneOrMany
from harness.matrix.words import COMPONENTS, DTYPE_ALIASES

KnownVersions = Callable[[str], Sequence[str]]
"""Versions there are of a package (the values of `words.COMPONENTS`), oldest first."""

MAX_TOOLCHAINS = 1_000


def items(value: Any, path: TomlPath) -> Iterator[tuple[TomlPath, Any]]:
    """The values of an axis, a list or one value alone, with where each stands."""
    if isinstance(value, list):
        yield from (((*path, index), item) for index, item in enumerate(value))
    elif value is not None:
        yield path, value


# --- versions ---------------------------------------------------------------------------------


def versions(document: Document, known_versions: KnownVersions) -> Iterator[Problem]:
    """Versions that do not exist. Asks only about packages the file needs."""
    asked: dict[str, Sequence[str]] = {}

    def existing(package: str) -> Sequence[str]:
        if package not in asked:
            asked[package] = known_versions(package)
        return asked[package]

    for index, table in document.tables("toolchain"):
        for key, package in COMPONENTS.items():
            for path, version in items(table.get(key), ("toolchain", index, key)):
                if (
                    not isinstance(version, str)
                    or not _is_version(version)
                    or _named(version, existing(package))
                ):
                    continue
                # A component may also be named by the toolkit that brings it.
                if package.startswith("nvidia-") and _named(version, existing(COMPONENTS["cuda_toolkit"])):
                    continue
                yield document.problem(path, _no_such_version(package, version, existing(package)))


def _is_version(text: str) -> bool:
    try:
        return len(text) <= 40 and bool(Version(text))
    except InvalidVersion:
        return False


def _named(asked: str, existing: Sequence[str]) -> bool:
    """Whether a version exists: "13.3" names 13.3.0 and 13.3.1."""
    return any(asked == version or version.startswith(asked + ".") for version in existing)


def _no_such_version(package: str, version: str, existing: Sequence[str]) -> str:
    text = f"there is no {package} {quote(version)}; there are {listing(existing)}"
    # Of the same series if there is one, else of any.
    series = [other for other in existing if other.split(".")[:2] == version.split(".")[:2]]
    near = nearest(version, series) or nearest(version, existing)
    return f"{text}; did you mean {quote(near)}?" if near else f"{text}; choose one of them"


# --- repetition -------------------------------------------------------------------------------


def repeated_values(
    document: Document, here: TomlPath, model: type[BaseModel], table: Mapping[str, Any]
) -> Iterator[Problem]:
    """Values that an axis lists twice, another spelling of the same dtype included."""
    for key, values in table.items():
        if key not in model.model_fields or key in _NO_AXES or not isinstance(values, list):
            continue
        if key == "shape" and OneOrMany(depth=1).unwrapped(values):
            continue  # one square shape, not two equal extents
        seen: set[str] = set()
        for index, value in enumerate(values):
            identity = repr(DTYPE_ALIASES.get(value, value) if isinstance(value, str) else value)
            if identity in seen:
                yield document.problem(
                    (*here, key, index), "repeats an earlier value of the list; remove one"
                )
            seen.add(identity)


_NO_AXES = ("exclude", "parameters", "grid")


def toolchain_table(document: Document, index: int, table: schema.ToolchainTable) -> Iterator[Problem]:
    """Too many toolchains, and exclusions that exclude nothing or everything."""
    here: TomlPath = ("toolchain", index)
    if (product := len(table.cuda_tile) * len(table.cuda_toolkit)) > MAX_TOOLCHAINS:
        yield document.problem(
            here, f"makes {product:,} toolchains, more than {MAX_TOOLCHAINS:,}; list fewer versions"
        )
        return
    for number, entry in enumerate(table.exclude):
        at = (*here, "exclude", number)
        if entry.cuda_tile is None and entry.cuda_toolkit is None:
            yield document.problem(
                at, f"says nothing; name versions, for example {{{example('cuda_toolkit')}}}"
            )
        for key, listed in (("cuda_tile", table.cuda_tile), ("cuda_toolkit", table.cuda_toolkit)):
            raw = document.data["toolchain"][index]["exclude"][number].get(key)
            for path, version in items(raw, (*at, key)):
                if version not in listed:
                    text = f"{quote(version)} is not in this table's {key}; {suggestion(version, listed)}"
                    yield document.problem(path, text)
    if not expand.toolchain_pairs(table):
        yield document.problem(
            (*here, "exclude"), "leaves no toolchain of this table; exclude less, or remove the table"
        )


def toolchain_names(document: Document, tables: Mapping[int, schema.ToolchainTable]) -> Iterator[Problem]:
    """Names given twice, and toolchains that differ in nothing but their name."""
    names: dict[str, int] = {}
    contents: dict[tuple[str | None, ...], tuple[int, str]] = {}
    for index, table in tables.items():
        for chain in expand.toolchains(table):
            content = (chain.cuda_tile, chain.cuda_toolkit, chain.tileiras, chain.nvvm, chain.ptxas)
            if chain.name in names:
                first = names[chain.name]
                text = f"makes {quote(chain.name)} again, as #{first + 1} does; give it a name of its own"
                yield document.problem(("toolchain", index), text)
            elif content in contents:
                first, name = contents[content]
                text = f"{quote(chain.name)} is {quote(name)} of #{first + 1} but for the name; remove one"
                yield document.problem(("toolchain", index), text)
            else:
                names[chain.name] = index
                contents[content] = (index, chain.name)
                continue
            break


def devices(
    document: Document, tables: Mapping[int, schema.DeviceTable], target: schema.TargetTable | None
) -> Iterator[Problem]:
    """Device names given twice, and devices that would get nothing to run."""
    names: dict[str, int] = {}
    for index, table in tables.items():
        first = names.setdefault(table.name, index)
        if first != index:
            text = f"{quote(table.name)} is the name of #{first + 1} already; choose another"
            yield document.problem(("device", index, "name"), text)
        if target is not None and table.arch not in target.arch:
            text = (
                f"nothing is compiled for {quote(table.arch)}; add it to [target] arch, or remove the device"
            )
            yield document.problem(("device", index, "arch"), text)


def gate(document: Document, table: schema.GateTable) -> Iterator[Problem]:
    """Differences that both fail and warn; one that the reader did not list himself is no contradiction."""
    raw = document.data.get("gate")
    given = raw if isinstance(raw, dict) else {}
    for path, word in items(given.get("warn"), ("gate", "warn")):
        if word in table.fail and "fail" in given:
            yield document.problem(path, f"{quote(str(word))} is in fail already; remove it from one of them")
