"""Whom to blame, once a bad toolchain and a good one next to it are known. Pure.

The two differ in up to three backend components. Every mix in between is either one good component
put into the bad toolchain (does it cure?) or one bad component put into the good one (does it
suffice?). A suspect is a set of components; its hypothesis is that a toolchain is bad exactly
where all of the set come from the bad one. Answers rule hypotheses out; the smallest that remain are the
suspects. Some mixes cannot run (an nvvm newer than its ptxas writes PTX that ptxas refuses): they
are unknown, and rule nothing out.

The newest bytecode that frontend and backend share may change with tileiras, too. So all mixes are asked
in one bytecode version that both toolchains take, after a check that this alone changes no answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from packaging.version import Version

from harness.bisect.versions import BACKEND_COMPONENTS
from harness.model import Record, Toolchain
from harness.oracle import Answer

Bad = frozenset[str]
"""A mix: the components that come from the bad toolchain, among those that differ."""


@dataclass(frozen=True)
class Blame(Record):
    """Who is guilty at one edge: one set of components, or none or several where no mix could tell.

    `is_proven`: swapping just that set cured the bad toolchain, and spoilt the good one.
    """

    suspects: tuple[tuple[str, ...], ...]
    is_proven: bool

    @property
    def component(self) -> str | None:
        """The one guilty component, if it is one."""
        only = self.suspects[0] if len(self.suspects) == 1 else ()
        return only[0] if len(only) == 1 else None


def differing(good: Mapping[str, str], bad: Mapping[str, str]) -> tuple[str, ...]:
    """Backend components whose versions differ."""
    return tuple(name for name in BACKEND_COMPONENTS if good[name] != bad[name])


def mixes(differ: tuple[str, ...], suspected: str | None = None) -> Iterator[Bad]:
    """Mixes in the order in which to try them, those that settle the suspected component first."""
    first = sorted(differ, key=lambda name: name != suspected)
    seen: set[Bad] = {frozenset(), frozenset(differ)}
    for name in first:
        for mix in (frozenset(differ) - {name}, frozenset({name})):
            if mix not in seen:
                seen.add(mix)
                yield mix


def next_mix(
    differ: tuple[str, ...],
    answers: Mapping[Bad, Answer],
    suspected: str | None = None,
    exhaustive: bool = False,
) -> Bad | None:
    """The next mix to try; None when the case is proven or all have been tried."""
    if not exhaustive and blame(differ, answers).is_proven:
        return None
    return next((mix for mix in mixes(differ, suspected) if mix not in answers), None)


def blame(differ: tuple[str, ...], answers: Mapping[Bad, Answer]) -> Blame:
    """The smallest sets of components that explain every answer."""
    known = {frozenset(): Answer.GOOD, frozenset(differ): Answer.BAD, **answers}
    for size in range(1, len(differ) + 1):
        suspects = [group for group in map(frozenset, combinations(differ, size)) if _explains(group, known)]
        if suspects:
            ordered = tuple(tuple(name for name in differ if name in group) for group in suspects)
            return Blame(ordered, len(suspects) == 1 and _is_proven(suspects[0], differ, known))
    return Blame((), False)


def _explains(suspects: Bad, answers: Mapping[Bad, Answer]) -> bool:
    return all(
        answer is Answer.UNKNOWN or (answer is Answer.BAD) == (suspects <= mix)
        for mix, answer in answers.items()
    )


def _is_proven(suspects: Bad, differ: tuple[str, ...], answers: Mapping[Bad, Answer]) -> bool:
    cured = answers.get(frozenset(differ) - suspects) is Answer.GOOD
    return cured and answers.get(suspects) is Answer.BAD


def mixed(
    bad: Toolchain, good_components: Mapping[str, str], bad_components: Mapping[str, str], mix: Bad
) -> Toolchain:
    """The bad toolchain with every component named, so that nothing depends on the toolkit's version."""
    chosen = {name: (bad_components if name in mix else good_components)[name] for name in BACKEND_COMPONENTS}
    suffix = "".join(f"+{name}{version}" for name, version in chosen.items())
    return Toolchain(
        f"tile{bad.cuda_tile}-ctk{bad.cuda_toolkit}{suffix}", bad.cuda_tile, bad.cuda_toolkit, **chosen
    )


def is_known_not_to_work(components: Mapping[str, str]) -> bool:
    """An nvvm newer than its ptxas: where such a mix fails to compile, that says nothing."""
    return Version(components["nvvm"]) > Version(components["ptxas"])
