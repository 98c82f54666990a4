"""Every sentence a wrong matrix file earns, word for word."""

# ruff: noqa: E501
# A sentence stays on one line, so that it can be searched for.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.kernels import names
from harness.matrix import MatrixError, load_matrix
from harness.matrix.problems import listing

QUOTE = '"'
VERSIONS = {
    "cuda-tile": ("1.5.0", "1.6.0", "1.7.0"),
    "cuda-toolkit": ("13.2.2", "13.3.0", "13.3.1", "13.4.3"),
    "nvidia-cuda-tileiras": ("13.3.36", "13.4.92"),
    "nvidia-nvvm": ("13.3.73", "13.4.92"),
    "nvidia-cuda-nvcc": ("13.3.73", "13.4.92"),
}

TOOLCHAIN = """\
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = "13.3.1"
"""
TARGET = """\
[target]
arch = "sm_90"
"""
CASE = """\
[[case]]
kernel = "rmsnorm.static_persistent"
shape = [16, 64]
dtype = "bfloat16"
"""
OWN = """\
[[case]]
kernel = "k.py:k"
"""


@pytest.fixture
def complaints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Load a text as matrix.toml, in a folder with a kernel file k.py, and give what is wrong with it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text("k = made_somehow()\n")
    (tmp_path / "broken.py").write_text("def k(:\n")

    def load(text: str) -> list[str]:
        Path("matrix.toml").write_text(text)
        try:
            load_matrix(Path("matrix.toml"), known_versions=VERSIONS.__getitem__)
        except MatrixError as error:
            assert str(error).splitlines() == [str(problem) for problem in error.problems]
            return str(error).splitlines()
        return []

    return load


Load = Callable[[str], list[str]]


# --- the file ---------------------------------------------------------------------------------


def test_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MatrixError) as caught:
        load_matrix(Path("nowhere.toml"))
    assert str(caught.value) == (
        "nowhere.toml: does not exist; name a matrix file, as in `python -m harness run PATH`, "
        "or start from the matrix.toml that comes with the project"
    )


def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(MatrixError) as caught:
        load_matrix(Path("folder"))
    assert str(caught.value) == "folder: is a folder; name the matrix file in it"


def test_a_device_file_is_not_read_for_ever() -> None:
    with pytest.raises(MatrixError) as caught:
        load_matrix(Path("/dev/zero"))
    assert str(caught.value) == "/dev/zero: is not a regular file; name a matrix file"


def test_a_name_that_cannot_be_a_path() -> None:
    with pytest.raises(MatrixError) as caught:
        load_matrix(Path("a\0b.toml"))
    assert str(caught.value) == (
        "a\\x00b.toml: cannot be read (embedded null byte); check its name and permissions"
    )


def test_a_huge_file(complaints: Load) -> None:
    assert complaints("#" * 1_000_001) == ["matrix.toml: is larger than 1,000,000 bytes; split the matrix"]


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "matrix.toml"
    path.write_bytes(b"[target]\narch = '\xff'\n")
    with pytest.raises(MatrixError) as caught:
        load_matrix(path)
    assert str(caught.value) == f"{path}:2: is not UTF-8 text; save the file as UTF-8"


def test_broken_toml(complaints: Load) -> None:
    assert complaints("[target]\narch 'sm_90'\n") == [
        "matrix.toml:2: not valid TOML: Expected '=' after a key in a key/value pair in column 6; "
        "correct this line"
    ]


def test_toml_that_ends_too_early(complaints: Load) -> None:
    assert complaints("[target]\narch = [\n") == [
        "matrix.toml:2: not valid TOML: Invalid value at the end of the file; complete it"
    ]


def test_a_number_with_too_many_digits(complaints: Load) -> None:
    (said,) = complaints("[run]\njobs = " + "9" * 5000)
    assert said.startswith("matrix.toml: not valid TOML: Exceeds the limit (4300")
    assert said.endswith("; correct it")


def test_lists_without_bottom(complaints: Load) -> None:
    assert complaints("x = " + "[" * 20_000 + "]" * 20_000) == [
        "matrix.toml: nests tables or lists too deeply; write it flatter"
    ]
    assert complaints("[[case]]\nparameters" + ".items" * 2_000 + " = 1") == [
        "matrix.toml: nests tables or lists too deeply; write it flatter"
    ]


def test_an_empty_file(complaints: Load) -> None:
    assert complaints("") == [
        'matrix.toml: has no table "toolchain"; add [[toolchain]] with cuda_tile = "1.5.0" and '
        'cuda_toolkit = "13.3.1", say',
        'matrix.toml: has no table "target"; add [target] with arch = "sm_90", say',
        'matrix.toml: has no table "case"; add [[case]] with kernel = "rmsnorm.static_persistent", say',
    ]


