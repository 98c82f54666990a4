"""Fixtures for tests of the gate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gate_sides import Sides
from made_results import Maker

from harness.model import CellResult


@pytest.fixture
def sides(make: Maker) -> Sides:
    return Sides(make)


@pytest.fixture
def upgrade(lab_run: list[CellResult]) -> Callable[[str], list[CellResult]]:
    """The cells of one toolkit of a whole run."""
    return lambda toolkit: [r for r in lab_run if r.cell.toolchain.cuda_toolkit == toolkit]
