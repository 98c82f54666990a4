"""Against cuOccupancyMaxActiveBlocksPerMultiprocessor of an H200, and the tables."""

from __future__ import annotations

import pytest

from harness.inspect.occupancy import SM_LIMITS, occupancy


@pytest.mark.parametrize(
    ("threads", "shared", "registers", "barriers", "ctas"),
    [
        (256, 2120, 32, 2, 8),
        (256, 100520, 128, 2, 2),
        (256, 51320, 64, 2, 4),
        (384, 2248, 168, 3, 1),
        (256, 166216, 255, 2, 1),
        (256, 3664, 24, 1, 8),
        (384, 202040, 168, 3, 1),
        (128, 9224, 32, 1, 16),
        (256, 232808, 255, 2, 1),
        (128, 0, 8, 0, 16),
        (96, 1064, 8, 0, 21),
    ],
)
def test_as_the_driver_of_an_h200_counts(
    threads: int, shared: int, registers: int, barriers: int, ctas: int
) -> None:
    assert occupancy(90, registers, threads, shared, barriers).ctas == ctas


def test_what_bounds_it() -> None:
    assert occupancy(90, 255, 256, 0).limited_by == "registers"
    assert occupancy(90, 24, 256, 0).limited_by == "warps"
    assert occupancy(90, 16, 64, 120_000).limited_by == "shared memory"
    assert occupancy(90, 16, 32, 0).limited_by == "CTAs"
    assert occupancy(120, 16, 64, 0, barriers=4).limited_by == "barriers"
    assert occupancy(90, 32, 256, 0).limited_by == "registers, warps"


def test_what_cannot_be_launched_fits_nowhere() -> None:
    assert occupancy(90, 255, 1024, 0).ctas == 0
    assert occupancy(120, 32, 128, 200_000).ctas == 0


def test_the_drivers_kilobyte_is_counted_once() -> None:
    assert occupancy(80, 16, 64, 40).ctas == occupancy(90, 16, 64, 1064).ctas == 32
    assert occupancy(86, 32, 32, 50 * 1024 - 1024).ctas == 2
    assert occupancy(120, 32, 32, 50 * 1024).ctas == 2


def test_an_architecture_without_published_limits() -> None:
    assert occupancy(107, 32, 256, 0) == occupancy(90, 32, 0, 0)
    assert occupancy(107, 32, 256, 0).ctas is None


def test_all_supported_architectures_but_one_are_known() -> None:
    assert sorted(SM_LIMITS) == [80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]
