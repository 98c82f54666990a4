from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from harness import cases
from harness.kernels import get
from harness.matrix import MatrixError, Timeouts, load_matrix
from harness.matrix.words import DTYPE_ALIASES, VALUES
from harness.model import (
    Array,
    ArrayList,
    Constant,
    Device,
    Hints,
    ScalarParameter,
    Toolchain,
    TupleParameter,
)

SHIPPED = Path(__file__).parents[2] / "matrix.toml"

HEAD = """\
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = "13.3.1"
[target]
arch = "sm_90"
"""


@pytest.fixture
def write(tmp_path: Path) -> Path:
    (tmp_path / "k.py").write_text("k = make_kernel()\n")
    return tmp_path / "matrix.toml"


def test_a_byte_order_mark_is_no_part_of_the_file(write: Path) -> None:
    text = HEAD + '[[case]]\nkernel = "rmsnorm.static_persistent"\nshape = [16, 64]\ndtype = "float32"\n'
    write.write_text(text)
    plain = load_matrix(write)
    write.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load_matrix(write) == plain
    write.write_bytes(b"\xef\xbb\xbf" + text.replace("arch", "arhc").encode())
    with pytest.raises(MatrixError, match=r":5: "):
        load_matrix(write)


def test_the_shipped_matrix_asks_what_the_report_is_about() -> None:
    matrix = load_matrix(SHIPPED)
    assert {t.cuda_tile for t in matrix.toolchains} == {"1.5.0", "1.7.0"}
    assert [t.cuda_toolkit for t in matrix.toolchains[:4]] == ["13.2.2", "13.3.1", "13.4.3", "13.5.0"]
    assert len(matrix.toolchains) == 8
    assert matrix.archs == ("sm_90", "sm_100", "sm_120")
    assert matrix.devices == (Device("h200", "H200", "sm_90", ">=580"),)
    assert {(c.kernel, c.shape, c.dtype) for c in matrix.cases} == {
        ("rmsnorm.static_persistent", (16384, 512), "bfloat16")
    }
    assert [(c.hints.occupancy, c.knob("allow_tma")) for c in matrix.cases] == [
        (occupancy, tma) for occupancy in (None, 2, 8, 16) for tma in (True, False)
    ]
    assert {c.knob("latency") for c in matrix.cases} == {10}
    assert matrix.timeouts == Timeouts()


def test_toolchains_are_a_product_without_the_excluded(write: Path) -> None:
    write.write_text(
        '[[toolchain]]\ncuda_tile = ["1.5.0", "1.7.0"]\ncuda_toolkit = ["13.2", "13.3.1"]\n'
        'exclude = [{cuda_tile = "1.7.0", cuda_toolkit = "13.2"}]\n'
        '[[toolchain]]\nname = "swapped"\ncuda_tile = "1.5.0"\ncuda_toolkit = "13.3.1"\nptxas = "13.4.92"\n'
        '[[toolchain]]\nname = "pre"\ncuda_tile = "1.6.0"\n'
        'cuda_toolkit = ["13.4.3", "13.5.0"]\nnvvm = "13.5.37"\n'
        '[target]\narch = "sm_90"\n[[case]]\nkernel = "rmsnorm.tiled"\nshape = [1, 1]\ndtype = "fp32"\n'
    )
    assert load_matrix(write).toolchains == (
        Toolchain("tile1.5.0-ctk13.2", "1.5.0", "13.2"),
        Toolchain("tile1.5.0-ctk13.3.1", "1.5.0", "13.3.1"),
        Toolchain("tile1.7.0-ctk13.3.1", "1.7.0", "13.3.1"),
        Toolchain("swapped", "1.5.0", "13.3.1", ptxas="13.4.92"),
        Toolchain("pre-tile1.6.0-ctk13.4.3+nvvm13.5.37", "1.6.0", "13.4.3", nvvm="13.5.37"),
        Toolchain("pre-tile1.6.0-ctk13.5.0+nvvm13.5.37", "1.6.0", "13.5.0", nvvm="13.5.37"),
    )