# --- tables and keys --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("[runs]", '10: [runs]: unknown table; did you mean "run"?'),
        ("[[cases]]", '10: [[cases]]: unknown table; did you mean "case"?'),
        (
            "[zzz]",
            "10: [zzz]: unknown table; known are [toolchain], [target], [device], [case], [timeouts], [run] and [gate]",
        ),
        ("[run]\njbos = 2", '11: [run], key "jbos": unknown key; did you mean "jobs"?'),
        ("[run]\nzzz = 2", '11: [run], key "zzz": unknown key; known here are "jobs"'),
        ("[[run]]", "10: [[run]]: must be one table; write [run]"),
        ("[device]", "10: [device]: must be a list of tables; write [[device]], with two brackets"),
    ],
)
def test_tables_and_keys_that_do_not_exist(complaints: Load, extra: str, said: str) -> None:
    assert complaints(f"{TOOLCHAIN}{TARGET}{CASE}{extra}\n") == [f"matrix.toml:{said}"]


def test_a_key_at_the_top(complaints: Load) -> None:
    assert complaints("jobs = 3\n" + TOOLCHAIN + TARGET + CASE) == [
        'matrix.toml:1: key "jobs": unknown key; known are [toolchain], [target], [device], [case], '
        "[timeouts], [run] and [gate]"
    ]


def test_an_unknown_key_in_the_second_of_two_tables(complaints: Load) -> None:
    assert complaints(TOOLCHAIN + TARGET + CASE + CASE.replace("16, 64", "16, 128") + "ocupancy = 2\n") == [
        'matrix.toml:14: [[case]] #2, key "ocupancy": unknown key; did you mean "occupancy"?'
    ]


def test_a_missing_key_points_at_its_table(complaints: Load) -> None:
    assert complaints(TOOLCHAIN + TARGET + CASE + "[[device]]\nname = 'a'\ngpu = 'H200'\n") == [
        'matrix.toml:10: [[device]] #1, key "arch": is missing; add it, for example arch = "sm_90"'
    ]


def test_all_faults_are_told_at_once_in_the_order_of_the_file(complaints: Load) -> None:
    said = complaints(
        TOOLCHAIN.replace("13.3.1", "13.9")
        + TARGET.replace("sm_90", "sm_91")
        + CASE.replace("bfloat16", "bf61").replace("static", "sttic")
    )
    assert [line.split(": ")[0] for line in said] == [f"matrix.toml:{n}" for n in (3, 5, 7, 9)]


def test_no_more_than_a_hundred_faults_are_told(complaints: Load) -> None:
    said = complaints(TOOLCHAIN + TARGET + CASE + f"occupancy = {list(range(33, 400))}\n")
    assert len(said) == 101
    assert said[-1] == "matrix.toml: and more than these 100 problems; correct them first"


