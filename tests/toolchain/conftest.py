"""A store of its own for every test, and package tools that fail in the way a test asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.process import Supervisor
from harness.toolchain.package_tools import PackageTools
from harness.toolchain.store import Store, open_store

FAKE = Path(__file__).with_name("fake_package_tool.py")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


@pytest.fixture(scope="session")
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as running:
        yield running


@pytest.fixture(scope="session")
def idle() -> Supervisor:
    """A supervisor that raises whenever something is to be started."""
    cancelled = Supervisor()
    cancelled.cancel()
    return cancelled


@pytest.fixture
def faulty(store: Store, supervisor: Supervisor) -> Callable[..., PackageTools]:
    """`faulty(*behaviours)`: pip and uv that behave so; see fake_package_tool.py."""

    def make(*behaviours: str) -> PackageTools:
        command = (sys.executable, "-I", "-S", str(FAKE), *behaviours, "--")
        return PackageTools(store, supervisor, uv=command, pip=command)

    return make
