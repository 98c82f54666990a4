"""What the passes propose: always Python, and what a person would try."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_kernels import array, kernel, shipped

from harness.kernels import names
from harness.model import Constant, Hints
from harness.reduce.candidate import Candidate, body_statements, cost
from harness.reduce.check import complaint, plausible
from harness.reduce.engine import End, Pass, Problem, minimise
from harness.reduce.passes import FINAL_PASSES, SOURCE_PASSES, expressions, parameters, statements, tidy

mostly_slow = pytest.mark.parametrize(
    "shipped_kernel",
    [
        name
        if name in ("matmul.tiled", "rmsnorm.multi_wave_cached")
        else pytest.param(name, marks=pytest.mark.slow)
        for name in names()
    ],
    indirect=True,
)
"""Every shipped kernel, of which the small ones will do where time is short."""

HEAD = "import cuda.tile as ct\n\n\n@ct.kernel\n"


def bodies(each: Pass[Candidate], candidate: Candidate) -> list[str]:
    """The kernel's bodies a pass proposes, a line each, indentation taken away."""
    return ["; ".join(map(ast.unparse, _function(v).body)) for v in each.variants(candidate)]


def _function(candidate: Candidate) -> ast.FunctionDef:
    found = [n for n in ast.parse(candidate.text).body if isinstance(n, ast.FunctionDef)]
    return next(f for f in found if f.name == candidate.function)


def _walk(candidate: Candidate, choices: list[int]) -> Iterator[Candidate]:
    """Variants of variants, as a search may come to them: each choice takes a pass, and one of its first."""
    for choice in choices:
        proposals = list(islice(SOURCE_PASSES[choice % len(SOURCE_PASSES)].variants(candidate), 20))
        yield from proposals
        smaller = [v for v in proposals if plausible(v) and cost(v) < cost(candidate)]
        if smaller:
            candidate = smaller[choice % len(smaller)]


@pytest.mark.parametrize("each", [*SOURCE_PASSES, *FINAL_PASSES], ids=lambda each: each.name)
@mostly_slow
def test_every_candidate_of_a_shipped_kernel_parses(each: Pass[Candidate], shipped_kernel: Candidate) -> None:
    for variant in each.variants(shipped_kernel):
        ast.parse(variant.text)


@given(st.sampled_from(names()), st.lists(st.integers(0, 10_000), min_size=5, max_size=10))
@settings(max_examples=4)
def test_so_does_every_candidate_of_a_candidate(name: str, choices: list[int]) -> None:
    for variant in _walk(shipped(name), choices):
        ast.parse(variant.text)


@mostly_slow
def test_a_shipped_kernel_shrinks_to_what_an_arbitrary_fault_needs(shipped_kernel: Candidate) -> None:
    """The fault: a load of the first array, whatever else. All else goes, parameters included."""
    first = shipped_kernel.parameters[0].name
    load = re.compile(rf"ct\.(load|gather)\(\s*{first}\b")

    def interesting(candidate: Candidate) -> bool:
        return plausible(candidate) and load.search(candidate.text) is not None

    problem = Problem(interesting, cost, lambda candidate: candidate.digest)
    outcome = minimise(shipped_kernel, SOURCE_PASSES, problem)
    assert outcome.end is End.COMPLETE
    best = outcome.best
    assert [p.name for p in best.parameters] == [first]
    assert best.hints == Hints()
    assert len(best.text.splitlines()) == 6
    assert body_statements(best.text, best.function) == 1


def test_a_shipped_kernel_stands_alone_in_its_file(shipped_kernel: Candidate) -> None:
    functions = [n for n in ast.parse(shipped_kernel.text).body if isinstance(n, ast.FunctionDef)]
    assert [f.name for f in functions] == [shipped_kernel.function]


def test_what_is_added_may_be_all_there_is() -> None:
    candidate = kernel(HEAD + "def kernel(x):\n    a = 1\n    a += f(x)\n", "x")
    assert bodies(statements.assign_plainly(), candidate) == ["a = 1; a = f(x)"]


def test_what_nothing_reads_goes_at_once_or_leaves_its_value() -> None:
    body = "    a = 1\n    b = a\n    c = 3\n    d[0] = c\n    e = f(x)\n"
    found = bodies(statements.drop_unread(), kernel(HEAD + "def kernel(x):\n" + body, "x"))
    assert found == [
        "a = 1; c = 3; d[0] = c",
        "a = 1; a; c = 3; d[0] = c; e = f(x)",
        "a = 1; b = a; c = 3; d[0] = c; f(x)",
    ]


