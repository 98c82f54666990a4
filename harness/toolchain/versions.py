"""Which version a user meant: pure text and PEP 440, no index, no store."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from packaging.version import InvalidVersion, Version

_LISTED = 30
"""An error lists at most this many versions, the newest."""


def parse(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def in_order(versions: Iterable[str]) -> tuple[str, ...]:
    """Oldest first, each once; what is not a version is left out."""
    return tuple(sorted({v for v in versions if parse(v)}, key=Version))


def match(wanted: str, versions: Sequence[str]) -> str | None:
    """The version meant by `wanted`: that very one, else the newest of the series it begins.

    "13.3" means the newest 13.3.x and "13.4.1" means 13.4.1.0, but "13.3.0" is only itself, and
    "1.5" never means 1.50.0. A pre-release is only meant where it is written out.
    """
    if wanted in versions:
        return wanted
    asked = parse(wanted)
    if asked is None or asked.is_prerelease or asked.local or asked.post is not None:
        return None
    depth = len(asked.release)
    series = [v for v in versions if _belongs(v, asked.release[:depth], depth)]
    return max(series, key=Version, default=None)


def _belongs(version: str, release: tuple[int, ...], depth: int) -> bool:
    candidate = parse(version)
    return (
        candidate is not None
        and not candidate.is_prerelease
        and candidate.release[:depth] == release
        and len(candidate.release) > depth
    )


def nearest(wanted: str, versions: Sequence[str]) -> str | None:
    """The version that `wanted` was most likely meant to be: alike as text, then near as a number."""
    asked = parse(wanted)

    def unlikeness(version: str) -> tuple[float, tuple[int, ...]]:
        likeness = difflib.SequenceMatcher(None, wanted, version).ratio()
        return -round(likeness, 6), _distance(asked, version)

    return min(versions, key=unlikeness, default=None)


def _distance(asked: Version | None, version: str) -> tuple[int, ...]:
    candidate = parse(version)
    if asked is None or candidate is None:
        return ()
    width = max(len(asked.release), len(candidate.release))
    left = asked.release + (0,) * (width - len(asked.release))
    right = candidate.release + (0,) * (width - len(candidate.release))
    return tuple(abs(a - b) for a, b in zip(left, right, strict=True))


def unknown(package: str, wanted: str, versions: Sequence[str]) -> str:
    """The sentence for a version that does not exist."""
    guess = nearest(wanted, versions)
    hint = f"did you mean {guess}? " if guess else ""
    listed = ", ".join(versions[-_LISTED:])
    return f'unknown {package} version "{wanted}": {hint}It can be one of {listed}.'
