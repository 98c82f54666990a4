from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.matrix import Generator, Matrix, load_matrix
from harness.model import Array, Case, Cell, Device, Hints, Toolchain
from harness.plan import NoSuchCell, count, describe, in_shard, match, plan

SHIPPED = load_matrix(Path(__file__).parents[1] / "matrix.toml")
CELLS = tuple(plan(SHIPPED))

TOOLCHAINS = (Toolchain("a", "1.5.0", "13.2.2"), Toolchain("b", "1.7.0", "13.3.1"))
CASES = tuple(Case("rmsnorm.tiled", (m, 8), "float32", Hints(occupancy=m)) for m in (1, 2, 3))
ARCHS = ("sm_90", "sm_100", "sm_120")
DEVICES = (Device("h200", "H200", "sm_90"), Device("h100", "H100", "sm_90"), Device("b200", "B200", "sm_100"))


def some(values: tuple[object, ...]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(st.sampled_from(values), unique=True).map(tuple)


matrices = st.builds(
    Matrix, st.just(Path("m.toml")), some(TOOLCHAINS), some(ARCHS), some(DEVICES), some(CASES)
)


@given(matrices)
def test_every_combination_is_planned_once(matrix: Matrix) -> None:
    cells = list(plan(matrix))
    assert len(cells) == len({cell.id for cell in cells}) == count(matrix)
    assert {(c.case, c.toolchain, c.arch) for c in cells if c.device is None} == {
        (case, toolchain, arch)
        for case in matrix.cases
        for toolchain in matrix.toolchains
        for arch in matrix.archs
    }
    for cell in cells:
        assert cell.device is None or (cell.device.arch == cell.arch and cell.device in matrix.devices)
    assert cells == list(plan(matrix))


@given(matrices)
def test_a_run_on_a_device_follows_on_its_compile(matrix: Matrix) -> None:
    compiled = None
    for cell in plan(matrix):
        if cell.device is None:
            compiled = cell
        else:
            assert compiled == Cell(cell.toolchain, cell.arch, cell.case)


@given(matrices, st.integers(1, 5))
def test_shards_are_disjoint_and_together_everything(matrix: Matrix, parts: int) -> None:
    shards = [list(plan(matrix, shard=(i, parts))) for i in range(1, parts + 1)]
    assert sum(map(len, shards)) == count(matrix)
    assert {cell.id for shard in shards for cell in shard} == {cell.id for cell in plan(matrix)}
    for i, shard in enumerate(shards, 1):
        assert all(in_shard(cell, (i, parts)) for cell in shard)
        assert shard == [cell for cell in plan(matrix) if in_shard(cell, (i, parts))]


@given(matrices)
def test_a_shard_does_not_depend_on_what_else_is_planned(matrix: Matrix) -> None:
    for cell in plan(matrix, shard=(2, 3)):
        assert in_shard(Cell(cell.toolchain, cell.arch, cell.case), (2, 3))


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 0), (-1, -1)])
def test_a_shard_there_is_none_of(shard: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"^there is no shard .* write i/n with 1 <= i <= n, such as 2/4$"):
        list(plan(SHIPPED, shard=shard))


def test_ids_are_the_same_on_every_machine() -> None:
    assert CELLS[0].id == "7ea7dbb1cd71"


def test_planning_is_lazy() -> None:
    cases = tuple(Case("rmsnorm.tiled", (m, 8), "float32") for m in range(5_000))
    endless = Matrix(Path("m.toml"), TOOLCHAINS, ARCHS, (), cases)
    assert len(list(islice(plan(endless), 7))) == 7
    assert count(endless) == 30_000


def test_all_cells_of_a_case_are_neighbours() -> None:
    assert [cell.case for cell in CELLS] == [case for case in SHIPPED.cases for _ in range(32)]


def test_generated_cases_must_be_drawn_before() -> None:
    generator = Generator(1, 3, 0, 100, ())
    with pytest.raises(ValueError, match="cases still to be drawn"):
        next(plan(Matrix(Path("m.toml"), TOOLCHAINS, ARCHS, (), (), (generator,))))


# --- finding a cell ---------------------------------------------------------------------------


def test_a_cell_by_its_id_or_the_start_of_it() -> None:
    for cell in CELLS[::17]:
        assert match(CELLS, cell.id) == cell
        assert match(CELLS, cell.id[:9].upper()) == cell