def test_an_override_may_be_named_by_the_toolkit_that_brings_it(write: Path) -> None:
    write.write_text(
        HEAD.replace('"13.3.1"', '"13.3.1"\ntileiras = "13.4.3"\nptxas = "13.4.92"')
        + '[[case]]\nkernel = "rmsnorm.tiled"\nshape = [1, 1]\ndtype = "fp32"\n'
    )
    known = {
        "cuda-tile": ["1.5.0"],
        "cuda-toolkit": ["13.3.1", "13.4.3"],
        "nvidia-cuda-tileiras": ["13.4.92"],
    }
    known["nvidia-cuda-nvcc"] = ["13.4.92"]
    (toolchain,) = load_matrix(write, known_versions=known.__getitem__).toolchains
    assert toolchain.name == "tile1.5.0-ctk13.3.1+tileiras13.4.3+ptxas13.4.92"


def test_every_axis_multiplies_and_default_means_unsaid(write: Path) -> None:
    write.write_text(
        HEAD + '[[case]]\nkernel = "rmsnorm.static_persistent"\nshape = [[0, 1], [4, 512]]\n'
        'dtype = ["bf16", "float16"]\noccupancy = ["default", 32]\nnum_ctas = 2\nopt_level = [0, "default"]\n'
        'allow_tma = ["default", false]\nlatency = 10\ntile_m = 16\ntile_n = 512\noffset = 1\neps = 1e-5\n'
        'layout = "odd_rows"\nvalues = "nan"\nseed = [3, 4]\n'
    )
    found = load_matrix(write).cases
    assert len(found) == len({case.digest for case in found}) == 2**6
    first, last = found[0], found[-1]
    assert (first.shape, first.dtype, first.seed) == ((0, 1), "bfloat16", 3)
    assert first.hints == Hints(occupancy=None, num_ctas=2, opt_level=0)
    assert first.knobs == (
        ("eps", 1e-5), ("latency", 10), ("offset", 1.0), ("tile_m", 16), ("tile_n", 512),
    )  # fmt: skip
    assert (last.layout, last.values, last.seed) == ("odd_rows", "nan", 4)
    assert last.hints == Hints(occupancy=32, num_ctas=2, opt_level=3)
    assert last.knob("allow_tma") is False


def test_cases_of_one_specialisation_are_neighbours(write: Path) -> None:
    write.write_text(
        HEAD + '[[case]]\nkernel = "rmsnorm.static_persistent"\nshape = [[32, 512], [64, 512], [96, 512]]\n'
        'dtype = "bf16"\noccupancy = ["default", 8]\nallow_tma = [true, false]\nseed = [1, 2]\n'
    )
    found = load_matrix(write).cases
    kinds = [get(case.kernel).specialise(case).digest for case in found]
    changes = sum(a != b for a, b in pairwise(kinds))
    assert changes == len(set(kinds)) - 1 == 3


@pytest.mark.parametrize(("alias", "dtype"), DTYPE_ALIASES.items())
def test_dtypes_have_other_names(write: Path, alias: str, dtype: str) -> None:
    write.write_text(HEAD + f'[[case]]\nkernel = "rmsnorm.tiled"\nshape = [1, 1]\ndtype = "{alias}"\n')
    assert load_matrix(write).cases[0].dtype == dtype


def test_parameters_of_an_own_kernel_default_to_what_a_jit_launch_assumes(write: Path) -> None:
    write.write_text(
        HEAD + '[[case]]\nkernel = "k.py:k"\ndtype = ["fp8_e4m3", "float32"]\nparameters = [\n'
        '  {name = "x", kind = "array", rank = 2},\n'
        '  {name = "v", kind = "array", rank = 1, dtype = "bfloat16"},\n'
        '  {name = "s", kind = "array", rank = 0},\n'
        '  {name = "big", kind = "array", rank = 6},\n'
        '  {name = "n", kind = "scalar"},\n'
        '  {name = "f", kind = "scalar", dtype = "$dtype"},\n'
        '  {name = "B", kind = "constant", value = [64, 128]},\n'
        '  {name = "l", kind = "list", element = {kind = "array", rank = 1}, elements_may_alias = true},\n'
        '  {name = "t", kind = "tuple", items = [{kind = "scalar"}, {kind = "constant", value = true}]},\n'
        "]\n"
    )
    found = load_matrix(write).cases
    assert [(c.dtype, c.knobs) for c in found] == [
        ("float8_e4m3fn", (("B", 64),)),
        ("float8_e4m3fn", (("B", 128),)),
        ("float32", (("B", 64),)),
        ("float32", (("B", 128),)),
    ]
    x, v, s, big, n, f, constant, many, pair = found[-1].parameters
    assert x == Array("x", "float32", (None, None), (1, 1), (None, 1), (4, 1))
    assert v == Array("v", "bfloat16", (None,), (1,), (1,), (1,))
    assert s == Array("s", "float32", (), (), (), ())
    assert big == Array("big", "float32", (None,) * 6, (1,) * 6, (None,) * 6, (1,) * 6)
    assert n == ScalarParameter("n", "int32")
    assert f == ScalarParameter("f", "float32")
    assert constant == Constant("B", 128)
    assert many == ArrayList("l", Array("l", "float32", (None,), (1,), (1,), (1,)), (), True)
    assert pair == TupleParameter("t", (ScalarParameter("t.0", "int32"), Constant("t.1", True)))
    assert found[0].parameters[0] == Array("x", "float8_e4m3fn", (None, None), (1, 1), (None, 1), (16, 1))