def test_what_comes_from_the_file_cannot_reach_the_terminal_or_fill_it(complaints: Load) -> None:
    said = complaints(TOOLCHAIN + '[target]\narch = "\\u001b[31m' + "x" * 500 + '"\n' + CASE)
    assert said == [
        'matrix.toml:5: [target], key "arch": unknown architecture "\\x1b[31m'
        + "x" * 54
        + '…"; known are "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_103", '
        '"sm_107", "sm_110", "sm_120", "sm_121", "sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110a", '
        '"sm_120a", "sm_121a", "sm_100f", "sm_103f", "sm_107f", "sm_110f", "sm_120f" and "sm_121f"'
    ]


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "occupancy = 40",
            'key "occupancy": 40 is out of range; write a whole number from 1 to 32',
        ),
        (
            "occupancy = [8, 0]",
            'key "occupancy", item 2: 0 is out of range; write a whole number from 1 to 32',
        ),
        (
            'occupancy = "defualt"',
            'key "occupancy": expected a whole number or "default", found the string "defualt"; '
            'did you mean "default"?',
        ),
        (
            'occupancy = "8"',
            'key "occupancy": expected a whole number or "default", found the string "8"; '
            "write it without quotes",
        ),
        (
            "occupancy = true",
            'key "occupancy": expected a whole number, found true; write occupancy = ["default", 8], say',
        ),
        (
            "occupancy = 2.5",
            'key "occupancy": expected a whole number, found the number 2.5; '
            'write occupancy = ["default", 8], say',
        ),
        (
            "occupancy = 1979-05-27",
            'key "occupancy": expected a whole number, found a date or time; '
            'write occupancy = ["default", 8], say',
        ),
        (
            "occupancy = []",
            'key "occupancy": the list is empty, so nothing would run; '
            'write occupancy = ["default", 8], say',
        ),
        (
            "occupancy = [[8]]",
            'key "occupancy", item 1: expected a whole number, found a list; '
            'write occupancy = ["default", 8], say',
        ),
        ("occupancy = [8, 2, 8]", 'key "occupancy", item 3: repeats an earlier value of the list; remove one'),
        ("num_ctas = 3", 'key "num_ctas": 3 is not a power of two from 1 to 16; write one'),
        ("num_ctas = 32", 'key "num_ctas": 32 is not a power of two from 1 to 16; write one'),
        ("opt_level = -1", 'key "opt_level": -1 is out of range; write a whole number from 0 to 3'),
        ("latency = 11", 'key "latency": 11 is out of range; write a whole number from 1 to 10'),
        ("tile_m = 0", 'key "tile_m": 0 is not a power of two from 1 to 1048576; write one'),
        (
            f"seed = {2**300}",
            'key "seed": a number of more than 256 bits is out of range; '
            "write a whole number from 0 to 9223372036854775807",
        ),
        (
            "allow_tma = 1",
            'key "allow_tma": expected true or false, without quotes, found the number 1; '
            "write allow_tma = [true, false], say",
        ),
        (
            'allow_tma = "false"',
            'key "allow_tma": expected true, false or "default", found the string "false"; '
            "write it without quotes",
        ),
        ("eps = nan", 'key "eps": nan is out of range; write a number from 0 to 1e+06'),
        ("eps = true", 'key "eps": expected a number, found true; write eps = 1e-06, say'),
        ('layout = "contigous"', 'key "layout": unknown layout "contigous"; did you mean "contiguous"?'),
        ('values = "norm"', 'key "values": unknown kind of values "norm"; did you mean "normal"?'),
        (
            "kernels = 3",
            'key "kernels": unknown key; did you mean "kernel"?',
        ),
        (
            'parameters = []',
            'key "parameters": "rmsnorm.static_persistent" brings its own parameters; remove the key',
        ),
        (
            "generate = {count = 3}",
            'key "shape": cannot stand beside "generate", which draws shapes; remove one of them',
        ),
        ("generate = 3", 'key "generate": expected a table, {…}, found the number 3; '
         "write generate = {count = 200, seed = 1}, say"),
    ],
)  # fmt: skip
def test_a_value_of_a_case(complaints: Load, line: str, said: str) -> None:
    number = 8 if said.startswith('key "shape"') else 10
    found = complaints(TOOLCHAIN + TARGET + CASE + line + "\n")
    assert f"matrix.toml:{number}: [[case]] #1, {said}" in found
    assert len(found) == (2 if line == "generate = 3" else 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "[16, 64]",
            "[]",
            'matrix.toml:8: [[case]] #1, key "shape": the list is empty, so nothing would run; '
            "write shape = [[16384, 512]], say",
        ),
        (
            "[16, 64]",
            "[16]",
            'matrix.toml:8: [[case]] #1, key "shape": has 1 extent; write rows and columns, [M, N]',
        ),
        (
            "[16, 64]",
            "[[1, 2],\n [4, 0]]",
            'matrix.toml:9: [[case]] #1, key "shape", item 2: has no columns; N must be at least 1 (M may be 0)',
        ),
        (
            "[16, 64]",
            "[16, 0.5]",
            'matrix.toml:8: [[case]] #1, key "shape", item 2: expected a whole number, found the number 0.5; '
            "write shape = [[16384, 512]], say",
        ),
        (
            "[16, 64]",
            "[[1, 2], [-3, 4]]",
            'matrix.toml:8: [[case]] #1, key "shape", item 2, item 1: -3 is out of range; '
            "write a whole number from 0 to 2147483647",
        ),
        (
            "[16, 64]",
            "[[1, 2], 4]",
            'matrix.toml:8: [[case]] #1, key "shape", item 2: expected a list, […], found the number 4; '
            "write shape = [[16384, 512]], say",
        ),
        (
            "[16, 64]",
            "[[1, 2], [1, 2]]",
            'matrix.toml:8: [[case]] #1, key "shape", item 2: repeats an earlier value of the list; remove one',
        ),
        (
            'dtype = "bfloat16"',
            'dtype = ["bf16", "bfloat16"]',
            'matrix.toml:9: [[case]] #1, key "dtype", item 2: repeats an earlier value of the list; remove one',
        ),
        (
            "bfloat16",
            "bf61",
            'matrix.toml:9: [[case]] #1, key "dtype": unknown dtype "bf61"; did you mean "bf16"?',
        ),
        (
            'dtype = "bfloat16"',
            'dtype = "int"',
            'matrix.toml:9: [[case]] #1, key "dtype": unknown dtype "int"; did you mean "int8", "int16", "int32" or "int64"?',
        ),
        (
            'dtype = "bfloat16"',
            'dtype = "float8"',
            'matrix.toml:9: [[case]] #1, key "dtype": unknown dtype "float8"; did you mean "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu" or "float8_e4m3"?',
        ),
        (
            'dtype = "bfloat16"',
            'dtype = "fp8"',
            'matrix.toml:9: [[case]] #1, key "dtype": unknown dtype "fp8"; did you mean "fp8_e4m3", "fp8_e4m3fn", "fp8_e5m2" or "fp8_e8m0"?',
        ),
        (
            "bfloat16",
            "???",
            'matrix.toml:9: [[case]] #1, key "dtype": unknown dtype "???"; known are "bool", "int8", "uint8", '
            '"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float16", "bfloat16", "int16", "uint16", '
            '"float32", "tfloat32", "int32", "uint32", "float64", "int64" and "uint64"',
        ),
        (
            'dtype = "bfloat16"',
            "",
            'matrix.toml:6: [[case]] #1, key "dtype": is missing; add it, for example dtype = "bfloat16"',
        ),
        (
            "shape = [16, 64]",
            "",
            'matrix.toml:6: [[case]] #1, key "shape": is missing; add it, for example shape = [[16384, 512]]',
        ),
        (
            "rmsnorm.static_persistent",
            "rmsnorm.tilde",
            'matrix.toml:7: [[case]] #1, key "kernel": unknown kernel "rmsnorm.tilde"; '
            'did you mean "rmsnorm.tiled"?',
        ),
        (
            "rmsnorm.static_persistent",
            "softmax",
            'matrix.toml:7: [[case]] #1, key "kernel": unknown kernel "softmax"; the lab ships '
            f'{listing(f"{QUOTE}{name}{QUOTE}" for name in names())}; your own is "path/to/file.py:name"',
        ),
        (
            'dtype = "bfloat16"',
            'dtype = "bfloat16"\ngenerate = {count = 3}\nlatency = ["default", 3]',
            'matrix.toml:11: [[case]] #1, key "latency", item 1: cannot be "default" beside "generate"; '
            "write the value that is meant",
        ),
    ],
)
def test_shape_dtype_and_kernel(complaints: Load, old: str, new: str, said: str) -> None:
    assert said in complaints(TOOLCHAIN + TARGET + CASE.replace(old, new))


