"""Which versions of one component a fault was seen with, and which are good. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from harness.model import Record

AFFECTED, GOOD, OTHER, UNKNOWN = "affected", "good", "other finding", "unknown"
RANKING = (AFFECTED, OTHER, GOOD, UNKNOWN)
"""Where one version was seen in several states, the first of these counts."""


@dataclass(frozen=True)
class VersionSpan(Record):
    """What is known about the versions of one component, oldest first.

    `states` pairs each tested version with affected | good | other finding | unknown.
    """

    component: str
    states: tuple[tuple[str, str], ...]

    def _having(self, state: str) -> list[str]:
        return [version for version, seen in self.states if seen == state]

    @property
    def first_affected(self) -> str | None:
        return next(iter(self._having(AFFECTED)), None)

    @property
    def last_affected(self) -> str | None:
        return next(iter(reversed(self._having(AFFECTED))), None)

    @property
    def good_before(self) -> str | None:
        """The newest good version older than the first affected one."""
        return next((v for v, seen in reversed(self._older) if seen == GOOD), None)

    @property
    def good_from(self) -> str | None:
        """The oldest good version newer than the last affected one."""
        return next((v for v, seen in self._newer if seen == GOOD), None)

    @property
    def _affected_at(self) -> list[int]:
        return [at for at, (_, seen) in enumerate(self.states) if seen == AFFECTED]

    @property
    def _older(self) -> tuple[tuple[str, str], ...]:
        return self.states[: self._affected_at[0]] if self._affected_at else ()

    @property
    def _newer(self) -> tuple[tuple[str, str], ...]:
        return self.states[self._affected_at[-1] + 1 :] if self._affected_at else ()

    @property
    def _between(self) -> tuple[tuple[str, str], ...]:
        at = self._affected_at
        return tuple(pair for pair in self.states[at[0] : at[-1]] if pair[1] != AFFECTED) if at else ()

    @property
    def sentence(self) -> str:
        """Affected and good versions in words, gaps in knowledge included."""
        first, last = self.first_affected, self.last_affected
        if first is None or last is None:
            return f"{self.component}: the affected version is not known"
        span = first if first == last else f"{first} to {last}"
        if len(self._affected_at) == len(self.states):
            return f"{self.component} {span} affected; no other version was tested"
        parts = [f"{self.component} {span} affected", self._after, self._before]
        flips = [version for version, seen in self._between if seen == GOOD]
        if flips:
            parts.insert(1, f"it comes and goes: {_listed(flips)} in between good")
        return "; ".join(parts + self._gaps)

    @property
    def _after(self) -> str:
        if self.good_from is None:
            return (
                "no newer version was tested" if not self._newer else "no newer version is known to be good"
            )
        nearest = self._newer[0][0] == self.good_from
        return f"good from {self.good_from}" + (", the next version tested" if nearest else "")

    @property
    def _before(self) -> str:
        if self.good_before is not None:
            return f"good before, up to {self.good_before}"
        return "no older version was tested" if not self._older else "no older version is known to be good"

    @property
    def _gaps(self) -> list[str]:
        """Versions that are neither good nor affected."""
        texts = {UNKNOWN: "no answer from", OTHER: "another finding with"}
        return [
            f"{text} {_listed(self._having(state))}" for state, text in texts.items() if self._having(state)
        ]


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def version_key(text: str) -> tuple[int, Version, str]:
    """Sorts versions by PEP 440; what is not a version comes first, by its text."""
    try:
        return 1, Version(text), text
    except InvalidVersion:
        return 0, Version("0"), text