def test_a_cell_by_its_words_in_any_order() -> None:
    cell = match(CELLS, "allow_tma=false 1.5.0 13.3.1 occupancy=16 sm_90")
    assert (cell.toolchain.name, cell.arch, cell.device) == ("tile1.5.0-ctk13.3.1", "sm_90", None)
    assert (cell.case.hints.occupancy, cell.case.knob("allow_tma")) == (16, False)
    assert match(CELLS, "static_persistent 1.5 13.3 SM_90 occupancy=16 allow_tma=False device=none") == cell
    assert match(CELLS, "cuda_tile=1.5.0 cuda_toolkit=13.3 arch=sm_90 occupancy=16 allow_tma=false") == cell


def test_default_is_a_word() -> None:
    cell = match(CELLS, "tile1.5.0-ctk13.3.1 sm_120 16384x512 bfloat16 occupancy=default allow_tma=true")
    assert cell.case.hints.occupancy is None


def test_a_run_is_meant_only_where_a_device_is_named() -> None:
    words = "1.5.0 13.3.1 sm_90 occupancy=16 allow_tma=false"
    assert match(CELLS, words).device is None
    assert match(CELLS, f"{words} h200").device == SHIPPED.devices[0]


@given(st.sampled_from(CELLS))
def test_a_cells_own_words_lead_to_it(cell: Cell) -> None:
    assert match(CELLS, describe(cell)) == cell


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "no cell was named; give the start of its id, or words such as sm_90 occupancy=16"),
        ("sm_91", 'no cell fits "sm_91"; did you mean sm_90 or sm_120 or sm_100?'),
        (
            "sm_90 occupancy=15",
            'no cell fits "occupancy=15"; '
            "did you mean occupancy=16 or occupancy=2 or occupancy=8 or occupancy=default?",
        ),
        (
            "ocupancy=16",
            'no cell fits "ocupancy=16"; did you mean occupancy=16 or occupancy=8 or occupancy=2?',
        ),
        ("???", 'no cell fits "???"; words are versions, sm_90, occupancy=16 and the like'),
        (
            "13.3.1 sm_90 occupancy=16 allow_tma=false",
            '"13.3.1 sm_90 occupancy=16 allow_tma=false" fits 2 cells; add words, or give the id of one:\n'
            "  e42742c08674  tile1.5.0-ctk13.3.1 sm_90 rmsnorm.static_persistent 16384x512 bfloat16 "
            "occupancy=16 allow_tma=false latency=10\n"
            "  a13093f0def3  tile1.7.0-ctk13.3.1 sm_90 rmsnorm.static_persistent 16384x512 bfloat16 "
            "occupancy=16 allow_tma=false latency=10",
        ),
        (
            "13.3.1 1.5.0 sm_100 h200 occupancy=16 allow_tma=false",
            'each word of "13.3.1 1.5.0 sm_100 h200 occupancy=16 allow_tma=false" fits a cell, but none fits '
            "all; nearest are:",
        ),
    ],
)
def test_what_is_said_where_no_one_cell_is_meant(pattern: str, said: str) -> None:
    with pytest.raises(NoSuchCell) as caught:
        match(CELLS, pattern)
    assert str(caught.value).partition("nearest are:")[0] == said.partition("nearest are:")[0]


def test_many_candidates_are_not_all_listed() -> None:
    with pytest.raises(NoSuchCell) as caught:
        match(CELLS, "sm_90")
    first, *rest = str(caught.value).splitlines()
    assert first == '"sm_90" fits 64 cells; add words, or give the id of one:'
    assert len(rest) == 9
    assert rest[-1] == "  and 56 more"


def test_cells_that_differ_in_their_parameters_are_told_apart() -> None:
    def cell(rank: int) -> Cell:
        x = Array("x", "float32", (None,) * rank, (1,) * rank, (None,) * rank, (1,) * rank)
        return Cell(TOOLCHAINS[0], "sm_90", Case("k.py:k", (), "float32", parameters=(x,)))

    flat, square = cell(1), cell(2)
    with pytest.raises(NoSuchCell, match=r"x\.rank=1\n.* x\.rank=2$"):
        match([flat, square], "sm_90")
    assert match([flat, square], "sm_90 x.rank=2") is square
