"""Who launches: an axis of a case that leaves the ids of everything else alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cases import draw
from harness.matrix import MatrixError, load_matrix
from harness.matrix.write import case_table
from harness.model import Case, Cell, Hints, Toolchain
from harness.plan import describe, match

HEAD = """\
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = "13.3.1"
[target]
arch = "sm_90"
[[case]]
kernel = "rmsnorm.tiled"
"""
SHAPE = 'shape = [[64, 64]]\ndtype = "float32"\n'


def test_an_engine_is_an_axis(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(HEAD + SHAPE + 'engine = ["cubin", "jit"]\n')
    cubin, jit = load_matrix(path).cases
    assert (cubin.engine, jit.engine) == ("cubin", "jit")
    path.write_text(HEAD + SHAPE)
    assert load_matrix(path).cases == (cubin,)
    assert case_table(jit)["engine"] == "jit"
    assert "engine" not in case_table(cubin)


def test_generated_cases_have_one_too(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_text(HEAD + 'engine = "jit"\ngenerate = {count = 12}\n')
    assert {case.engine for case in draw(load_matrix(path).generators[0])} == {"jit"}
    path.write_text(HEAD + "generate = {count = 12}\n")
    assert {case.engine for case in draw(load_matrix(path).generators[0])} == {"cubin"}


def test_cells_without_it_keep_their_ids() -> None:
    case = Case("rmsnorm.tiled", (64, 64), "float32", Hints(4))
    cell = Cell(Toolchain("t", "1.5.0", "13.3.1"), "sm_90", case)
    assert "engine" not in case.to_json()
    assert "engine" not in case.settings
    jit = replace(cell, case=replace(case, engine="jit"))
    assert jit.id != cell.id
    assert Cell.from_json(jit.to_json()) == jit
    assert jit.case.settings["engine"] == "jit"
    assert match([cell, jit], describe(jit)) == jit
    assert match([cell, jit], describe(cell)) == cell


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + SHAPE + 'engine = "jitt"\n', '"jit"'),
        (
            HEAD.replace("rmsnorm.tiled", "k.py:k") + 'engine = "jit"\nparameters = []\n',
            "only for the lab's own",
        ),
    ],
)
def test_what_it_cannot_be_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "k.py").write_text("def k(): ...\n")
    path = tmp_path / "matrix.toml"
    path.write_text(text)
    with pytest.raises(MatrixError, match="engine") as error:
        load_matrix(path)
    assert words in str(error.value)