def test_a_setting_that_the_kernel_does_not_take(complaints: Load) -> None:
    case = CASE.replace(
        '"rmsnorm.static_persistent"', '["rmsnorm.static_persistent", "rmsnorm.multi_wave_reload"]'
    )
    assert complaints(TOOLCHAIN + TARGET + case + "allow_tma = true\n") == [
        'matrix.toml:10: [[case]] #1, key "allow_tma": "rmsnorm.multi_wave_reload" has no such setting '
        '(it takes "eps", "latency", "offset" and "tile_n"); remove the key'
    ]


def test_a_case_asked_for_by_two_tables(complaints: Load) -> None:
    assert complaints(TOOLCHAIN + TARGET + CASE + CASE) == [
        "matrix.toml:10: [[case]] #2: asks again for a case of #1 (rmsnorm.static_persistent 16x64 bfloat16 "
        "opt_level=3); ask for it once"
    ]


def test_a_case_asked_for_by_default_and_by_value(complaints: Load) -> None:
    assert complaints(TOOLCHAIN + TARGET + CASE + 'opt_level = ["default", 3]\n') == [
        "matrix.toml:6: [[case]] #1: asks again for a case of #1 (rmsnorm.static_persistent 16x64 bfloat16 "
        "opt_level=3); ask for it once"
    ]


def test_a_product_without_end_is_refused_before_it_is_made(complaints: Load) -> None:
    axes = f"occupancy = {list(range(1, 33))}\nlatency = {list(range(1, 11))}\nseed = {list(range(1000))}\n"
    assert complaints(TOOLCHAIN + TARGET + CASE + axes) == [
        "matrix.toml:6: [[case]] #1: makes 320,000 cases so far, more than 100,000; list less, or split the matrix"
    ]


def test_a_list_without_end(complaints: Load) -> None:
    assert complaints(TOOLCHAIN + TARGET + CASE + f"seed = {list(range(10_001))}\n") == [
        'matrix.toml:10: [[case]] #1, key "seed": lists 10,001 values, more than 10,000; split the matrix'
    ]


