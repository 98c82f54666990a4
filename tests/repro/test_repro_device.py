"""Scripts for what only a GPU shows: how they launch and compare, with a torch that only plays its part."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from made_results import Maker

from harness.execute.references.expression import expectations
from harness.kernels import get, names
from harness.kernels.arrays import Placement
from harness.kernels.description import ArrayArgument
from harness.model import (
    Array,
    ArrayList,
    Constant,
    Hints,
    Judgement,
    ScalarParameter,
    TupleParameter,
    Verdict,
)
from harness.oracle import SameVerdict
from harness.repro.launching import Launch, argument_words, guess
from harness.repro.script import Content, script_text
from harness.repro.signature_text import imported_names, signature_text
from harness.repro.spec import ReproError
from harness.repro.symptom import Symptom, symptom_of
from harness.repro.torch_text import reference_text, torch_text

KERNEL = """import cuda.tile as ct


@ct.kernel
def k(x, y, N):
    ct.store(y, (0,), ct.load(x, (0,), shape=(N,)))
"""
X = Array("x", "bfloat16", (None,), (16,), (1,), (1,))


def content(**changes: object) -> Content:
    plain = {
        "title": "It is wrong",
        "summary": "Half of it is 0.",
        "text": KERNEL,
        "function": "k",
        "parameters": (X, Array("y", "float32", (None,), (16,), (1,), (1,)), Constant("N", 64)),
        "hints": Hints(num_ctas=2),
        "launch": Launch(
            (Placement("x", "bfloat16", (64,), (1,)), Placement("y", "float32", (64,), (1,))),
            ("in", "out"),
            (),
            (1, 1, 1),
        ),
        "symptom": Symptom.DEVICE,
        "arch": "sm_90",
        "bad": "    pip install cuda-tile",
        "deadline": 20.0,
        "reference": (("y", "x * 2"),),
    }
    return Content(**{**plain, **changes})  # type: ignore[arg-type]


def test_it_launches_thrice_on_fresh_outputs_and_compares() -> None:
    text = script_text(content())
    assert "expected = reference(torch, x.double(), 64)" in text
    assert "for _ in range(3):" in text
    assert 'y, fences["y"] = fenced(torch, given_y)' in text
    assert "problem = disagreement(launches, expected) or overrun(fences)" in text
    assert "def reference(torch, x, N):" in text and "y = x * 2" in text
    assert "x = torch.randn(64" in text
    assert "TOLERANCE = 0.03125" in text
    assert "if outcome in ('hangs', 'differs'):" in text
    assert "only a GPU can show what the code does" in text


def test_a_fault_is_told_by_the_launch_that_fails() -> None:
    assert "if outcome in ('fails',):" in script_text(content(fault=True, reference=()))


def test_an_array_that_is_read_and_written_starts_anew_each_time() -> None:
    launch = Launch((Placement("y", "float32", (64,), (1,)),), ("inout",), (), (1, 1, 1))
    y = Array("y", "float32", (None,), (16,), (1,), (1,))
    text = script_text(
        content(parameters=(y,), launch=launch, text=KERNEL.replace("x, y, N", "y"), reference=())
    )
    assert "y = given_y.clone()" in text
    assert "expected = {}" in text


def test_verdicts_of_a_gpu_are_shown_on_one(make: Maker) -> None:
    plain = make.result()
    for verdict in (Verdict.WRONG_RESULT, Verdict.NONDETERMINISTIC, Verdict.HANG, Verdict.DEVICE_FAULT):
        seen = type(plain)(plain.cell, Judgement(verdict, f"{verdict}: x", "bad"))
        assert symptom_of(seen, SameVerdict(verdict)) == (Symptom.DEVICE, None)


class TestTorch:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("sum(x, axis=1, keepdims=True)", "torch.sum(x, dim=1, keepdim=True)"),
            ("max(x, axis=0) - min(x)", "torch.amax(x, dim=0) - torch.amin(x)"),
            ("x / sqrt(mean(x * x, axis=1))[:, None]", "x / torch.sqrt(torch.mean(x * x, dim=1))[:, None]"),
            ("maximum(x, 0)", "torch.where(x > 0, x, 0)"),
            ('astype(x, "bfloat16")', "x.to(torch.bfloat16).double()"),
            ("x[:, ::-1]", "torch.flip(x, (1,))"),
            ("transpose(x, axes=(1, 0)) @ x.T", "x.permute((1, 0)) @ x.T"),
            ("reshape(x, (4, n))", "torch.reshape(x, (4, n))"),
            ("cumsum(x, axis=1)", "torch.cumsum(x, dim=1)"),
            ("arange(4) * x", "torch.arange(4, device='cuda') * x"),
        ],
    )
    def test_expressions(self, text: str, wanted: str) -> None:
        assert torch_text(text) == wanted

    @pytest.mark.parametrize("text", ["x[::-2]", "x[5:1:-1]", "x[0, ::-1]"])
    def test_what_torch_cannot_do_is_refused(self, text: str) -> None:
        with pytest.raises(ReproError, match="write this repro by hand"):
            torch_text(text)

    def test_a_reference_is_a_function_of_the_parameters(self) -> None:
        text = reference_text([("m", "mean(x)"), ("y", "x - m")], ["x", "N"], {"y"})
        (function,) = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        assert [argument.arg for argument in function.args.args] == ["torch", "x", "N"]
        assert text.splitlines()[-1] == '    return {"y": y}'


def test_lists_and_tuples_are_spelled() -> None:
    parameters = (
        ArrayList("xs", X, ("g",), True),
        TupleParameter("t", (X, ScalarParameter("n", "int32"), Constant("c", 4))),
    )
    text = signature_text(parameters, "cutile_python_v2")
    x = "array(ct.bfloat16, (16,), (1,), (1,))"
    assert f"ListConstraint({x}, alias_groups=('g',), elements_may_alias=True)" in text
    assert f"TupleConstraint([{x}, ScalarConstraint(ct.int32), ConstantConstraint(4)])" in text
    assert "CallingConvention.cutile_python_v2()" in text
    assert set(imported_names(parameters)) >= {
        "ArrayConstraint",
        "ConstantConstraint",
        "ListConstraint",
        "ScalarConstraint",
        "TupleConstraint",
    }
    ast.parse(text)


@pytest.mark.parametrize("name", [name for name in names() if get(name).formulas])
def test_formulas_say_what_the_references_compute(name: str, case_of: Callable[[str], object]) -> None:
    """A formula's answer lies within the bound of the kernel's own reference."""
    kernel = get(name)
    inputs, parameters, outputs, expected = case_of(name)  # type: ignore[misc]
    found = expectations(kernel.formulas, inputs, parameters, outputs, {})
    assert set(found) == {n for n, _ in kernel.formulas} & set(outputs)
    for output, one in found.items():
        known = expected[output]
        inside = (one.reference >= known.low) & (one.reference <= known.high)
        assert inside.all(), f"{output} of {name}"
        assert isinstance(next(a for a in kernel.arguments if a.name == output), ArrayArgument)


@pytest.fixture
def case_of() -> Callable[[str], object]:
    """Inputs, parameters, outputs and the reference's answer for a small case of a shipped kernel."""
    from harness.execute.data import make_data
    from harness.execute.launches import _reference, arguments_of
    from harness.execute.protocol import ArrayValue
    from harness.execute.protocol import Launch as Asked
    from harness.model import Case

    def make(name: str) -> object:
        kernel = get(name)
        case = Case(name, (16,) * len(kernel.dims), kernel.dtypes[0] if kernel.dtypes else "float32")
        reference = _reference(case, kernel)
        launch = Asked("c", "", "", "", "sm_90", (1, 1, 1), arguments_of(case, kernel), reference=reference)
        data = make_data(launch)
        values = kernel.values(case)
        parameters = {
            a.name: float(values[a.of])
            for a in kernel.arguments
            if hasattr(a, "of") and not isinstance(values[a.of], bool)
        }
        outputs = {
            a.name: (a.dtype, a.shape) for a in launch.arrays if isinstance(a, ArrayValue) and a.role != "in"
        }
        return data.inputs, parameters, outputs, data.expected

    return make


def test_lists_and_tuples_are_launched() -> None:
    parameters = (
        ArrayList("xs", X),
        TupleParameter("t", (X, ScalarParameter("n", "float32"), Constant("c", float("inf")))),
    )
    launch = guess(parameters)
    assert [array.name for array in launch.arrays] == ["xs_0", "xs_1", "t_0"]
    assert argument_words(parameters, launch) == ["[xs_0, xs_1]", '(t_0, 1.0, float("inf"))']
    assert launch.settings(parameters) is None
