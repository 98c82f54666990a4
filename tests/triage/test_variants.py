"""Changes to a signature are each in one respect, and never the signature itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.kernels.arrays import ITEMSIZE, aligned
from harness.model import Constant, Hints, Parameter, ScalarParameter
from harness.triage.variants import variants

ARRAYS = st.builds(aligned, st.sampled_from("abc"), st.sampled_from(sorted(ITEMSIZE)), st.integers(0, 6))
PARAMETERS = st.lists(
    st.one_of(
        ARRAYS,
        st.builds(Constant, st.just("T"), st.sampled_from([1, 2, 96, 128, 1.5, True])),
        st.just(ScalarParameter("n", "int32")),
    ),
    max_size=5,
    unique_by=lambda p: p.name,
).map(tuple)


@given(PARAMETERS)
def test_every_variant_differs_and_keeps_names_and_kinds(parameters: tuple[Parameter, ...]) -> None:
    made = variants(parameters)
    assert len({(v.axis, v.label) for v in made}) == len(made)
    for variant in made:
        assert variant.parameters != parameters
        assert [(p.name, type(p)) for p in variant.parameters] == [(p.name, type(p)) for p in parameters]


def test_tiles_are_halved_and_rows_stay_aligned_when_the_element_type_changes() -> None:
    parameters = (aligned("x", "float16", 2), Constant("T", 64), Constant("EPS", 96))
    made = {(v.axis, v.label): v.parameters for v in variants(parameters)}
    assert made["constant", "T=32"][1] == Constant("T", 32)
    assert ("constant", "EPS=48") not in made
    assert made["dtype", "float32"][0] == aligned("x", "float32", 2)
    assert made["dtype", "bfloat16"][0] == aligned("x", "bfloat16", 2)


def test_hints_are_lowered_and_switches_turned() -> None:
    parameters = (aligned("x", "float16", 2), Constant("TMA", True))
    made = {v.label: v for v in variants(parameters, Hints(occupancy=16, num_ctas=2))}
    assert made["occupancy=8"].hints == (("occupancy", 8),)
    assert made["occupancy=8"].parameters == parameters
    assert {"occupancy=1", "num_ctas=1"} <= set(made)
    assert made["TMA=False"].parameters[1] == Constant("TMA", False)
    assert not any(v.hints for v in variants(parameters, Hints(occupancy=1)))