# --- toolchains, targets, devices, limits -----------------------------------------------------


@pytest.mark.parametrize(
    ("toolchain", "said"),
    [
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.9.0"',
            'matrix.toml:3: [[toolchain]] #1, key "cuda_toolkit": there is no cuda-toolkit "13.9.0"; '
            'there are 13.2.2, 13.3.0, 13.3.1 and 13.4.3; did you mean "13.3.0"?',
        ),
        (
            'cuda_tile = ["1.5", "9"]\ncuda_toolkit = "13.3"',
            'matrix.toml:2: [[toolchain]] #1, key "cuda_tile", item 2: there is no cuda-tile "9"; '
            "there are 1.5.0, 1.6.0 and 1.7.0; choose one of them",
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3.1"\nptxas = "13.4.93"',
            'matrix.toml:4: [[toolchain]] #1, key "ptxas": there is no nvidia-cuda-nvcc "13.4.93"; '
            'there are 13.3.73 and 13.4.92; did you mean "13.4.92"?',
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3.1"\nnvvm = "13.3.92"',
            'matrix.toml:4: [[toolchain]] #1, key "nvvm": there is no nvidia-nvvm "13.3.92"; '
            'there are 13.3.73 and 13.4.92; did you mean "13.3.73"?',
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = 13.3',
            'matrix.toml:3: [[toolchain]] #1, key "cuda_toolkit": expected a version in quotes, found the '
            'number 13.3; write cuda_toolkit = "13.3.1", say',
        ),
        (
            'cuda_tile = "latest"\ncuda_toolkit = "13.3"',
            'matrix.toml:2: [[toolchain]] #1, key "cuda_tile": "latest" is not a version; '
            'write one such as "13.3.1"',
        ),
        (
            'cuda_tile = []\ncuda_toolkit = "13.3"',
            'matrix.toml:2: [[toolchain]] #1, key "cuda_tile": the list is empty, so nothing would run; '
            'write cuda_tile = "1.5.0", say',
        ),
        (
            'cuda_tile = "1.5.0"',
            'matrix.toml:1: [[toolchain]] #1, key "cuda_toolkit": is missing; '
            'add it, for example cuda_toolkit = "13.3.1"',
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3"\nname = "my tools"',
            'matrix.toml:4: [[toolchain]] #1, key "name": "my tools" is not a name; use letters, digits and '
            "any of . _ + -, letter or digit first, at most 60 characters",
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3"\nexclude = [{cuda_toolkit = "13.2"}]',
            'matrix.toml:4: [[toolchain]] #1, key "exclude", item 1, key "cuda_toolkit": "13.2" is not in '
            'this table\'s cuda_toolkit; did you mean "13.3"?',
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3"\nexclude = [{cuda_toolkit = "13.3"}]',
            'matrix.toml:4: [[toolchain]] #1, key "exclude": leaves no toolchain of this table; '
            "exclude less, or remove the table",
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3"\nexclude = [{}]',
            'matrix.toml:4: [[toolchain]] #1, key "exclude", item 1: says nothing; name versions, '
            'for example {cuda_toolkit = "13.3.1"}',
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3"\nexclude = [{cuda_tole = "13.3"}]',
            'matrix.toml:4: [[toolchain]] #1, key "exclude", item 1, key "cuda_tole": unknown key; '
            'did you mean "cuda_tile"?',
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3"\nexclude = 3',
            'matrix.toml:4: [[toolchain]] #1, key "exclude": expected a list, […], found the number 3; '
            'write exclude = [{cuda_tile = "1.5.0", cuda_toolkit = "13.3.1"}], say',
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3"\n' + TOOLCHAIN.replace("13.3.1", "13.3"),
            'matrix.toml:4: [[toolchain]] #2: makes "tile1.5.0-ctk13.3" again, as #1 does; '
            "give it a name of its own",
        ),
        (
            'cuda_tile = "1.5.0"\ncuda_toolkit = "13.3.1"\n' + TOOLCHAIN + 'name = "b"',
            'matrix.toml:4: [[toolchain]] #2: "b" is "tile1.5.0-ctk13.3.1" of #1 but for the name; remove one',
        ),
    ],
)
def test_toolchains(complaints: Load, toolchain: str, said: str) -> None:
    assert said in complaints(f"[[toolchain]]\n{toolchain}\n{TARGET}{CASE}")