def test_only_what_the_kernel_needs_stays_in_the_file() -> None:
    text = (
        "import os\nimport cuda.tile as ct\nWIDTH = 4\nSPARE = 5\n\n"
        "def helper(x):\n    return x\n\n@ct.kernel\ndef other(x):\n    pass\n\n"
        "@ct.kernel\ndef kernel(x):\n    ct.store(x, 0, helper(WIDTH))\n"
    )
    first = next(statements.drop_unused_definitions().variants(kernel(text, "x")))
    kept = [ast.unparse(node).splitlines()[0] for node in ast.parse(first.text).body]
    assert kept == ["import cuda.tile as ct", "WIDTH = 4", "def helper(x):", "@ct.kernel"]


def test_runs_of_statements_go_from_the_end() -> None:
    candidate = kernel(HEAD + "def kernel(x):\n    a = 1\n    b = 2\n    c = 3\n", "x")
    assert bodies(statements.drop_runs(2), candidate) == ["a = 1", "c = 3"]
    assert bodies(statements.drop_runs(1), candidate) == ["a = 1; b = 2", "a = 1; c = 3", "b = 2; c = 3"]


def test_a_body_without_statements_holds_pass() -> None:
    candidate = kernel(HEAD + "def kernel(x):\n    for i in range(2):\n        a = i\n", "x")
    assert bodies(statements.drop_runs(1), candidate) == ["for i in range(2):\n    pass", "pass"]


def test_a_definition_goes_together_with_its_uses() -> None:
    body = "    a = 1\n    b = a + 1\n    for i in range(b):\n        ct.store(x, i, 0)\n    c = 2\n"
    found = bodies(statements.drop_with_dependents(), kernel(HEAD + "def kernel(x):\n" + body, "x"))
    assert found == ["a = 1; b = a + 1; c = 2", "a = 1; c = 2", "c = 2"]


def test_loops_and_branches_give_way_to_their_insides() -> None:
    body = "    for i in range(4):\n        ct.store(x, i, 1)\n"
    body += "    if x:\n        a = 1\n    else:\n        b = 2\n"
    found = bodies(statements.unwrap_blocks(), kernel(HEAD + "def kernel(x):\n" + body, "x"))
    branch = "if x:\n    a = 1\nelse:\n    b = 2"
    loop = "for i in range(4):\n    ct.store(x, i, 1)"
    assert found == [f"ct.store(x, 0, 1); {branch}", f"{loop}; a = 1", f"{loop}; b = 2"]


def test_a_name_used_once_is_written_out_with_its_parentheses() -> None:
    body = "    a = x + 1\n    b = a * 2\n    c = b\n    ct.store(x, b, c)\n"
    found = bodies(statements.inline_single_uses(), kernel(HEAD + "def kernel(x):\n" + body, "x"))
    assert "b = (x + 1) * 2; c = b; ct.store(x, b, c)" in found
    assert "a = x + 1; b = a * 2; ct.store(x, b, b)" in found
    assert len(found) == 2


def test_a_name_bound_twice_is_left_alone() -> None:
    body = "    a = 1\n    for i in range(2):\n        a += i\n    ct.store(x, 0, a)\n"
    assert bodies(statements.inline_single_uses(), kernel(HEAD + "def kernel(x):\n" + body, "x")) == []


def test_method_chains_and_operators_give_way_to_their_parts() -> None:
    found = bodies(
        expressions.hoist_operands(), kernel(HEAD + "def kernel(x):\n    a = x.astype(ct.f) * (x + 1)\n", "x")
    )
    assert found == [
        "a = x.astype(ct.f)",
        "a = x + 1",
        "a = x * (x + 1)",
        "a = ct.f * (x + 1)",
        "a = x.astype(ct.f) * x",
        "a = x.astype(ct.f) * 1",
    ]


def test_arguments_go_and_so_do_those_of_the_decorator() -> None:
    text = "import cuda.tile as ct\n\n@ct.kernel(occupancy=2)\ndef kernel(x):\n    ct.load(x, 0, a=1, b=2)\n"
    found = [
        v.text.split("\n\n", 1)[1].splitlines()
        for v in expressions.drop_arguments().variants(kernel(text, "x"))
    ]
    decorated = [lines[0] for lines in found]
    calls = [lines[2].strip() for lines in found]
    assert decorated[:2] == ["@ct.kernel", "@ct.kernel()"]
    assert calls[2:] == [
        "ct.load(x, 0)",
        "ct.load(x, 0, a=1)",
        "ct.load(x, 0, b=2)",
        "ct.load(x, a=1, b=2)",
        "ct.load(0, a=1, b=2)",
    ]


