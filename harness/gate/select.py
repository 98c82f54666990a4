"""Which toolchain of the candidate is compared with which of the baseline. Pure.

A word names toolchains by their name in the matrix or by a version, "13.3" for any 13.3.x. Where a
version picks several (one per cuda-tile, say), they are paired by what the version leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.matrix.problems import listing, quote, suggestion
from harness.model import Toolchain


class SelectionError(ValueError):
    """The words do not pick toolchains that can be compared; the text says why and what would."""


@dataclass(frozen=True)
class Couple:
    """One toolchain of each side; `name` is what both share."""

    name: str
    baseline: Toolchain
    candidate: Toolchain


def couples(toolchains: Sequence[Toolchain], baseline: str, candidate: str) -> tuple[Couple, ...]:
    """The toolchains to compare. Raises SelectionError."""
    before, key = _named(toolchains, baseline, "--baseline")
    after, other_key = _named(toolchains, candidate, "--candidate")
    if len(before) == len(after) == 1:
        if before == after:
            raise SelectionError(f"baseline and candidate are the same toolchain, {quote(before[0].name)}")
        return (Couple(_shared(before[0], after[0]), before[0], after[0]),)
    if key != other_key:
        raise SelectionError(
            f"--baseline {quote(baseline)} picks {_names(before)} and --candidate {quote(candidate)} picks "
            f"{_names(after)}; name one toolchain each, or two versions of one component"
        )
    if before == after:
        raise SelectionError(f"baseline and candidate both pick {_names(before)}; name two versions")
    old = _by_rest(before, key, "--baseline", baseline)
    new = _by_rest(after, key, "--candidate", candidate)
    shared = [rest for rest in old if rest in new]
    if not shared:
        raise SelectionError(
            f"no toolchain of --baseline {quote(baseline)} ({_names(before)}) differs from one of "
            f"--candidate {quote(candidate)} ({_names(after)}) in {key.replace('_', '-')} alone; "
            "name one toolchain each"
        )
    return tuple(Couple(_shared(old[rest], new[rest]), old[rest], new[rest]) for rest in shared)


def _named(toolchains: Sequence[Toolchain], word: str, option: str) -> tuple[list[Toolchain], str]:
    """The toolchains a word names, and the field it speaks of."""
    for field in ("name", "cuda_toolkit", "cuda_tile"):
        found = [chain for chain in toolchains if getattr(chain, field) == word]
        if found:
            return found, field
    for field in ("cuda_toolkit", "cuda_tile"):
        found = [chain for chain in toolchains if getattr(chain, field).startswith(word + ".")]
        versions = sorted({str(getattr(chain, field)) for chain in found})
        if len(versions) > 1:
            raise SelectionError(f"{option} {quote(word)} fits {listing(versions)}; name one of them")
        if found:
            return found, field
    known = [*dict.fromkeys(c.cuda_toolkit for c in toolchains), *(c.name for c in toolchains)]
    remedy = suggestion(word, known, f"known are {listing(known)}")
    raise SelectionError(
        f"{option}: the matrix has no toolchain {quote(word)}; {remedy} (add it to [[toolchain]])"
    )


def _rest(chain: Toolchain, key: str) -> tuple[str | None, ...]:
    fields = ("cuda_tile", "cuda_toolkit", "tileiras", "nvvm", "ptxas")
    return tuple(getattr(chain, field) for field in fields if field != key)


def _by_rest(
    toolchains: Sequence[Toolchain], key: str, option: str, word: str
) -> dict[tuple[str | None, ...], Toolchain]:
    found: dict[tuple[str | None, ...], Toolchain] = {}
    for chain in toolchains:
        first = found.setdefault(_rest(chain, key), chain)
        if first is not chain:
            raise SelectionError(
                f"{option} {quote(word)} picks both {quote(first.name)} and {quote(chain.name)}; name one"
            )
    return found


def _shared(one: Toolchain, other: Toolchain) -> str:
    """What two toolchains have in common, in words."""
    fields = ("cuda_tile", "cuda_toolkit", "tileiras", "nvvm", "ptxas")
    same = [
        f"{field.replace('_', '-')} {getattr(one, field)}"
        for field in fields
        if getattr(one, field) and getattr(one, field) == getattr(other, field)
    ]
    return ", ".join(same) or f"{one.name} and {other.name}"


def _names(toolchains: Sequence[Toolchain]) -> str:
    return listing([quote(chain.name) for chain in toolchains], limit=6)