def test_too_many_toolchains(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    tiles, kits = [f"1.{n}" for n in range(40)], [f"13.{n}" for n in range(40)]
    path.write_text(f"[[toolchain]]\ncuda_tile = {tiles}\ncuda_toolkit = {kits}\n{TARGET}{CASE}")
    with pytest.raises(MatrixError) as caught:
        load_matrix(path)
    assert str(caught.value) == (
        f"{path}:1: [[toolchain]] #1: makes 1,600 toolchains, more than 1,000; list fewer versions"
    )


def test_versions_are_only_looked_up_where_the_file_needs_them(tmp_path: Path) -> None:
    asked: list[str] = []

    def known(package: str) -> tuple[str, ...]:
        asked.append(package)
        return VERSIONS[package]

    path = tmp_path / "m.toml"
    path.write_text(TOOLCHAIN + 'tileiras = "13.4.3"\n' + TARGET + CASE)
    load_matrix(path, known_versions=known)
    assert asked == ["cuda-tile", "cuda-toolkit", "nvidia-cuda-tileiras"]


def test_a_failure_to_look_up_versions_is_not_the_files_fault(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(TOOLCHAIN + TARGET + CASE)

    def offline(package: str) -> tuple[str, ...]:
        raise ValueError(f"no network to look up {package}")

    with pytest.raises(ValueError, match="no network to look up cuda-tile"):
        load_matrix(path, known_versions=offline)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ('["sm_90", "sm_91"]', 'key "arch", item 2: unknown architecture "sm_91"; did you mean "sm_90"?'),
        ('"90"', 'key "arch": unknown architecture "90"; did you mean "sm_90"?'),
        ("90", 'key "arch": expected the name of an architecture in quotes, found the number 90; '
         'write arch = "sm_90", say'),
        ("[]", 'key "arch": the list is empty, so nothing would run; write arch = "sm_90", say'),
        ('["sm_90", "sm_90"]', 'key "arch", item 2: repeats an earlier value of the list; remove one'),
    ],
)  # fmt: skip
def test_targets(complaints: Load, target: str, said: str) -> None:
    assert complaints(f"{TOOLCHAIN}[target]\narch = {target}\n{CASE}") == [f"matrix.toml:5: [target], {said}"]


DEVICE = '[[device]]\nname = "h200"\ngpu = "H200"\narch = "sm_90"\n'


@pytest.mark.parametrize(
    ("device", "said"),
    [
        (
            DEVICE + 'driver = "580+"',
            'matrix.toml:14: [[device]] #1, key "driver": "580+" is not a driver range; '
            'write ">=580" or ">=580,<590", say',
        ),
        (
            DEVICE + "driver = 580",
            'matrix.toml:14: [[device]] #1, key "driver": expected a driver range in quotes, '
            'found the number 580; write driver = ">=580", say',
        ),
        (
            DEVICE.replace("sm_90", "sm_100"),
            'matrix.toml:13: [[device]] #1, key "arch": nothing is compiled for "sm_100"; '
            "add it to [target] arch, or remove the device",
        ),
        (
            DEVICE + DEVICE,
            'matrix.toml:15: [[device]] #2, key "name": "h200" is the name of #1 already; choose another',
        ),
        (
            DEVICE.replace('"H200"', '""'),
            'matrix.toml:12: [[device]] #1, key "gpu": "" is not a GPU name; use printable ASCII characters, '
            "at most 100 characters",
        ),
    ],
)
def test_devices(complaints: Load, device: str, said: str) -> None:
    assert complaints(TOOLCHAIN + TARGET + CASE + device + "\n") == [said]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("compile = 0", 'key "compile": 0 is out of range; write a number above 0 to 86400'),
        ("compile = inf", 'key "compile": inf is out of range; write a number above 0 to 86400'),
        (
            'compile = "1m"',
            'key "compile": expected a number, found the string "1m"; write compile = 60, say',
        ),
        ("compiel = 3", 'key "compiel": unknown key; did you mean "compile"?'),
    ],
)
def test_timeouts(complaints: Load, line: str, said: str) -> None:
    assert complaints(f"{TOOLCHAIN}{TARGET}{CASE}[timeouts]\n{line}\n") == [
        f"matrix.toml:11: [timeouts], {said}"
    ]


def test_jobs(complaints: Load) -> None:
    assert complaints(f"{TOOLCHAIN}{TARGET}{CASE}[run]\njobs = 0\n") == [
        'matrix.toml:11: [run], key "jobs": 0 is out of range; write a whole number from 1 to 1024'
    ]


