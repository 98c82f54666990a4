"""Shapes of expressions, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from harness.execute.references.expression import _evaluate, _exact
from harness.expression import ExpressionError, parse
from harness.expression_shape import Known, shape_of

SHAPES = {"x": (4, 6), "w": (6,), "m": (6, 3), "b": (2, 4, 6)}


@pytest.mark.parametrize(
    "text",
    [
        "x * w",
        "x @ m",
        "b @ m",
        "x @ w",
        "w @ m",
        "sum(x)",
        "sum(x, axis=1)",
        "mean(x, axis=-1, keepdims=True)",
        "max(b, axis=(0, 2))",
        "x.T",
        "transpose(b, axes=(2, 0, 1))",
        "transpose(b)",
        "x[:, None, :]",
        "x[1:3, ::-1]",
        "x[-1]",
        "b[0, :, 2]",
        "reshape(x, (N * 2, -1))",
        "reshape(x, (x.shape[1], 4))",
        "where(x > w, x, 0)",
        "maximum(x, w) - exp(x)",
        "cumsum(x, axis=0)",
        "cumsum(x)",
        "arange(N) + 1",
        'astype(x, "float16")',
        "2 * N",
    ],
)
def test_it_is_numpys(text: str) -> None:
    arrays = {name: _exact(np.ones(shape, np.float32)) for name, shape in SHAPES.items()}
    expression = parse(text)
    real = _evaluate("y", expression, {**arrays, "N": _exact(np.asarray(4))}).number.shape
    known = {name: Known(shape) for name, shape in SHAPES.items()} | {"N": Known((), 4)}
    assert shape_of(expression, known) == real


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x + m", '"x + m" puts [4, 6] and [6, 3] together, which do not fit'),
        ("x @ x", "multiplies [4, 6] by [4, 6], which do not fit"),
        ("sum(x, axis=7)", "names axis 7 of [4, 6], which has 2"),
        ("reshape(x, (5, 5))", "makes [5, 5] of [4, 6]"),
        ("w[0, 0]", "more indices than [6] has dimensions"),
        ("w[9]", "is outside [6]"),
        ("x.shape[3] + reshape(x, (x.shape[3], 1))", "names axis 3"),
    ],
)
def test_what_cannot_be_is_said(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        shape_of(parse(text), {name: Known(shape) for name, shape in SHAPES.items()})
    assert said in str(caught.value)


def test_what_is_not_known_is_left_to_the_run() -> None:
    known = {"x": Known((4, 6)), "n": Known()}
    assert shape_of(parse("reshape(x, (n, 2))"), known) is None
    assert shape_of(parse("z + 1"), known) is None
