"""Fixtures for tests of judging, grouping, recording and reporting."""

from __future__ import annotations

import pytest
from hypothesis import settings
from made_results import Maker

from harness.judge import judge_skipped
from harness.model import CellResult, Device

FAST = "not toolchain and not gpu and not slow"
"""What pyproject.toml selects."""

# Every property is tested on few examples each time, and on many where somebody asks for what is slow.
settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=300, deadline=None)


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


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("thorough" if _asks_for_slow(config) else "fast")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two processes for the whole of the fast tests; one for less, and for tests that fill the machine."""
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return 2 if whole and config.getoption("-m") == FAST and not config.getoption("-k") else 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Real compilers on a busy machine take what they take; each compile has a deadline of its own.

    With `-m slow` every property is run once more, on as many examples as the thorough profile has.
    """
    for item in items:
        if item.get_closest_marker("toolchain") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(1200))
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if is_property and _asks_for_slow(config):
            item.add_marker(pytest.mark.slow)


def _asks_for_slow(config: pytest.Config) -> bool:
    wanted = config.getoption("-m")
    return "slow" in wanted and "not slow" not in wanted