# --- kernels of the reader's own --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("j.py:k", 'no kernel file "j.py" can be read; give its path from the folder of the matrix file'),
        ("k.py", '"k.py" names no function; write "file.py:name"'),
        ("k.py:", '"" is not a function\'s name; write "file.py:name"'),
        ("k.py:a-b", '"a-b" is not a function\'s name; write "file.py:name"'),
        ("k.py:kk", '"k.py" has no function "kk"; did you mean "k"?'),
        ("a" * 300 + ".py:k", f'no kernel file "{"a" * 59}…" can be read; give its path from the folder of the '
         "matrix file"),
    ],
)  # fmt: skip
def test_a_kernel_file(complaints: Load, kernel: str, said: str) -> None:
    text = f'{TOOLCHAIN}{TARGET}[[case]]\nkernel = "{kernel}"\nparameters = []\n'
    assert complaints(text) == [f'matrix.toml:7: [[case]] #1, key "kernel": {said}']


def test_a_kernel_file_that_is_not_python_is_for_the_frontend_to_judge(complaints: Load) -> None:
    assert complaints(f'{TOOLCHAIN}{TARGET}[[case]]\nkernel = "broken.py:k"\nparameters = []\n') == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "",
            '6: [[case]] #1, key "parameters": is missing; list your kernel\'s parameters in order, for example '
            'parameters = [{name = "x", kind = "array", dtype = "float32", rank = 1}]',
        ),
        (
            "shape = [4, 4]\nparameters = []",
            '8: [[case]] #1, key "shape": is only for the lab\'s own kernels; '
            'remove it, or describe it in "parameters"',
        ),
        (
            "latency = 3\nparameters = []",
            '8: [[case]] #1, key "latency": is only for the lab\'s own kernels; '
            'remove it, or write it as a constant in "parameters"',
        ),
        (
            'parameters = [{name = "x", kind = "array", rank = 1}]',
            '6: [[case]] #1, key "dtype": is missing, and a parameter has dtype "$dtype"; '
            'add it, for example dtype = "bfloat16"',
        ),
        (
            'dtype = "bf16"\nparameters = [{name = "x", kind = "scalar"}]',
            '8: [[case]] #1, key "dtype": no parameter takes it; remove it, or write dtype = "$dtype" in the '
            "parameters it is for",
        ),
        (
            'parameters = [{name = "x", kind = "scalar"}, {name = "x", kind = "scalar"}]',
            '8: [[case]] #1, key "parameters", item 2, key "name": "x" is taken; '
            "give every parameter its own name",
        ),
        (
            'parameters = [{name = "x", kind = "aray"}]',
            '8: [[case]] #1, key "parameters", item 1, key "kind": unknown kind of parameter, the string "aray"; '
            'did you mean "array"?',
        ),
        (
            'parameters = [{name = "x"}]',
            '8: [[case]] #1, key "parameters", item 1, key "kind": is missing; '
            'write one of "array", "scalar", "constant", "list" or "tuple"',
        ),
        (
            'parameters = [{name = "x", kind = 3}]',
            '8: [[case]] #1, key "parameters", item 1, key "kind": unknown kind of parameter, the number 3; '
            'known are "array", "scalar", "constant", "list" and "tuple"',
        ),
        (
            'parameters = [{name = "1x", kind = "scalar"}]',
            '8: [[case]] #1, key "parameters", item 1, key "name": "1x" is not a parameter name; '
            "use letters, digits and _, no digit first, at most 100 characters",
        ),
        (
            'parameters = [\n  {name = "x", kind = "scalar"},\n  {name = "y", kind = "scalar", dytpe = "int8"},\n]',
            '10: [[case]] #1, key "parameters", item 2, key "dytpe": unknown key; did you mean "dtype"?',
        ),
        (
            'parameters = [{name = "l", kind = "list", element = {kind = "array", rnk = 1}}]',
            '8: [[case]] #1, key "parameters", item 1, key "element", key "rnk": unknown key; '
            'did you mean "rank"?',
        ),
        (
            'parameters = [{name = "l", kind = "list", element = {kind = "scalar", rank = 1}}]',
            '8: [[case]] #1, key "parameters", item 1, key "element", key "kind": expected "array", '
            'found the string "scalar"; write kind = "array", say',
        ),
        (
            'parameters = [{name = "t", kind = "tuple", items = [{kind = "list"}]}]',
            '8: [[case]] #1, key "parameters", item 1, key "items", item 1, key "kind": '
            'unknown kind of parameter, the string "list"; known are "array", "scalar" and "constant"',
        ),
        (
            'parameters = [{name = "c", kind = "constant", value = "x"}]',
            '8: [[case]] #1, key "parameters", item 1, key "value": expected true, false or a number, '
            'found the string "x"; write value = 128, say',
        ),
        (
            'parameters = [{name = "c", kind = "constant", value = 99999999999999999999}]',
            '8: [[case]] #1, key "parameters", item 1, key "value": the number 99999999999999999999 does not fit '
            "64 bits; write a smaller one",
        ),
        (
            'parameters = [{name = "x", kind = "array", dtype = "int8", rank = 3, shape_divisible_by = [1, 2]}]',
            '8: [[case]] #1, key "parameters", item 1, key "shape_divisible_by": has 2 entries for rank 3; '
            "write one a dimension, or one for all",
        ),
        (
            "parameters = [3]",
            '8: [[case]] #1, key "parameters", item 1: expected a table, {…}, found the number 3; '
            'write parameters = [{name = "x", kind = "array", dtype = "float32", rank = 1}], say',
        ),
    ],
)
def test_parameters(complaints: Load, keys: str, said: str) -> None:
    assert f"matrix.toml:{said}" in complaints(f"{TOOLCHAIN}{TARGET}{OWN}{keys}\n")


