"""Kernels to cut at: the shipped ones as the source search starts from them, and small ones of our own."""

from __future__ import annotations

from functools import cache

from harness.kernels import get
from harness.model import Array, Case, Constant, Hints, Parameter
from harness.reduce.candidate import Candidate
from harness.reduce.passes.statements import drop_unused_definitions


@cache
def shipped(name: str) -> Candidate:
    """A shipped kernel alone in its file, as written, for a case with every hint set."""
    kernel = get(name)
    specialization = kernel.specialise(Case(name, (512,) * len(kernel.dims), "bfloat16", Hints(16, 2, 2)))
    text = kernel.path.read_text()
    whole = Candidate(text, kernel.function, specialization.parameters, specialization.hints)
    return next(drop_unused_definitions().variants(whole))


def array(name: str, rank: int = 1, dtype: str = "float32") -> Array:
    """An array that nothing is assumed of."""
    ones, free = (1,) * rank, (None,) * rank
    return Array(name, dtype, free, ones, free, ones)


def kernel(text: str, *parameters: Parameter | str, function: str = "kernel") -> Candidate:
    """A candidate of this text; a parameter's name alone stands for an array, "A=1" for a constant."""

    def described(given: Parameter | str) -> Parameter:
        if not isinstance(given, str):
            return given
        name, equals, value = given.partition("=")
        return Constant(name, int(value)) if equals else array(name)

    return Candidate(text, function, tuple(map(described, parameters)), Hints())
