"""Whatever stands in the file: a matrix, or sentences about it, and soon."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.matrix import Matrix, MatrixError, load_matrix
from harness.matrix.explain import toml
from harness.matrix.schema import CaseTable, MatrixFile, ToolchainTable
from harness.plan import count

SHIPPED = (Path(__file__).parents[2] / "matrix.toml").read_text()
VERSIONS = {
    "cuda-tile": ("1.5.0", "1.7.0"),
    "cuda-toolkit": ("13.2.2", "13.3.1", "13.4.3", "13.5.0"),
    "nvidia-cuda-tileiras": ("13.4.92",),
    "nvidia-nvvm": ("13.4.92",),
    "nvidia-cuda-nvcc": ("13.4.92",),
}
SENTENCE = re.compile(r"^[^\n]*matrix\.toml(:\d+)?: \S[^\n]*$")

calm = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def load(folder: Path, text: str | bytes) -> Matrix | None:
    path = folder / "matrix.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="replace"))
    started = time.process_time()
    try:
        matrix = load_matrix(path, known_versions=VERSIONS.__getitem__)
    except MatrixError as error:
        assert error.problems
        for line in str(error).splitlines():
            assert SENTENCE.match(line), line
            assert line.isprintable()
        matrix = None
    assert time.process_time() - started < 5
    return matrix


PIECES = (
    *(
        "[",
        "]",
        "[[",
        "{",
        "}",
        '"',
        "'",
        '"""',
        "=",
        ".",
        ",",
        "#",
        "\n",
        "\\",
        "\0",
        "\x1b[2J",
        "é",
        "\u2028",
    ),
    *(
        "nan",
        "-inf",
        "1e400",
        "99999999999999999999999",
        "true",
        "1979-05-27",
        "[[case]]\n",
        "[case.shape]\n",
    ),
    *("[]", "{}", '""', '"$dtype"', '"default"', "[[1,2],[3]]", "seed = 1\n", "generate = {count = 1}\n"),
)


@calm
@given(st.integers(0, 2**32))
def test_mutated_text(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = SHIPPED
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text))
        cut = chance.choice((0, 0, 1, 5, 40))
        text = text[:at] + chance.choice((*PIECES, text[at : at + 80], "")) + text[at + cut :]
    load(tmp_path, text)


@calm
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_garbage(tmp_path: Path, text: str | bytes) -> None:
    load(tmp_path, text)


values = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.sampled_from([0, 1, 2, 16, -1, 2**31, 10**30]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=10),
        st.sampled_from(
            ["default", "dynamic", "$dtype", "sm_90", "bf16", "13.3.1", "rmsnorm.tiled", "array"]
        ),
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "name", "rank", "value", "dtype", "items", "count"]), inner, max_size=4
        )
    ),
    max_leaves=6,
)


def table(model: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from([*model.model_fields, "other"]), values, max_size=6)


@calm
@given(
    st.dictionaries(st.sampled_from([*MatrixFile.model_fields, "other"]), values, max_size=4),
    st.lists(table(ToolchainTable), min_size=1, max_size=2) | values,
    st.lists(table(CaseTable), min_size=1, max_size=2) | values,
)
def test_any_values_in_any_place(tmp_path: Path, file: dict[str, Any], toolchain: Any, case: Any) -> None:
    file = {**file, "toolchain": toolchain, "case": case}
    load(tmp_path, "".join(f"{key} = {toml(value)}\n" for key, value in file.items()))


axes = {
    "occupancy": st.integers(1, 32) | st.just("default"),
    "num_ctas": st.sampled_from([1, 2, 4, 8, 16, "default"]),
    "opt_level": st.integers(0, 3),
    "num_worker_warps": st.sampled_from([1, 2, 4, 8, 16, 32, "default"]),
    "latency": st.integers(1, 10),
    "tile_n": st.sampled_from([1, 64, 1024]),
    "eps": st.floats(0, 1),
    "seed": st.integers(0, 9),
    "dtype": st.sampled_from(["bfloat16", "float16", "float32"]),
    "shape": st.tuples(st.integers(0, 99), st.integers(1, 99)).map(list),
}


@calm
@given(
    st.fixed_dictionaries(
        {key: st.lists(axis, min_size=1, max_size=2, unique_by=repr) for key, axis in axes.items()}
    )
)
def test_what_is_right_is_taken_and_multiplied_out(tmp_path: Path, case: dict[str, Any]) -> None:
    lines = "".join(f"{key} = {toml(value)}\n" for key, value in case.items())
    head = SHIPPED[: SHIPPED.index("\n[[case]]") + 1]
    matrix = load(tmp_path, f'{head}[[case]]\nkernel = "rmsnorm.multi_wave_cached"\n{lines}')
    expected = 1
    for axis in case.values():
        expected *= len(axis)
    assert matrix is not None
    assert len(matrix.cases) == expected
    assert count(matrix) == expected * 8 * 4


@pytest.mark.parametrize(
    "text",
    [
        "[target]\narch = [" + '"xx", ' * 9_999 + "]",
        "[target]\narch = [" + '"x", ' * 100_000 + "]",
        "[target]\narch = '" + "x" * 900_000 + "'",
        pytest.param("[[case]]\n" * 90_000, marks=pytest.mark.slow),
        pytest.param("".join(f"[[case]]\nk{n} = 1\n" for n in range(40_000)), marks=pytest.mark.slow),
        "[[toolchain]]\ncuda_tile = ["
        + ", ".join(f'"1.{n}"' for n in range(9_000))
        + "]\ncuda_toolkit = '13.3'",
        "[[case]]\nkernel = [" + ", ".join(f'"k{n}.py:k"' for n in range(9_999)) + "]",
        '[[case]]\nkernel = "' + "k" * 900_000 + '.py:k"',
        pytest.param(
            "[[case]]\nparameters = [" + '{name = "x", kind = "array"}, ' * 20_000 + "]",
            marks=pytest.mark.slow,
        ),
        "a" + ".a" * 2_000 + " = 1",
        "x = " + "{a = " * 400 + "1" + "}" * 400,
    ],
    ids=lambda text: text[:40].replace("\n", " "),
)
def test_files_made_to_be_slow(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) is None
