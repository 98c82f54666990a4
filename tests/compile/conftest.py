"""Fakes for the faults of compilers, and values to ask them about."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.compile.cache import Cache
from harness.model import Backend, Component
from harness.process import Supervisor

FAKES = Path(__file__).parents[1] / "fakes"


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as supervisor:
        yield supervisor


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def fake_backend(tmp_path: Path) -> Backend:
    """A backend whose tileiras does what its bytecode says."""
    root = tmp_path / "backend"
    (root / "bin").mkdir(parents=True)
    for name in ("tileiras", "ptxas"):
        script = root / "bin" / name
        script.write_text(f"#!{sys.executable} -ISs\n" + (FAKES / f"fake_{name}.py").read_text())
        script.chmod(0o755)

    def component(name: str) -> Component:
        return Component(name, "0.0.fake", hashlib.sha256(name.encode()).hexdigest())

    return Backend(str(root), component("tileiras"), component("nvvm"), component("ptxas"), ("13.1",))