def test_own_and_shipped_kernels_in_one_table(complaints: Load) -> None:
    text = '[[case]]\nkernel = ["rmsnorm.tiled", "k.py:k"]\n'
    assert complaints(TOOLCHAIN + TARGET + text) == [
        'matrix.toml:7: [[case]] #1, key "kernel": mixes the lab\'s kernels with your own, which take other '
        "keys; give each a [[case]]"
    ]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            'kernel = "matmul.tiled"\nshape = [64, 64, 64]\ndtype = "fp32"\n',
            'matrix.toml:9: [[case]] #1, key "dtype": "matmul.tiled" is not written for it; '
            '"bfloat16" or "float16" will do',
        ),
        (
            'kernel = "matmul.tiled"\nshape = [64, 64]\ndtype = "fp16"\n',
            'matrix.toml:8: [[case]] #1, key "shape": has 2 extents; write [M, N, K]',
        ),
        (
            'kernel = "matmul.tiled"\nshape = [64, 64, 0]\ndtype = "fp16"\n',
            'matrix.toml:8: [[case]] #1, key "shape": K must be at least 1; write a larger one',
        ),
        (
            'kernel = "vector.add"\nshape = [[64]]\ndtype = "fp16"\nlayout = "sliced"\n',
            'matrix.toml:10: [[case]] #1, key "layout": "vector.add" takes vectors; '
            '"contiguous" or "offset" will do',
        ),
        (
            'kernel = "vector.add"\nshape = [[64]]\ndtype = "fp16"\ngrid = [3]\n',
            'matrix.toml:10: [[case]] #1, key "grid": "vector.add" brings its own launch grid; '
            "remove the key",
        ),
        (
            'kernel = "vector.add"\nshape = [[64]]\ndtype = "fp16"\nonly = {arch = "sm_120"}\n',
            'matrix.toml:10: [[case]] #1, key "only", key "arch": "sm_120" is not in [target] arch; '
            'did you mean "sm_90"?',
        ),
    ],
)
def test_what_a_kernel_is_not_written_for(complaints: Load, table: str, said: str) -> None:
    assert said in complaints(TOOLCHAIN + TARGET + "[[case]]\n" + table)


RUNS = """[[case]]
kernel = "k.py:k"
grid = [4]
parameters = [
    {name = "x", kind = "array", dtype = "int8", rank = 2%s},
    {name = "n", kind = "scalar", dtype = "int32"%s},
]
"""


@pytest.mark.parametrize(
    ("array", "scalar", "said"),
    [
        (
            "",
            ", value = 3",
            'key "shape": is missing, and the kernel is to run; add it, for example shape = [256, 256]',
        ),
        (", shape = [4]", ", value = 3", 'key "shape": has 1 extents for rank 2; write one a dimension'),
        (
            ", shape = [4, 8]",
            "",
            'key "value": is missing, and the kernel is to run; add it, for example value = 1',
        ),
        (
            ", shape = [4, 8], shape_divisible_by = 16",
            ", value = 3",
            'key "shape_divisible_by": 16 does not divide 4; correct one of them',
        ),
        (
            ', shape = [4, 8], stride_constant = ["dynamic", 2]',
            ", value = 3",
            'key "stride_constant": 2 is not the 1 of its shape; correct it',
        ),
        (
            ", shape = [4, 8], base_divisible_by = 512",
            ", value = 3",
            'key "base_divisible_by": arrays are launched on multiples of 256 bytes; write a divisor of that',
        ),
    ],
)
def test_an_own_kernel_is_launched_with_what_it_assumes(
    complaints: Load, tmp_path: Path, array: str, scalar: str, said: str
) -> None:
    found = complaints(TOOLCHAIN + TARGET + RUNS % (array, scalar))
    assert any(text.endswith(said) for text in found), found
