"""What tells apart cases of one kernel that look equal otherwise."""

from __future__ import annotations

from dataclasses import replace

from harness.assumptions import assumptions, shown, telling
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Parameter,
    RunArgument,
    RunSettings,
    ScalarParameter,
    TupleParameter,
)


def array(rank: int, name: str = "x", dtype: str = "float32") -> Array:
    return Array(name, dtype, (None,) * rank, (1,) * rank, (None,) * (rank - 1) + (1,), (1,) * rank)


def case(*parameters: Parameter, **changes: object) -> Case:
    return replace(Case("k.py:k", (), "float32", parameters=parameters), **changes)  # type: ignore[arg-type]


def apart(*cases: Case) -> tuple[str, ...]:
    return telling(cases, lambda one: one.kernel)


def test_the_first_difference_is_enough() -> None:
    flat, square, odd = case(array(1)), case(array(2)), case(replace(array(2), stride_divisible_by=(8, 1)))
    assert apart(flat, square) == ("x.rank",)
    assert apart(flat, square, odd) == ("x.rank", "x.stride_divisible_by")
    assert shown(odd, apart(square, odd)) == ["x.stride_divisible_by=8,1"]


def test_what_settings_tell_apart_needs_no_more() -> None:
    assert apart(case(array(1)), replace(case(array(2)), kernel="k.py:other")) == ()
    assert apart(case(array(1)), case(array(1))) == ()
    assert apart(Case("rmsnorm.tiled", (1, 2), "int8"), Case("rmsnorm.tiled", (3, 4), "int8")) == ()


def test_every_kind_of_parameter_is_told() -> None:
    scalars = case(ScalarParameter("n", "int32")), case(ScalarParameter("n", "int64"))
    assert apart(*scalars) == ("n.dtype",)
    element = array(1, dtype="int8")
    lists = case(ArrayList("l", element)), case(ArrayList("l", element, elements_may_alias=True))
    assert apart(*lists) == ("l.elements_may_alias",)
    pairs = [case(TupleParameter("t", (array(1, "t.0"), Constant("t.1", value)))) for value in (True, False)]
    assert apart(*pairs) == ("t.1.value",)
    assert assumptions(pairs[0])["t.1.value"] == "true"


def test_launches_are_told() -> None:
    def launched(**changes: object) -> Case:
        argument = replace(RunArgument("x", (64,)), **changes)  # type: ignore[arg-type]
        return case(array(1), run=RunSettings((2, 1, 1), (argument,)))

    assert apart(launched(), launched(shape=(128,))) == ("x.shape",)
    assert apart(launched(), case(array(1), run=RunSettings((3, 1, 1), (RunArgument("x", (64,)),)))) == (
        "grid",
    )


def test_what_has_no_name_is_told_by_digest() -> None:
    settings = RunSettings((1, 1, 1), (RunArgument("x", (4,)),))
    double = replace(settings, reference=(("x", "x * 2"),))
    one, other = case(array(1), run=settings), case(array(1), run=double)
    assert apart(one, other) == ("case",)
    assert apart(one, other, case(array(2), run=settings)) == ("x.rank", "case"), "the digest comes last"
    assert shown(one, ["case"]) == [f"case={one.digest[:6]}"]
