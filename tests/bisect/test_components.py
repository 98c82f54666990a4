from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bisect.components import (
    Bad,
    Blame,
    blame,
    differing,
    is_known_not_to_work,
    mixed,
    mixes,
    next_mix,
)
from harness.model import Toolchain
from harness.oracle import Answer

ALL = ("tileiras", "nvvm", "ptxas")
GOOD = {"tileiras": "13.4.59", "nvvm": "13.4.59", "ptxas": "13.4.59"}
BAD = {"tileiras": "13.3.36", "nvvm": "13.3.73", "ptxas": "13.3.73"}
SUBSETS = [frozenset(s) for s in chain.from_iterable(combinations(ALL, n) for n in range(1, 4))]


def investigate(
    guilty: Bad, broken: set[Bad], suspected: str | None = None, *, exhaustive: bool = False
) -> tuple[Blame, dict[Bad, Answer]]:
    """Try mixes of compilers that are bad exactly where all of `guilty` are."""
    answers: dict[Bad, Answer] = {}
    while (mix := next_mix(ALL, answers, suspected, exhaustive)) is not None:
        bad = Answer.BAD if guilty <= mix else Answer.GOOD
        answers[mix] = Answer.UNKNOWN if mix in broken else bad
    return blame(ALL, answers), answers


@given(st.sampled_from(SUBSETS))
def test_every_culprit_is_convicted_where_all_mixes_run(guilty: Bad) -> None:
    found, _ = investigate(guilty, set())
    assert found.suspects == (tuple(name for name in ALL if name in guilty),)
    assert found.is_proven


@given(st.sampled_from(SUBSETS), st.sets(st.sampled_from(list(mixes(ALL)))))
def test_mixes_that_cannot_run_convict_nobody_else(guilty: Bad, broken: set[Bad]) -> None:
    found, _ = investigate(guilty, broken)
    ordered = tuple(name for name in ALL if name in guilty)
    assert ordered in found.suspects or all(len(other) < len(guilty) for other in found.suspects)
    if found.is_proven:
        assert found.suspects == (ordered,)


@given(st.sampled_from(ALL))
def test_a_right_suspicion_takes_two_mixes(culprit: str) -> None:
    found, answers = investigate(frozenset({culprit}), set(), culprit)
    assert (found.component, found.is_proven, len(answers)) == (culprit, True, 2)


def test_all_six_mixes_are_tried_when_asked() -> None:
    _, answers = investigate(frozenset({"tileiras"}), set(), "tileiras", exhaustive=True)
    assert len(answers) == 6


def test_nvvm_that_ptxas_refuses_leaves_the_others_judged() -> None:
    """A new nvvm with an old ptxas cannot run: tileiras can still be told from the rest."""
    broken = {mix for mix in mixes(ALL) if "nvvm" not in mix and "ptxas" in mix}
    assert investigate(frozenset({"tileiras"}), broken)[0] == Blame((("tileiras",),), True)
    assert investigate(frozenset({"ptxas"}), broken)[0].suspects == (("ptxas",),)


def test_nothing_that_runs_means_nobody_can_be_told() -> None:
    found, answers = investigate(frozenset({"ptxas"}), set(mixes(ALL)))
    assert found == Blame((("tileiras",), ("nvvm",), ("ptxas",)), False)
    assert found.component is None
    assert len(answers) == 6


def test_answers_that_contradict_each_other_convict_nobody() -> None:
    every = dict.fromkeys(mixes(ALL), Answer.GOOD) | {frozenset({"ptxas"}): Answer.BAD}
    assert blame(ALL, every) == Blame((), False)


def test_the_only_difference_is_guilty_without_a_mix() -> None:
    assert next_mix(("ptxas",), {}) is None
    assert blame(("ptxas",), {}) == Blame((("ptxas",),), True)


def test_a_mix_names_every_component() -> None:
    bad = Toolchain("bad", "1.5.0", "13.3.1")
    chain_ = mixed(bad, GOOD, BAD, frozenset({"nvvm", "ptxas"}))
    assert chain_ == Toolchain(
        "tile1.5.0-ctk13.3.1+tileiras13.4.59+nvvm13.3.73+ptxas13.3.73",
        "1.5.0",
        "13.3.1",
        "13.4.59",
        "13.3.73",
        "13.3.73",
    )


@pytest.mark.parametrize(
    ("nvvm", "ptxas", "refused"), [("13.4.59", "13.3.73", True), ("13.3.73", "13.4.59", False)]
)
def test_only_an_nvvm_newer_than_its_ptxas_is_known_not_to_work(nvvm: str, ptxas: str, refused: bool) -> None:
    assert is_known_not_to_work({"nvvm": nvvm, "ptxas": ptxas}) is refused


def test_components_that_differ() -> None:
    assert differing(GOOD, BAD | {"nvvm": "13.4.59"}) == ("tileiras", "ptxas")
