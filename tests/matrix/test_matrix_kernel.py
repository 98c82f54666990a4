"""What a matrix says of a reader's own kernel, against the text of that kernel."""

# ruff: noqa: E501
# A sentence stays on one line, so that it can be searched for.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.matrix import MatrixError, load_matrix
from harness.matrix.kernel_text import Function, KernelText

HEAD = """\
[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = "13.5.0"
[target]
arch = ["sm_90", "sm_120"]
[[case]]
kernel = "k.py:k"
dtype = "float32"
"""
KERNEL = """\
import cuda.tile as ct


@ct.kernel
def k(x, y, T: ct.Constant[int]):
    pass
"""
X, Y, T = (
    '{name = "x", kind = "array", rank = 1}',
    '{name = "y", kind = "array", rank = 1}',
    '{name = "T", kind = "constant", value = 128}',
)


Complaints = Callable[..., list[str]]


@pytest.fixture
def complaints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Complaints:
    """What is wrong with these parameters of the kernel in this text; parameters are a line each."""
    monkeypatch.chdir(tmp_path)

    def load(*parameters: str, text: str = KERNEL, more: str = "") -> list[str]:
        Path("k.py").write_text(text)
        Path("matrix.toml").write_text(HEAD + more + "parameters = [\n" + ",\n".join(parameters) + "\n]\n")
        try:
            load_matrix(Path("matrix.toml"))
        except MatrixError as error:
            return str(error).splitlines()
        return []

    return load


def test_parameters_that_are_the_kernel_s_are_right(complaints: Complaints) -> None:
    assert complaints(X, Y, T) == []


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            (X, T),
            'matrix.toml:9: [[case]] #1, key "parameters": lists 2, but the kernel (k.py:5) takes 3: x, y, T; add "y"',
        ),
        (
            (X, Y, '{name = "z", kind = "scalar"}', T),
            'matrix.toml:9: [[case]] #1, key "parameters": lists 4, but the kernel (k.py:5) takes 3: x, y, T; remove "z"',
        ),
        (
            (X, '{name = "z", kind = "scalar"}'),
            'matrix.toml:9: [[case]] #1, key "parameters": lists 2, but the kernel (k.py:5) takes 3: x, y, T; add "y" and "T" and remove "z"',
        ),
        (
            (Y, X, T),
            'matrix.toml:10: [[case]] #1, key "parameters", item 1, key "name": "y" is number 2 of the kernel\'s (k.py:5: x, y, T); list them in its order\n'
            'matrix.toml:11: [[case]] #1, key "parameters", item 2, key "name": "x" is number 1 of the kernel\'s (k.py:5: x, y, T); list them in its order',
        ),
        (
            (X, '{name = "out", kind = "array", rank = 1}', T),
            'matrix.toml:11: [[case]] #1, key "parameters", item 2, key "name": the kernel (k.py:5) takes no "out"; write "y", which stands here',
        ),
        (
            (X, Y, '{name = "T", kind = "scalar"}'),
            'matrix.toml:12: [[case]] #1, key "parameters", item 3, key "kind": is a ct.Constant in the kernel (k.py:5); write kind = "constant" and its value',
        ),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(
    complaints: Complaints, parameters: tuple[str, ...], said: str
) -> None:
    assert complaints(*parameters) == said.splitlines()


@pytest.mark.parametrize("decorator", ["", "@ct.function\n"])
def test_a_plain_function_is_no_kernel(complaints: Complaints, decorator: str) -> None:
    text = KERNEL.replace("@ct.kernel\n", decorator)
    line = 4 + bool(decorator)
    assert complaints(X, Y, T, text=text) == [
        f'matrix.toml:7: [[case]] #1, key "kernel": the function "k" (k.py:{line}) is no kernel; decorate it with @ct.kernel'
    ]


def test_a_name_inside_a_function_is_not_the_file_s(complaints: Complaints) -> None:
    text = "def make():\n    def k(x, y, T): ...\n"
    assert complaints(X, Y, T, text=text) == [
        'matrix.toml:7: [[case]] #1, key "kernel": "k.py" has no function "k"; check the name'
    ]