def test_assumptions_may_be_spelled_out(write: Path) -> None:
    write.write_text(
        HEAD
        + '[[case]]\nkernel = "k.py:k"\nparameters = [{name = "x", kind = "array", rank = 2, dtype = "int8", '
        'shape_constant = ["dynamic", 64], shape_divisible_by = 4, stride_constant = "dynamic", '
        'stride_divisible_by = [8, 1], base_divisible_by = 1, alias_groups = ["a"], '
        'may_alias_internally = true, index_dtype = "int64"}]\n'
    )
    (case,) = load_matrix(write).cases
    assert case.dtype == "int8"
    assert case.parameters == (
        Array("x", "int8", (None, 64), (4, 4), (None, None), (8, 1), 1, ("a",), True, "int64"),
    )
    assert get(case.kernel, write.parent).specialise(case).parameters == case.parameters


def test_constants_that_python_takes_for_equal_are_different_cases(write: Path) -> None:
    write.write_text(
        HEAD + '[[case]]\nkernel = "k.py:k"\nparameters = [\n'
        '  {name = "c", kind = "constant", value = [1, 1.0, true]},\n]\n'
    )
    assert [repr(case.knob("c")) for case in load_matrix(write).cases] == ["1", "1.0", "True"]


def test_generated_cases_keep_what_is_spelled_out(write: Path) -> None:
    write.write_text(
        HEAD + '[[case]]\nkernel = "rmsnorm.tiled"\ngenerate = {count = 20, seed = 7, max_elements = 4096}\n'
        'occupancy = ["default", 8]\ndtype = "bf16"\nopt_level = 2\n'
    )
    matrix = load_matrix(write)
    assert matrix.cases == ()
    (generator,) = matrix.generators
    assert (generator.table, generator.count, generator.seed, generator.max_elements) == (1, 20, 7, 4096)
    assert dict(generator.axes) == {
        "kernel": ("rmsnorm.tiled",),
        "dtype": ("bfloat16",),
        "occupancy": (None, 8),
        "opt_level": (2,),
    }
    drawn = cases.draw(generator)
    assert len(drawn) == 20
    assert {case.dtype for case in drawn} == {"bfloat16"}


def test_the_values_that_can_be_asked_for_are_those_that_can_be_made() -> None:
    assert set(VALUES) == set(cases.VALUE_KINDS)


def test_the_digest_is_of_what_is_asked_not_of_how_it_is_written(write: Path) -> None:
    case = '[[case]]\nkernel = "rmsnorm.tiled"\nshape = [1, 1]\ndtype = "fp32"\n'
    write.write_text(HEAD + case)
    digest = load_matrix(write).digest
    write.write_text("# changed\n" + HEAD + case.replace("[1, 1]", "[[1, 1]]") + "[run]\njobs = 3\n")
    assert load_matrix(write).digest == digest
    write.write_text(HEAD + case.replace("[1, 1]", "[1, 2]"))
    assert load_matrix(write).digest != digest


def test_kernels_can_be_given_from_outside(write: Path) -> None:
    write.write_text(HEAD + '[[case]]\nkernel = "mine"\nshape = [1, 1]\ndtype = "fp32"\nlatency = 3\n')
    assert load_matrix(write, known_kernels={"mine": frozenset({"latency"})}).cases[0].kernel == "mine"
    with pytest.raises(MatrixError, match=r'"mine" has no such setting \(it takes no settings\)'):
        load_matrix(write, known_kernels={"mine": frozenset()})
