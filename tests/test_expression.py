"""Expressions of a matrix file: what they may hold, and what they answer."""

from __future__ import annotations

import pytest

from harness.expression import MAX_LENGTH, ExpressionError, parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x * 2 + b", ("x", "b")),
        ("x @ w.T", ("x", "w")),
        ("exp(x - max(x, axis=1, keepdims=True))", ("x",)),
        ("where(x > 0, x, 0)", ("x",)),
        ("sum(x * x, axis=(0, 1)) / x.shape[1]", ("x",)),
        ("x[:, None] + y[-1]", ("x", "y")),
        ('astype(x, "bfloat16") * EPS', ("x", "EPS")),
        ("x\n+ y", ("x", "y")),
        ("reshape(transpose(x, axes=(1, 0)), (n, 4))", ("x", "n")),
    ],
)
def test_reads_names(text: str, names: tuple[str, ...]) -> None:
    assert parse(text).names == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x +", "is no expression"),
        ("__import__('os')", "knows no function __import__"),
        ("x.__class__", "is not something an expression may hold"),
        ("softmaks(x)", "knows no function"),
        ("sums(x)", "did you mean sum?"),
        ("sum(x, dtype=3)", "sum has no keyword dtype=; it takes axis=, keepdims="),
        ("exp(x, y)", "exp takes 1 argument, not 2"),
        ("where(x)", "where takes 3 arguments, not 1"),
        ("astype(x, y)", "astype takes a dtype in quotes"),
        ("[i for i in x]", "is not something an expression may hold"),
        ("x[y]", "is no index"),
        ("'a' * 9", "is not something an expression may hold"),
        ("f(x)(y)", "is not something an expression may hold"),
        ("lambda: x", "is not something an expression may hold"),
        ("-" * 100 + "x", "nested too deeply"),
        ("(" * 5000 + "x", "is longer"),
        ("x" * (MAX_LENGTH + 1), "is longer"),
        ("x), (y", "is not something"),
        ("", "is not something"),
        ("sum(*x)", "sum takes 1 argument"),
        ("sum(x, axis=y)", "axis= takes numbers"),
        ("(x, y)", "is not something an expression may hold"),
        ("np.tanh(x)", "is written without its module: tanh(...)"),
        ("1 < x < 3", "is not something an expression may hold"),
    ],
)
def test_refuses_with_a_remedy(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert said in str(caught.value)
