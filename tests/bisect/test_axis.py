from __future__ import annotations

import pytest

from harness.bisect.versions import Axis, BisectError, default_over, plan_axis
from harness.model import Toolchain

TOOLKITS = {
    "13.2.2": "13.2.86 13.2.86 13.2.86",
    "13.3.0": "13.3.36 13.3.33 13.3.33",
    "13.3.1": "13.3.36 13.3.73 13.3.73",
    "13.4.1.0": "13.4.59 13.4.59 13.4.59",
    "13.4.2": "13.4.92 13.4.92 13.4.92",
    "13.4.3": "13.4.92 13.4.92 13.4.92",
    "13.10.0": "13.10.1 13.10.1 13.10.1",
}


class Missing(Exception):
    pass


def components_of(toolchain: Toolchain) -> dict[str, str]:
    if toolchain.cuda_toolkit not in TOOLKITS or toolchain.cuda_tile == "1.0.0":
        raise Missing("not in the store")
    own = dict(zip(("tileiras", "nvvm", "ptxas"), TOOLKITS[toolchain.cuda_toolkit].split(), strict=True))
    return {name: getattr(toolchain, name) or version for name, version in own.items()}


def axis(
    own: str = "13.3.0", over: str = "cuda-toolkit", component: str | None = None, **overrides: str
) -> Axis:
    toolchain = Toolchain("own", "1.5.0", own, **overrides)
    versions = reversed(TOOLKITS) if over == "cuda-toolkit" else ["1.0.0", "1.7.0", "1.5.0"]
    return plan_axis(toolchain, over, versions, components_of, (Missing,), component)


def test_versions_are_in_order_and_equal_backends_are_one() -> None:
    found = axis()
    assert [c.stands_for for c in found.candidates] == [
        ("13.2.2",),
        ("13.3.0",),
        ("13.3.1",),
        ("13.4.1.0",),
        ("13.4.2", "13.4.3"),
        ("13.10.0",),
    ]
    assert found.start == 1
    assert found.label(4) == "13.4.3"


def test_versions_are_one_where_the_suspected_component_is_the_same() -> None:
    found = axis(component="tileiras")
    assert [found.label(at) for at in range(len(found.candidates))] == [
        "13.2.86",
        "13.3.36",
        "13.4.59",
        "13.4.92",
        "13.10.1",
    ]
    own = found.candidates[found.start]
    assert own.stands_for == ("13.3.0", "13.3.1")
    assert own.toolchain == Toolchain("own", "1.5.0", "13.3.0"), "the cell's own toolchain is what is bad"
    assert found.candidates[3].toolchain.cuda_toolkit == "13.4.3", "elsewhere the newest stands for all"


@pytest.mark.parametrize("component", ["cuda-tile", "kernel", "matrix"])
def test_what_a_frontend_refuses_is_searched_for_over_frontends(component: str) -> None:
    assert default_over(component) == "cuda-tile"
    assert default_over("ptxas") == "cuda-toolkit"


def test_the_frontend_axis_keeps_the_backend() -> None:
    found = axis(over="cuda-tile", component="tileiras", ptxas="13.4.92")
    assert [found.label(at) for at in range(len(found.candidates))] == ["1.5.0", "1.7.0"]
    assert {(c.toolchain.cuda_toolkit, c.toolchain.ptxas) for c in found.candidates} == {
        ("13.3.0", "13.4.92")
    }
    assert found.left_out == (("1.0.0", "not in the store"),)


def test_the_version_of_the_cell_need_not_be_listed() -> None:
    versions = [v for v in TOOLKITS if v != "13.3.1"]
    found = plan_axis(
        Toolchain("own", "1.5.0", "13.3.1"), "cuda-toolkit", versions, components_of, (Missing,)
    )
    assert found.candidates[found.start].stands_for == ("13.3.1",)


def test_nothing_to_compare_with() -> None:
    with pytest.raises(
        BisectError, match=r"^there is no cuda-toolkit version but 13\.3\.1 to compare with: "
    ):
        plan_axis(Toolchain("own", "1.5.0", "13.3.1"), "cuda-toolkit", ["13.9.9"], components_of, (Missing,))


def test_its_own_toolchain_must_be_there() -> None:
    with pytest.raises(Missing):
        axis(own="13.9.9")


def test_an_axis_that_does_not_exist() -> None:
    with pytest.raises(
        BisectError, match=r'^cannot bisect over "driver"; it can be cuda-toolkit or cuda-tile$'
    ):
        axis(over="driver")
