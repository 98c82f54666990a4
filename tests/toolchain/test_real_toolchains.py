"""The real index, the real packages, the real tileiras."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model import Toolchain
from harness.process import Supervisor
from harness.toolchain import Provisioner, Store, UnknownVersion, open_store

pytestmark = pytest.mark.toolchain

CASES = {
    "13.3.1": (Toolchain("a", "1.5.0", "13.3.1"), ("13.3.36", "13.3.73", "13.3.73"), "13.3"),
    "13.1.0": (Toolchain("b", "1.5.0", "13.1.0"), ("13.1.80", "13.1.80", "13.1.80"), "13.1"),
    "mix": (
        Toolchain("c", "1.5.0", "13.3.1", tileiras="13.4.3", nvvm="13.3.73"),
        ("13.4.92", "13.3.73", "13.3.73"),
        "13.4",
    ),
}


@pytest.fixture(scope="module")
def running() -> Iterator[Supervisor]:
    with Supervisor() as supervisor:
        yield supervisor


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Empty at first and shared by the tests of this file, as a user's store is."""
    return open_store(tmp_path_factory.mktemp("store"))


@pytest.mark.parametrize("name", CASES)
def test_provisions_runs_and_repeats_offline(fresh: Store, running: Supervisor, name: str) -> None:
    toolchain, expected, newest = CASES[name]
    backend = Provisioner(fresh, running).backend(toolchain)
    assert tuple(backend.components.values()) == expected
    assert backend.bytecode_versions[-1] == newest
    for tool in ("tileiras", "ptxas"):
        done = running.run([Path(backend.root) / "bin" / tool, "--version"], deadline=20)
        assert done.ok
        assert f"V{backend.components[tool]}" in done.stdout

    started = time.perf_counter()
    again = Provisioner(fresh, running, offline=True).backend(toolchain)
    assert time.perf_counter() - started < 0.25
    assert again == backend


@pytest.mark.parametrize("version", ["1.3.0", "1.5.0"])
def test_a_frontend_imports_from_its_own_directory(fresh: Store, running: Supervisor, version: str) -> None:
    frontend = Provisioner(fresh, running).frontend(version)
    assert Provisioner(fresh, running, offline=True).frontend(version) == frontend
    program = (
        f"import sys; sys.path.insert(0, {frontend.root!r}); import cuda.tile.compilation as c; "
        "print(c.__file__, callable(c.export_kernel))"
    )
    done = running.run([sys.executable, "-I", "-c", program], deadline=60)
    assert done.stdout.split() == [f"{frontend.root}/cuda/tile/compilation/__init__.py", "True"], done.stderr


def test_the_index_lists_what_the_lab_supports(fresh: Store, running: Supervisor) -> None:
    provisioner = Provisioner(fresh, running)
    frontends, toolkits = provisioner.versions("cuda-tile"), provisioner.versions("cuda-toolkit")
    assert {"1.3.0", "1.4.0", "1.5.0", "1.6.0", "1.7.0"} <= set(frontends)
    assert {"13.1.0", "13.2.2", "13.3.1", "13.4.1.0", "13.4.3", "13.5.0"} <= set(toolkits)
    with pytest.raises(UnknownVersion, match=r"did you mean 13\.3\.1\?"):
        provisioner.choose("cuda-toolkit", "13.3.2")
