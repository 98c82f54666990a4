"""A reduced kernel is launched with the sizes of the launch that it comes from."""

from __future__ import annotations

from pathlib import Path

from harness.kernels import get
from harness.kernels.arrays import aligned
from harness.model import Case, Constant, Hints, RunArgument, RunSettings
from harness.reduce.candidate import Candidate
from harness.reduce.launching import launch_arrays

X, T = aligned("x", "float16", 2), Constant("T", 8)
RUN = RunSettings((4, 2, 1), (RunArgument("x", (256, 64)),))
TEXT = (
    "import cuda.tile as ct\n\n@ct.kernel\ndef k({0}): ct.store({0}, (0, 0), ct.load({0}, (0, 0), (1, 8)))\n"
)


def candidate(name: str) -> Candidate:
    return Candidate(TEXT.format(name), "k", (aligned(name, "float16", 2),), Hints())


def test_arrays_lie_as_the_case_launches_them() -> None:
    case = Case("k.py:k", (), "float16", parameters=(X, T), run=RUN)
    (found,) = launch_arrays(get("k.py:k", Path("/r")), case, candidate("x"), candidate("a"))
    assert (found.name, found.original, found.shape, found.strides) == ("a", "x", (256, 64), (64, 1))


def test_nothing_is_known_where_nobody_said() -> None:
    case = Case("k.py:k", (), "float16", parameters=(X, T))
    assert launch_arrays(get("k.py:k", Path("/r")), case, candidate("x"), candidate("a")) == ()
