"""The result on disk: a record that comes back, a matrix file that means the same kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_kernels import array

from harness.kernels import get
from harness.matrix import load_matrix
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Hints,
    Parameter,
    ScalarParameter,
    Toolchain,
    TupleParameter,
)
from harness.plan import plan
from harness.reduce.engine import End
from harness.reduce.reduced import LaunchArray, Reduced, matrix_text, write

JIT = Array("x", "bfloat16", (None, None), (16, 1), (None, 1), (8, 1))
ODD = Array("y", "float32", (None, 512), (1, 16), (None, None), (1, 1), 4, ("a",), True, "int64")


def reduced(*parameters: Parameter, hints: Hints | None = None, good: bool = True) -> Reduced:
    names = ", ".join(p.name for p in parameters)
    case = Case("rmsnorm.static_persistent", (16384, 512), "bfloat16")
    return Reduced(
        text=f"import cuda.tile as ct\n\n\n@ct.kernel\ndef kernel({names}):\n    pass\n",
        function="kernel",
        parameters=parameters,
        hints=hints or Hints(),
        arch="sm_90",
        toolchain=Toolchain("bad", "1.7.0", "13.3.1", ptxas="13.4.3"),
        good=Toolchain("good", "1.7.0", "13.4.3") if good else None,
        oracle="signature=s",
        verdict="predicted_deadlock",
        signature="s",
        summary="It ends badly.",
        case=case,
        arrays=(LaunchArray("x", "x", "bfloat16", (16384, 512), (512, 1)),),
        original_cell="0123456789ab",
        original_case=case,
        original_statements=11,
        statements=1,
        tried=20,
        kept=5,
        seconds=1.5,
        end=End.BUDGET,
        deadline=60.0,
    )


def test_the_record_comes_back_from_json() -> None:
    record = reduced(JIT, Constant("N", 4), hints=Hints(occupancy=16))
    assert Reduced.from_json(json.loads(json.dumps(record.to_json()))) == record


@pytest.mark.parametrize(
    "parameters",
    [
        (JIT,),
        (JIT, ODD, array("z", 3)),
        (ScalarParameter("n", "int32"), Constant("F", 1e-6), Constant("B", True), Constant("I", -3)),
        (ArrayList("xs", array("xs", 2), ("g",), True),),
        (TupleParameter("t", (array("t.0", 1), ScalarParameter("t.1", "float32"), Constant("t.2", 5))),),
    ],
    ids=["jit", "odd", "scalars", "list", "tuple"],
)
def test_the_matrix_file_means_the_same_kernel(tmp_path: Path, parameters: tuple[Parameter, ...]) -> None:
    write(reduced(*parameters, hints=Hints(occupancy=16, opt_level=2)), tmp_path)
    matrix = load_matrix(tmp_path / "matrix.toml")
    bad, good = plan(matrix)
    assert (bad.toolchain.cuda_toolkit, good.toolchain.cuda_toolkit) == ("13.3.1", "13.4.3")
    assert (bad.toolchain.ptxas, good.toolchain.ptxas) == ("13.4.3", None)
    specialization = get(bad.case.kernel, tmp_path).specialise(bad.case)
    assert specialization.parameters == parameters
    assert specialization.hints == Hints(occupancy=16, opt_level=2)
    assert Path(specialization.source.path).read_text().startswith("import cuda.tile")


def test_without_a_good_toolchain_the_matrix_has_one() -> None:
    text = matrix_text(reduced(JIT, good=False))
    assert text.count("[[toolchain]]") == 1
    assert "occupancy" not in text and "opt_level" not in text
