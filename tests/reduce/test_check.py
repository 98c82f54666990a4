"""The cheap check: what no compiler need be asked about."""

from __future__ import annotations

import pytest
from made_kernels import kernel

from harness.reduce.candidate import Candidate
from harness.reduce.check import complaint

HEAD = "import cuda.tile as ct\nSCALE = 2\n\n@ct.kernel\n"


def test_the_shipped_kernels_make_sense(shipped_kernel: Candidate) -> None:
    assert complaint(shipped_kernel) is None


@pytest.mark.parametrize(
    "body",
    [
        "a = x.shape[0]; ct.store(x, SCALE, a)",
        "for i in range(2):\n        a = i\n    ct.store(x, 0, a)",
        "if x:\n        a = 1\n    else:\n        a = 2\n    ct.store(x, 0, a)",
        "a = tuple(n + 1 for n in range(3))",
        "a = (lambda n: n)(x)",
        "a, (b, c) = x\n    a += b + c",
        "x[0] = len(x)",
    ],
)
def test_names_that_may_have_a_value_are_fine(body: str) -> None:
    assert complaint(kernel(f"{HEAD}def kernel(x):\n    {body}\n", "x")) is None


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("ct.store(x, 0, a)", "a"),
        ("ct.store(x, 0, a); a = 1", "a"),
        ("a += 1", "a"),
        ("for i in range(n):\n        pass", "n"),
        ("while a:\n        a = 1", "a"),
        ("y[0] = 1", "y"),
        ("a = x if b else x", "b"),
    ],
)
def test_names_without_a_value_are_told(body: str, name: str) -> None:
    assert complaint(kernel(f"{HEAD}def kernel(x):\n    {body}\n", "x")) == f"{name} has no value"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def kernel(x:\n", "does not parse"),
        ("def kernel(x):\n    pass\n", "no decorated function 'kernel'"),
        (HEAD + "def other(x):\n    pass\n", "no decorated function 'kernel'"),
        (HEAD + "def kernel(x, y):\n    pass\n", "not the ones described"),
        (HEAD + "def kernel(y):\n    pass\n", "not the ones described"),
        ("@ct.kernel\ndef kernel(x):\n    pass\n", "ct has no value"),
        (HEAD + "def kernel(x: Type):\n    pass\n", "Type has no value"),
    ],
)
def test_what_else_is_wrong_is_told(text: str, words: str) -> None:
    assert words in (complaint(kernel(text, "x")) or "")