def test_a_tuple_has_but_one_calling_convention(complaints: Complaints) -> None:
    pair = '{name = "y", kind = "tuple", items = [{kind = "scalar"}]}'
    said = 'matrix.toml:9: [[case]] #1, key "calling_convention": tuples need "cutile_python_v2"; write that, or leave the key out'
    assert complaints(X, pair, T, more='calling_convention = "cutile_python_v1"\n') == [said]
    assert complaints(X, pair, T) == []
    assert {case.calling_convention for case in load_matrix(Path("matrix.toml")).cases} == {
        "cutile_python_v2"
    }


DEVICE = '[[device]]\nname = "h200"\ngpu = "H200"\narch = "sm_90"\n'
SHAPED = [f'{{name = "{n}", kind = "array", rank = 1, shape = [128]%s}}' for n in ("x", "y")]


@pytest.mark.parametrize(
    ("grid", "roles", "said"),
    [
        (
            "",
            (", role = 'in'", ", role = 'out'"),
            "matrix.toml:6: [[case]] #1: has no grid, so it is compiled, but runs on no device; add one, with a shape and a role for each array, or leave it so",
        ),
        (
            "grid = 1\n",
            ("", ""),
            'matrix.toml:10: [[case]] #1, key "parameters": no array has a role, so each counts as read and written; add role = "in" or role = "out"',
        ),
        (
            "grid = 1\n",
            (", role = 'in'", ", role = 'in'"),
            'matrix.toml:10: [[case]] #1, key "parameters": no array is written, so no result is looked at; give one role = "out" or "inout"',
        ),
        ("grid = 1\n", (", role = 'in'", ", role = 'out'"), None),
        ("grid = 1\n", ("", ", role = 'out'"), None),
        ("only = {arch = 'sm_120'}\n", ("", ""), None),
    ],
)
def test_what_is_hardly_meant_is_noted(
    complaints: Complaints, grid: str, roles: tuple[str, str], said: str | None
) -> None:
    arrays = [text % role for text, role in zip(SHAPED, roles, strict=True)]
    assert complaints(*arrays, T, more=grid) == []
    path = Path("matrix.toml")
    path.write_text(path.read_text() + DEVICE)
    assert load_matrix(path).notes == ((said,) if said else ())


@pytest.mark.parametrize(
    "text",
    [
        KERNEL.replace("@ct.kernel", "@tuned\n@ct.kernel"),
        KERNEL.replace("@ct.kernel", "@mine"),
        KERNEL.replace("@ct.kernel", "@ct.kernal"),
        KERNEL.replace("@ct.kernel", "") + "k = ct.kernel(k)\n",
        KERNEL + "from other import *\n",
        KERNEL.replace("y, T", "*rest, T"),
        "if True:\n    def k(a): ...\n",
        "k = make(128)\n",
        "def k(:\n",
    ],
)
def test_what_is_not_certain_is_left_to_the_frontend(complaints: Complaints, text: str) -> None:
    assert complaints(X, Y, T, text=text) == []


@pytest.mark.parametrize(
    ("imports", "decorator", "annotation"),
    [
        ("import cuda.tile as ct", "ct.kernel(occupancy=2)", "ct.Constant[int]"),
        ("import cuda.tile", "cuda.tile.kernel", "cuda.tile.Constant"),
        ("from cuda import tile", "tile.kernel", "tile.Constant[bool]"),
        ("from cuda.tile import Constant as C, kernel", "kernel()", "C[int]"),
    ],
)
def test_every_way_to_write_a_kernel_is_understood(imports: str, decorator: str, annotation: str) -> None:
    text = f"{imports}\n@{decorator}\ndef k(x, /, y, *, T: {annotation}, U: int = 2): ...\n"
    kind = annotation.partition("[")[2].rstrip("]")
    assert KernelText(text).function("k") == Function(3, True, ("x", "y", "T", "U"), {"T": kind})


def test_a_constant_is_of_the_kind_that_the_kernel_says(complaints: Complaints) -> None:
    whole = complaints(X, Y, T.replace("128", "[128, 512.0]"))
    assert whole == [
        'matrix.toml:12: [[case]] #1, key "parameters", item 3, key "value": is a ct.Constant[int] in the '
        "kernel (k.py:5), not 512.0; write a whole number"
    ]
    flag = complaints(X, Y, T, text=KERNEL.replace("[int]", "[bool]"))
    assert "write true or false" in flag[0]
    assert complaints(X, Y, T, text=KERNEL.replace("[int]", "[float]")) == []
    assert complaints(X, Y, T.replace("128", "0.5"), text=KERNEL.replace("[int]", "")) == []
