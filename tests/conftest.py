"""Fixtures for tests of judging, grouping, recording and reporting."""

from __future__ import annotations

import pytest
from made_results import Maker

from harness.judge import judge_skipped
from harness.model import CellResult, Device


@pytest.fixture(scope="session")
def make() -> Maker:
    return Maker()


@pytest.fixture(scope="session")
def lab_run(make: Maker) -> list[CellResult]:
    """The matrix 2 × 4 toolchains × 3 architectures × 8 settings, and one cell that wants a device."""
    results = [make.answer(cell) for cell in make.cells()]
    wanting = make.cell(device=Device("h200", "NVIDIA H200", "sm_90"))
    reason = "no NVIDIA driver on this machine; device h200 needs NVIDIA H200"
    return [*results, CellResult(wanting, judge_skipped(wanting, reason))]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real compilers on a busy machine take what they take; each compile has a deadline of its own."""
    for item in items:
        if item.get_closest_marker("toolchain") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(1200))
