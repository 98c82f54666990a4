"""Which toolchains two words pick, and what is said where they pick none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.gate.select import SelectionError, couples
from harness.model import Toolchain

CHAINS = [
    Toolchain(f"tile{tile}-ctk{toolkit}", tile, toolkit)
    for tile in ("1.5.0", "1.7.0")
    for toolkit in ("13.3.1", "13.4.1", "13.4.3")
]
MIXED = Toolchain("mixed", "1.5.0", "13.3.1", tileiras="13.4.92")


def picked(baseline: str, candidate: str, chains: list[Toolchain] = CHAINS) -> list[tuple[str, str]]:
    return [(c.baseline.name, c.candidate.name) for c in couples(chains, baseline, candidate)]


def test_names() -> None:
    assert picked("tile1.5.0-ctk13.3.1", "tile1.7.0-ctk13.4.3") == [
        ("tile1.5.0-ctk13.3.1", "tile1.7.0-ctk13.4.3")
    ]


def test_a_version_picks_one_per_frontend() -> None:
    assert picked("13.3.1", "13.4.3") == [
        ("tile1.5.0-ctk13.3.1", "tile1.5.0-ctk13.4.3"),
        ("tile1.7.0-ctk13.3.1", "tile1.7.0-ctk13.4.3"),
    ]
    assert picked("13.3", "13.4.1")[0] == ("tile1.5.0-ctk13.3.1", "tile1.5.0-ctk13.4.1")


def test_a_frontend_version_picks_one_per_toolkit() -> None:
    assert picked("1.5.0", "1.7.0")[0] == ("tile1.5.0-ctk13.3.1", "tile1.7.0-ctk13.3.1")
    assert len(picked("1.5", "1.7")) == 3


def test_an_overridden_component_is_a_toolchain_of_its_own() -> None:
    chains = [*CHAINS, MIXED]
    assert picked("tile1.5.0-ctk13.3.1", "mixed", chains) == [("tile1.5.0-ctk13.3.1", "mixed")]
    assert len(picked("13.3.1", "13.4.3", chains)) == 2


def test_couples_say_what_they_share() -> None:
    assert [c.name for c in couples(CHAINS, "13.3.1", "13.4.3")] == ["cuda-tile 1.5.0", "cuda-tile 1.7.0"]


@pytest.mark.parametrize(
    ("baseline", "candidate", "sentence"),
    [
        (
            "13.3.2",
            "13.4.3",
            '--baseline: the matrix has no toolchain "13.3.2"; did you mean "13.3.1"? '
            "(add it to [[toolchain]])",
        ),
        ("13.3.1", "13.4", '--candidate "13.4" fits 13.4.1 and 13.4.3; name one of them'),
        (
            "13.3.1",
            "13.3.1",
            'baseline and candidate both pick "tile1.5.0-ctk13.3.1" and "tile1.7.0-ctk13.3.1"; '
            "name two versions",
        ),
        (
            "tile1.5.0-ctk13.3.1",
            "tile1.5.0-ctk13.3.1",
            'baseline and candidate are the same toolchain, "tile1.5.0-ctk13.3.1"',
        ),
        (
            "13.3.1",
            "1.7.0",
            '--baseline "13.3.1" picks "tile1.5.0-ctk13.3.1" and "tile1.7.0-ctk13.3.1" and --candidate '
            '"1.7.0" picks "tile1.7.0-ctk13.3.1", "tile1.7.0-ctk13.4.1" and "tile1.7.0-ctk13.4.3"; '
            "name one toolchain each, or two versions of one component",
        ),
    ],
)
def test_sentences(baseline: str, candidate: str, sentence: str) -> None:
    with pytest.raises(SelectionError) as error:
        couples(CHAINS, baseline, candidate)
    assert str(error.value) == sentence


def test_two_that_differ_in_their_name_alone_are_ambiguous() -> None:
    twin = replace(CHAINS[0], name="stable")
    with pytest.raises(SelectionError, match=r'picks both "tile1.5.0-ctk13.3.1" and "stable"; name one'):
        couples([*CHAINS, twin], "13.3.1", "13.4.3")
