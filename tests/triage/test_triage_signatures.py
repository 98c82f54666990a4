"""Parameters from comments, options and launches; and what is asked where nothing tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model import Array, Constant, ScalarParameter, TupleParameter
from harness.triage.look import FoundKernel, FoundLaunch, FoundParameter, Seen, TriageError
from harness.triage.notation import parse
from harness.triage.signatures import signatures

X = FoundParameter("x", "")
N = FoundParameter("n", "int")
T = FoundParameter("T", "constant")


def seen(*kernels: FoundKernel, text: str = "") -> Seen:
    return Seen(Path("report.py"), text, kernels)


def kernel(*parameters: FoundParameter, line: int = 3, launches: tuple[FoundLaunch, ...] = ()) -> FoundKernel:
    return FoundKernel("k", "k", line, parameters, launches)


def test_the_notation() -> None:
    found = parse("a = array(half, 2); n = scalar(int64); T = const(32); b = const(true)", "here")
    assert found == {
        "a": Array("a", "float16", (None, None), (1, 1), (None, 1), (8, 1)),
        "n": ScalarParameter("n", "int64"),
        "T": Constant("T", 32),
        "b": Constant("b", True),
    }


def test_assumptions_in_the_notation() -> None:
    found = parse(
        "a = array(float32, 2, strides=dynamic, base=1); b = array(float32, shape=(32, 48))", "here"
    )
    assert found["a"] == Array("a", "float32", (None, None), (1, 1), (None, None), (1, 1), 1)
    assert found["b"] == Array("b", "float32", (None, None), (16, 16), (None, 1), (4, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "cannot read 'a ='"),
        ("a = 3", "cannot read 'a = 3'"),
        ("a = matrix(3)", "'matrix' is no kind of parameter; write array, scalar or const"),
        ("a = array(float33, 2)", "unknown dtype float33"),
        ("a = array(float32, 2, stride=1)", "unknown word 'stride'"),
        ("T = const(open)", None),
        ("T = const(__import__('os'))", "__import__('os') is neither a word nor a value"),
        ("a = array(float16)", "array takes a dtype and a rank, as in array(float16, 2)"),
        ("a = array()", "array takes a dtype and a rank"),
        ("a = array(float16, 2, 3)", "array takes a dtype and a rank"),
        ("a = array(float16, 2, shape=(1, 2))", "array takes a dtype and a rank"),
        ("a = array(2, float16)", "unknown dtype 2"),
        ("a = array(float16, two)", "a rank is a whole number from 0 to 16, not 'two'"),
        ("a = array(float16, shape=32)", "a shape is a tuple"),
        ("a = array(float16, shape=(32, n))", "(32, n) is neither a word nor a value"),
        ("a = array(float16, 2, divisible=0)", "divisible is a whole number from 1"),
        ("a = array(float16, **x)", "array takes a dtype and a rank"),
        ("a = scalar()", "scalar takes a dtype, as in scalar(int32)"),
        ("T = const()", "const takes a value, as in const(128)"),
        ("T = const(1, 2)", "const takes a value"),
        ("T = const((1,))", "(1,) is no value of a constant"),
        ("T = const(1)\nU = 3", "cannot read"),
        ("T = const(1); T = const(2)", "T is described twice"),
        ("a = " + "(" * 500, "cannot read"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, said: str | None) -> None:
    if said is None:
        assert parse(text, "here") == {"T": Constant("T", "open")}
        return
    with pytest.raises(TriageError, match=r"^here: ") as caught:
        parse(text, "here")
    assert said in str(caught.value)


_ATOMS = st.sampled_from(["float16", "2", "-1", "(1, 2)", "None", "1.5", "x", "'s'", "{}", "f()", "1e999"])
_GIVEN = st.lists(st.tuples(st.sampled_from(["", "shape=", "base=", "strides="]), _ATOMS), max_size=4)
_CALLS = st.builds(
    lambda kind, given: f"a = {kind}({', '.join(key + value for key, value in given)})",
    st.sampled_from(["array", "scalar", "const"]),
    _GIVEN,
)
WORDS = st.sampled_from(
    [
        *"abT=()[]{},;.*-+1 0",
        "array",
        "scalar",
        "const",
        "float16",
        "shape=",
        "base=",
        "None",
        "'",
        "\n",
        "\\",
    ]
)


@given(st.one_of(st.text(), st.lists(WORDS, max_size=25).map("".join), _CALLS))
@example("a = array(float16, shape=(9223372036854775807, 2))")
@example("a = array('float16', {}, shape=[])")
@example("T = const(-[])")
@example(f"T = const({'1+' * 3000}1)")
@example(f"T = const({'-' * 100_000}1)")
def test_whatever_is_written_is_read_or_told_in_one_sentence(text: str) -> None:
    try:
        parse(text, "here")
    except TriageError as error:
        assert str(error).startswith("here: ")
        assert "index" not in str(error).replace(repr(text)[1:-1], "")


def test_an_option_counts_more_than_a_comment() -> None:
    text = "# harness: x = array(float32, 1); T = const(8)\n\n@ct.kernel\ndef k(x, n: int, T): pass\n"
    (found,) = signatures(seen(kernel(X, N, T), text=text), "T = const(16)")
    assert found.parameters[1:] == (ScalarParameter("n", "int32"), Constant("T", 16))
    assert found.known_by == "told"


def test_what_is_missing_is_asked_for_with_a_line_to_fill_in() -> None:
    with pytest.raises(TriageError) as caught:
        signatures(seen(kernel(X, N, T)))
    assert "k: x, T" in str(caught.value)
    assert str(caught.value).endswith("# harness: x = array(float32, 2); T = const(128)")


def test_launches_tell_the_parameters_and_equal_ones_are_one() -> None:
    array = {"kind": "array", "dtype": "float16", "shape": [128, 64], "strides": [64, 1], "offset": 0}
    sliced = {**array, "shape": [128, 63], "offset": 1}
    number = {"kind": "scalar", "dtype": "int32", "value": 128}
    launches = (
        FoundLaunch((1,), (array, number, number), line=8),
        FoundLaunch((2,), (array, number, number), line=8),
        FoundLaunch((1,), (sliced, number, number), line=9),
    )
    found = signatures(seen(kernel(X, N, T, launches=launches)))
    assert [one.known_by for one in found] == ["launch", "launch"]
    assert [one.label for one in found] == [
        "k (line 8: x float16[128, 64])",
        "k (line 9: x float16[128, 63])",
    ]
    assert found[0].parameters == (
        Array("x", "float16", (None, None), (16, 16), (None, 1), (8, 1)),
        ScalarParameter("n", "int32"),
        Constant("T", 128),
    )
    assert found[1].parameters[0] == Array("x", "float16", (None, None), (16, 1), (None, 1), (8, 1), 1)


def test_tuples_and_strangers_in_a_launch() -> None:
    number = {"kind": "scalar", "dtype": "float32", "value": 1.0}
    pair = {"kind": "tuple", "items": [number, number]}
    (found,) = signatures(seen(kernel(X, launches=(FoundLaunch((1,), (pair,)),))))
    assert found.parameters == (
        TupleParameter("x", (ScalarParameter("x.0", "float32"), ScalarParameter("x.1", "float32"))),
    )
    strange = {"kind": "unknown", "text": "Socket"}
    with pytest.raises(TriageError, match="argument 'x' is Socket"):
        signatures(seen(kernel(X, launches=(FoundLaunch((1,), (strange,)),))))


def test_what_a_launch_does_not_tell_is_asked_for_with_its_place_and_a_line_to_paste() -> None:
    strange = {"kind": "unknown", "text": "Socket"}
    number = {"kind": "scalar", "dtype": "int32", "value": 128}
    launch = FoundLaunch((1,), (strange, number, number), 11, (("occupancy", 16),), "/a/run.py")
    file = seen(kernel(X, N, T, launches=(launch,)))
    with pytest.raises(TriageError) as caught:
        signatures(file)
    assert str(caught.value).startswith("run.py, line 11: k is launched, but argument 'x' is Socket, ")
    line = str(caught.value).partition('--parameters "')[2].removesuffix('"')
    assert line == "x = array(float32, 2)"
    (found,) = signatures(file, line)
    assert [p.name for p in found.parameters] == ["x", "n", "T"]
    assert found.parameters[2] == Constant("T", 128)
    assert (found.known_by, found.launch, found.hints.occupancy) == ("told", None, 16)


def test_an_unknown_kernel_is_named_with_those_there_are() -> None:
    with pytest.raises(TriageError, match=r"has no kernel 'q'; its kernels are k$"):
        signatures(seen(kernel(N)), names=["q"])


def test_hints_of_a_launch_are_part_of_what_is_asked() -> None:
    number = {"kind": "scalar", "dtype": "int32", "value": 128}
    launches = tuple(FoundLaunch((1,), (number,), 4, (("occupancy", n),)) for n in (2, 8))
    first, second = signatures(seen(kernel(N, launches=launches)))
    assert (first.hints.occupancy, second.hints.occupancy) == (2, 8)
    assert second.label == "k (line 4: occupancy=8)"


def test_an_option_for_no_parameter_is_told() -> None:
    with pytest.raises(TriageError, match=r"no kernel has a parameter 'X'; there is k\(x, n, T\)"):
        signatures(seen(kernel(X, N, T)), "X = array(float32, 1)")
