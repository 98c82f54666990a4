from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.toolchain.errors import InstallError, NotInStore, StoreError
from harness.toolchain.install import Installed, Installer, tree_digest
from harness.toolchain.package_tools import PackageTools
from harness.toolchain.resolve import Pin
from harness.toolchain.store import Store, open_store

Faulty = Callable[..., PackageTools]
TILEIRAS = Pin("nvidia-cuda-tileiras", "13.3.36", ("a" * 64,))
FRONTEND = (Pin("cuda-tile", "1.5.0", ("b" * 64,)), Pin("typing-extensions", "4.16.0", ("c" * 64,)))
FAKE = Path(__file__).with_name("fake_package_tool.py")

INSTALL = """
    import sys
    from pathlib import Path
    from harness.process import Supervisor
    from harness.toolchain.install import Installer
    from harness.toolchain.package_tools import PackageTools
    from harness.toolchain.resolve import Pin
    from harness.toolchain.store import open_store
    root, fake, *behaviours = sys.argv[1:]
    store = open_store(Path(root))
    command = (sys.executable, fake, *behaviours, "--")
    with Supervisor() as supervisor:
        tools = PackageTools(store, supervisor, uv=command, pip=command)
        say = lambda text: print(text, flush=True)
        installer = Installer(store, tools, "cp311", False, say, lambda: None)
        print(installer.component(Pin("nvidia-cuda-tileiras", "13.3.36", ("a" * 64,))).root)
"""


def installer(store: Store, tools: PackageTools, offline: bool = False) -> Installer:
    return Installer(store, tools, "cp311", offline, lambda text: None, lambda: None)


def start(store: Store, *behaviours: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(INSTALL), str(store.root), str(FAKE), *behaviours]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def scratch_is_empty(store: Store) -> bool:
    return not list((store.root / "scratch").iterdir())


def test_a_component_is_installed_once(store: Store, faulty: Faulty, tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = installer(store, faulty(f"log={log}")).component(TILEIRAS)
    assert installer(store, faulty("unreachable"), offline=True).component(TILEIRAS) == first
    assert log.read_text().split() == ["nvidia-cuda-tileiras==13.3.36"]
    assert first.path("tileiras").is_file()
    assert Path(first.root).parent.name.startswith("nvidia-cuda-tileiras-13.3.36-")
    assert scratch_is_empty(store)


def test_other_wheels_are_another_installation(store: Store, faulty: Faulty) -> None:
    other = Pin(TILEIRAS.package, TILEIRAS.version, ("d" * 64,))
    roots = {installer(store, faulty()).component(pin).root for pin in (TILEIRAS, other)}
    assert len(roots) == 2


def test_a_frontend_brings_what_it_imports(store: Store, faulty: Faulty) -> None:
    found = installer(store, faulty()).frontend(FRONTEND)
    assert (Path(found.root) / "typing_extensions.py").is_file()
    assert "-cp311-" in found.root
    assert found.sha256 == tree_digest(Path(found.root) / "cuda")


def test_compiled_python_does_not_change_a_frontends_identity(store: Store, faulty: Faulty) -> None:
    root = Path(installer(store, faulty()).frontend(FRONTEND).root) / "cuda"
    before = tree_digest(root)
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert tree_digest(root) == before
    (root / "new.py").write_bytes(b"x")
    assert tree_digest(root) != before


@pytest.mark.parametrize("damage", ["truncate", "delete", "manifest"])
def test_a_damaged_installation_is_made_again(store: Store, faulty: Faulty, damage: str) -> None:
    first = installer(store, faulty()).component(TILEIRAS)
    if damage == "truncate":
        os.truncate(first.path("tileiras"), 3)
    elif damage == "delete":
        first.path("tileiras").unlink()
    else:
        (Path(first.root).parent / "manifest.json").write_text('{"files": []}')
    assert installer(store, faulty()).component(TILEIRAS) == first
    assert first.path("tileiras").stat().st_size > 3
    assert scratch_is_empty(store)


@pytest.mark.parametrize(
    ("behaviour", "error", "text"),
    [
        ("unreachable", NotInStore, r"nvidia-cuda-tileiras 13\.3\.36 is not in the store .*Name or service"),
        ("disk-full", StoreError, r"is full \(about 200 MB needed"),
        ("refuse", InstallError, r"cannot install nvidia-cuda-tileiras==13\.3\.36: Because pigs"),
        ("hollow", InstallError, r"has no nvidia/\*/bin/tileiras; its wheel is laid out differently"),
    ],
)
def test_a_failed_install_leaves_nothing(
    store: Store, faulty: Faulty, behaviour: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        installer(store, faulty(behaviour)).component(TILEIRAS)
    assert list((store.root / "components").iterdir()) == []
    assert scratch_is_empty(store)


def test_offline_says_what_is_missing(store: Store, faulty: Faulty) -> None:
    with pytest.raises(NotInStore, match=r"nvidia-cuda-tileiras 13\.3\.36 is not in the store"):
        installer(store, faulty(), offline=True).component(TILEIRAS)


def test_two_runs_install_once(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log"
    runs = [start(store, "slow", f"log={log}") for _ in range(2)]
    outputs = [run.communicate(timeout=20)[0].splitlines() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert outputs[0][-1] == outputs[1][-1]
    assert log.read_text().split() == ["nvidia-cuda-tileiras==13.3.36"]
    assert scratch_is_empty(store)


def test_sigkill_in_the_middle_is_cleaned_up_and_made_good(store: Store, faulty: Faulty) -> None:
    with start(store, "half") as victim:
        deadline = 200
        while not list(store.root.glob("scratch/package-*/*/files/nvidia/cu13/bin/tileiras")):
            deadline -= 1
            assert deadline, "the install never got half-way"
            try:
                victim.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail("the install ended by itself")
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait(10)
    assert list(store.root.glob("components/*")) == []
    found: Installed = installer(open_store(store.root), faulty()).component(TILEIRAS)
    assert found.path("tileiras").is_file()
    assert scratch_is_empty(store)
