"""What a reader's own kernel computes, said in the matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.execute.launches import launch_of
from harness.execute.protocol import EXPRESSIONS, Timeouts
from harness.kernels import get
from harness.matrix import MatrixError, load_matrix
from harness.matrix.write import case_table
from harness.model import Case, Cell, Inspection, Tolerance, Toolchain

HEAD = """\
[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = "13.5.0"
[target]
arch = "sm_90"
[[case]]
kernel = "k.py:scale"
parameters = [
    {name = "x", kind = "array", dtype = "float32", rank = 1, shape = [64], role = "in"},
    {name = "y", kind = "array", dtype = "float32", rank = 1, shape = [64], role = "out"},
    {name = "n", kind = "scalar", dtype = "int32", value = 64},
    {name = "FACTOR", kind = "constant", value = 2},
]
"""


def load(tmp_path: Path, text: str) -> Case:
    (tmp_path / "k.py").write_text("import cuda.tile as ct\n\n@ct.kernel\ndef scale(x, y, n, FACTOR): ...\n")
    path = tmp_path / "matrix.toml"
    path.write_text(HEAD + text)
    (case,) = load_matrix(path).cases
    return case


def test_it_travels_to_the_launch(tmp_path: Path) -> None:
    case = load(
        tmp_path, 'grid = 1\nreference = {t = "x * FACTOR", y = "t + 1"}\ntolerance = {y = {ulp = 2}}\n'
    )
    assert case.run is not None
    assert Case.from_json(case.to_json()) == case
    assert case.run.tolerance == (("y", Tolerance(ulp=2)),)
    kernel = get(case.kernel, tmp_path)
    cell = Cell(Toolchain("t", "1.7.0", "13.5.0"), "sm_90", case)
    inspection = Inspection("scale", "sm_90", 32, 128, 0, 0)
    launch = launch_of(cell, kernel, inspection, tmp_path / "c", "0" * 64, 132, Timeouts())
    assert launch.reference is not None
    assert launch.reference.name == EXPRESSIONS
    assert launch.reference.expressions == (("t", "x * FACTOR"), ("y", "t + 1"))
    assert launch.reference.parameters == {"FACTOR": 2.0}
    assert type(launch).from_json(launch.to_json()) == launch


def test_it_is_written_back(tmp_path: Path) -> None:
    case = load(tmp_path, 'grid = 1\nreference = {y = "x"}\ntolerance = {y = {relative = 0.5}}\n')
    table = case_table(case)
    assert table["reference"] == {"y": "x"}
    assert table["tolerance"] == {"y": {"relative": 0.5, "absolute": 0.0, "ulp": 0}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('reference = {y = "x"}', 'key "reference": is for kernels that run; add "grid", or remove it'),
        ('grid = 1\nreference = {y = "x +"}', "is no expression"),
        ('grid = 1\nreference = {y = "X"}', 'knows no "X"; did you mean "x"?'),
        ('grid = 1\nreference = {y = "y"}', 'knows no "y"; there are "x", "n" and "FACTOR"'),
        ('grid = 1\nreference = {z = "x"}', 'says nothing of an array that is written ("y"); name one'),
        ('grid = 1\nreference = {y = "x"}\ntolerance = {x = {ulp = 1}}', "has no reference to keep to"),
        (
            'grid = 1\nreference = {y = "x"}\ntolerance = {y = {rel = 1}}',
            'known here are "relative", "absolute" and "ulp"',
        ),
        ('grid = 1\nreference = {y = "open(x)"}', "knows no function open"),
        (
            'grid = 1\nreference = {y = "x", yy = "x"}',
            "is neither an output nor read by a later step; did you",
        ),
        ('grid = 1\nreference = {x = "x", y = "x"}', "is no output of the kernel"),
        ('grid = 1\nreference = {y = "sum(x)"}', 'has shape [], but "y" is [64]; correct one of them'),
        ('grid = 1\nreference = {y = "sum(x, axis=3)"}', "names axis 3 of [64], which has 1"),
        ('grid = 1\nreference = {t = "x[:9]", y = "x + t"}', "puts [64] and [9] together, which do not fit"),
    ],
)
def test_what_is_wrong_with_it_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(MatrixError) as caught:
        load(tmp_path, text)
    assert said in str(caught.value)


def test_float64_needs_a_tolerance(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import cuda.tile as ct\n\n@ct.kernel\ndef scale(x, y, n, FACTOR): ...\n")
    path = tmp_path / "matrix.toml"
    wide = HEAD.replace("float32", "float64") + 'grid = 1\nreference = {y = "x"}\n'
    path.write_text(wide)
    with pytest.raises(MatrixError, match="float64, for which no error bound is worked out; add a tolerance"):
        load_matrix(path)
    path.write_text(wide + "tolerance = {y = {relative = 1e-12}}\n")
    assert load_matrix(path).cases


def test_a_lab_kernel_brings_its_own(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(
        HEAD.partition("kernel =")[0]
        + 'kernel = "vector.add"\nshape = [[64]]\ndtype = "float32"\nreference = {c = "a + b"}\n'
    )
    with pytest.raises(MatrixError, match=r'"vector\.add" brings its own reference; remove the key'):
        load_matrix(path)