def test_equal_numbers_shrink_together_first() -> None:
    found = bodies(expressions.smaller_numbers(), kernel(HEAD + "def kernel(x):\n    f(4, 4, 1.5)\n", "x"))
    assert found == [
        *("f(0, 0, 1.5)", "f(1, 1, 1.5)", "f(2, 2, 1.5)"),
        *("f(0, 4, 1.5)", "f(1, 4, 1.5)", "f(2, 4, 1.5)"),
        *("f(4, 0, 1.5)", "f(4, 1, 1.5)", "f(4, 2, 1.5)"),
        *("f(4, 4, 0.0)", "f(4, 4, 1.0)"),
    ]


def test_constants_are_written_out_and_leave_the_signature() -> None:
    text = HEAD + "def kernel(x, A: ct.Constant[int], B: ct.Constant[int]):\n    f(x, A, B=A - B)\n"
    both, last, first = parameters.inline_constants().variants(kernel(text, "x", "A=1", "B=-2"))
    assert [p.name for p in both.parameters] == ["x"]
    assert "def kernel(x):\n    f(x, 1, B=1 - (-2))" in both.text
    assert "def kernel(x, A: ct.Constant[int]):\n    f(x, A, B=A - (-2))" in last.text
    assert "def kernel(x, B: ct.Constant[int]):\n    f(x, 1, B=1 - B)" in first.text
    assert first.parameters[1:] == (Constant("B", -2),)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_constant_that_no_literal_stands_for_stays(value: float) -> None:
    candidate = kernel(
        HEAD + "def kernel(x, A: ct.Constant[float]):\n    f(x, A)\n", "x", Constant("A", value)
    )
    assert list(parameters.inline_constants().variants(candidate)) == []


def test_unused_parameters_go_with_their_descriptions() -> None:
    text = HEAD + "def kernel(x, y, z):\n    f(y)\n"
    both, *single = parameters.drop_unused_parameters().variants(kernel(text, "x", "y", "z"))
    assert "def kernel(y):" in both.text and [p.name for p in both.parameters] == ["y"]
    assert ["def kernel(x, y):" in single[0].text, "def kernel(y, z):" in single[1].text] == [True, True]


def test_one_array_stands_in_for_another_of_its_rank() -> None:
    text = HEAD + "def kernel(x, y, z):\n    f(x, y, z.y)\n"
    found = list(parameters.merge_arrays().variants(kernel(text, "x", array("y", 2), "z")))
    assert [[p.name for p in v.parameters] for v in found] == [["x", "y"], ["y", "z"]]
    assert "f(x, y, x.y)" in found[0].text and "f(z, y, z.y)" in found[1].text


def test_tidying_takes_comments_docstrings_and_line_breaks() -> None:
    text = '"""A module."""\nimport a\n# why\n@a.k\ndef kernel(x):  # so\n  """Does."""\n  f(x,\n    1)\n'
    assert tidy.tidied(text) == "import a\n\n\n@a.k\ndef kernel(x):\n    f(x, 1)\n"
    assert tidy.tidied(tidy.tidied(text)) == tidy.tidied(text)


def test_annotations_go() -> None:
    found = tidy.drop_annotations().variants(
        kernel("@k\ndef kernel(x: int, y: str) -> None:\n    pass\n", "x", "y")
    )
    assert [v.text.splitlines()[1] for v in found] == [
        "def kernel(x, y):",
        "def kernel(x: int, y) -> None:",
        "def kernel(x, y: str) -> None:",
    ]


def test_names_become_short_without_clashing() -> None:
    text = (
        HEAD + "def norm(x_in, x, out, LONG: int):\n    a = x\n    total = x_in.total + LONG\n"
        "    for step in range(total):\n        f(out, x_in, total=a, step=step)\n"
    )
    short = tidy.shortened(kernel(text, "x_in", "x", "out", "LONG=3", function="norm"))
    assert short.function == "kernel"
    assert [p.name for p in short.parameters] == ["y", "x", "w", "z"]
    assert short.text == HEAD + (
        "def kernel(y, x, w, z: int):\n    a = x\n    b = y.total + z\n"
        "    for c in range(b):\n        f(w, y, total=a, step=c)\n"
    )


def test_short_names_leave_the_meaning_alone(shipped_kernel: Candidate) -> None:
    short = tidy.shortened(shipped_kernel)
    assert complaint(short) is None
    assert cost(short)[:4] == cost(shipped_kernel)[:4]
