from __future__ import annotations

import tomllib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.kernels.arrays import ITEMSIZE
from harness.matrix import expand, schema
from harness.matrix.explain import toml
from harness.matrix.write import case_table
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Hints,
    RunArgument,
    RunSettings,
    ScalarParameter,
    Tolerance,
    TupleParameter,
)

DTYPES = st.sampled_from(sorted(ITEMSIZE))


@st.composite
def arrays(draw: st.DrawFn, name: str) -> Array:
    rank = draw(st.integers(1, 3))

    def per_dimension(values: st.SearchStrategy[object]) -> tuple:  # type: ignore[type-arg]
        return tuple(draw(values) for _ in range(rank))

    return Array(
        name,
        draw(DTYPES),
        shape_constant=per_dimension(st.none() | st.integers(0, 9)),
        shape_divisible_by=per_dimension(st.sampled_from([1, 16, 48])),
        stride_constant=per_dimension(st.none() | st.integers(1, 9)),
        stride_divisible_by=per_dimension(st.sampled_from([1, 4, 8])),
        base_divisible_by=draw(st.sampled_from([1, 16, 32])),
        alias_groups=draw(st.sampled_from([(), ("g",)])),
        may_alias_internally=draw(st.booleans()),
        index_dtype=draw(st.sampled_from(["int32", "int64"])),
    )


@st.composite
def own_cases(draw: st.DrawFn) -> Case:
    first, second = draw(arrays("a")), draw(arrays("b"))
    scalar = ScalarParameter("n", draw(DTYPES))
    constant = Constant("C", draw(st.integers(-5, 5) | st.booleans() | st.floats(-1, 1)))
    parameters = (first, scalar, second, constant)
    run = None
    if draw(st.booleans()):
        shapes = [tuple(draw(st.integers(0, 40)) for _ in range(a.rank)) for a in (first, second)]
        arguments = (
            RunArgument("a", shapes[0], draw(st.sampled_from(["in", "out", "inout"]))),
            RunArgument("n", value=draw(st.integers(0, 9))),
            RunArgument("b", shapes[1], "in", draw(st.sampled_from(["normal", "ones"]))),
        )
        run = RunSettings((draw(st.integers(1, 9)), 1, 1), arguments)
    hints = Hints(
        draw(st.none() | st.integers(1, 32)),
        draw(st.none() | st.sampled_from([1, 2, 4])),
        draw(st.none() | st.integers(0, 3)),
    )
    knobs = tuple(sorted({"allow_tma": False, "C": constant.value}.items()))
    return Case("file.py:kernel", (), first.dtype, hints, knobs, parameters=parameters, run=run)


def reread(case: Case) -> Case:
    lines = "\n".join(f"{key} = {toml(value)}" for key, value in case_table(case).items())
    (again,) = expand.cases(schema.CaseTable.model_validate(tomllib.loads(lines)))
    return again


@given(own_cases())
def test_a_case_of_an_own_kernel_comes_back_as_it_was(case: Case) -> None:
    assert reread(case) == case


@given(
    st.sampled_from(["contiguous", "sliced"]),
    st.none() | st.integers(1, 32),
    st.integers(0, 3),
    st.booleans(),
)
def test_a_case_of_a_shipped_kernel_comes_back_as_it_was(
    layout: str, occupancy: int | None, level: int, tma: bool
) -> None:
    hints = Hints(occupancy=occupancy, opt_level=level)
    case = Case("rmsnorm.tiled", (64, 128), "float16", hints, (("allow_tma", tma),), layout)
    assert reread(case) == case


def test_what_goes_without_saying_is_left_out() -> None:
    run = RunSettings((1, 1, 1), (RunArgument("x", (16, 64), "in"),))
    array = Array("x", "float32", (None, None), (16, 16), (None, 1), (4, 1))
    case = Case("k.py:k", (), "float32", Hints(opt_level=None), parameters=(array,), run=run)
    assert case_table(case) == {
        "kernel": "k.py:k",
        "grid": [1, 1, 1],
        "parameters": [
            {
                "name": "x",
                "kind": "array",
                "dtype": "float32",
                "rank": 2,
                "shape": [16, 64],
                "role": "in",
            }
        ],
    }


def test_lists_tuples_and_references_come_back() -> None:
    x = Array("x", "float32", (None,), (1,), (1,), (1,))
    case = Case(
        "file.py:kernel",
        (),
        "",
        parameters=(
            ArrayList("xs", replace(x, name="xs"), ("g",), True),
            TupleParameter(
                "t", (replace(x, name="t.0"), ScalarParameter("t.1", "int32"), Constant("t.2", 4))
            ),
        ),
        hints=Hints(opt_level=None),
        calling_convention="cutile_python_v2",
    )
    assert written_and_read(case) == case
    launched = Case(
        "file.py:kernel",
        (),
        "float32",
        parameters=(x,),
        hints=Hints(opt_level=None),
        run=RunSettings(
            (1, 1, 1), (RunArgument("x", (4,), "inout"),), (("x", "x * 2"),), (("x", Tolerance(ulp=2)),)
        ),
    )
    launched = replace(launched, parameters=(replace(x, shape_divisible_by=(1,)),))
    assert written_and_read(launched) == launched


def written_and_read(case: Case) -> Case:
    text = "\n".join(f"{key} = {toml(value)}" for key, value in case_table(case).items())
    return next(expand.cases(schema.CaseTable.model_validate(tomllib.loads(text))))
