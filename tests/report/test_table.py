"""Rows, columns and what is merged."""

from __future__ import annotations

from dataclasses import replace

from made_results import Maker

from harness.model import CellResult
from harness.report.table import backend_text, grids


def test_frontends_with_equal_answers_share_a_grid(lab_run: list[CellResult]) -> None:
    (grid,) = grids(lab_run)
    assert grid.heading == (
        "rmsnorm.static_persistent · 16384×512 · bfloat16 · cuda-tile 1.5.0 and 1.7.0 (equal answers)"
    )
    assert grid.axes == ("occupancy", "allow_tma")
    assert grid.rows[0] == ("default", "true")
    assert grid.backends == ("13.2.2", "13.3.1", "13.4.3", "13.5.0")
    assert grid.archs == ("sm_90", "sm_100", "sm_120")
    assert len(grid.columns) == 12
    assert len(grid.cells) == 96


def test_frontends_that_differ_do_not(make: Maker) -> None:
    cells = [make.cell(cuda_tile=version) for version in ("1.5.0", "1.7.0")]
    results = [make.result(cells[0], make.inspection(255)), make.result(cells[1], make.inspection(168))]
    assert [grid.heading.split("·")[-1].strip() for grid in grids(results)] == [
        "cuda-tile 1.5.0",
        "cuda-tile 1.7.0",
    ]


def test_compile_times_do_not_part_frontends(make: Maker) -> None:
    cells = [make.cell(cuda_tile=version, occupancy=None) for version in ("1.5.0", "1.7.0")]
    slow = make.compiled(cpu_seconds=9.0)
    assert len(grids([make.result(cells[0]), make.result(cells[1], compile=slow)])) == 1


def test_replaced_components_have_their_own_column(make: Maker) -> None:
    cell = make.cell()
    mixed = replace(cell, toolchain=replace(cell.toolchain, name="mixed", ptxas="13.4.92"))
    results = [make.result(cell), make.result(mixed)]
    (grid,) = grids(results)
    assert grid.backends == ("13.3.1", "13.3.1 +ptxas 13.4.92")
    assert backend_text(results[1]) == "13.3.1 +ptxas 13.4.92"


def test_shapes_and_kernels_become_rows_where_they_vary(make: Maker) -> None:
    cells = [make.cell(shape=(rows, 512), kernel=name) for rows in (16, 64) for name in ("a", "b")]
    (grid,) = grids([make.result(cell) for cell in cells])
    assert grid.axes == ("kernel", "shape")
    assert ("a", "16×512") in grid.rows


def test_a_kernel_without_a_shape_leaves_no_gap(make: Maker) -> None:
    (grid,) = grids([make.result(make.cell(kernel="own/k.py:k", shape=()))])
    assert grid.heading == "own/k.py:k · bfloat16 · cuda-tile 1.5.0"


def test_a_series_of_versions_is_resolved_where_it_is_known(make: Maker) -> None:
    results = [make.result(make.cell("13.3", occupancy=k)) for k in (2, 8)]
    (grid,) = grids([replace(results[0], resolved={"cuda_toolkit": "13.3.1"}), results[1]])
    assert (grid.backends, grid.toolkits) == (("13.3",), {"13.3": "13.3.1"})


def test_a_part_of_one_architecture(lab_run: list[CellResult]) -> None:
    part = grids(lab_run)[0].only("sm_100")
    assert part.archs == ("sm_100",)
    assert len(part.columns) == 4
    assert len(part.cells) == 32


def test_cases_that_differ_in_their_parameters_have_a_row_each(make: Maker) -> None:
    """The last of them must not hide the others."""
    good, bad = (make.own_cell(rank) for rank in (1, 2))
    for results in (
        [make.result(good), make.refused(bad, "trace")],
        [make.refused(bad, "trace"), make.result(good)],
    ):
        (grid,) = grids(results)
        assert grid.axes == ("x.rank",)
        assert {row: str(result.verdict) for (row, _, _), result in grid.cells.items()} == {
            ("1",): "compiles",
            ("2",): "frontend_error",
        }
