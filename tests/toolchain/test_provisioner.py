from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.model import Toolchain
from harness.process import Supervisor
from harness.toolchain import NotInStore, Provisioner, ProvisionError, Store, UnsupportedFrontend
from harness.toolchain.package_tools import PackageTools
from harness.toolchain.provisioner import python_tag

Faulty = Callable[..., PackageTools]
OLD = Toolchain("old", "1.5.0", "13.3.1")
MIX = Toolchain("mix", "1.5.0", "13.3.1", ptxas="13.4.92", nvvm="13.4.3")


def provisioner(store: Store, supervisor: Supervisor, tools: PackageTools, offline: bool) -> Provisioner:
    return Provisioner(store, supervisor, offline=offline, tools=tools)


@pytest.mark.parametrize("version", ["1.0.0", "1.2.0", "1.2"])
def test_a_frontend_without_export_is_refused_before_anything_is_asked(
    store: Store, supervisor: Supervisor, faulty: Faulty, version: str
) -> None:
    with pytest.raises(UnsupportedFrontend) as caught:
        provisioner(store, supervisor, faulty("unreachable"), False).frontend(version)
    assert str(caught.value) == (
        f"cuda-tile {version} has no ahead-of-time export (cuda.tile.compilation.export_kernel); "
        "1.3.0 is the first that can be driven without a GPU"
    )


def test_a_warm_store_starts_no_process(
    store: Store, supervisor: Supervisor, idle: Supervisor, faulty: Faulty
) -> None:
    cold = provisioner(store, supervisor, faulty(), False)
    first = cold.backend(OLD), cold.backend(MIX), cold.frontend("1.5")
    warm = Provisioner(store, idle)
    assert (warm.backend(OLD), warm.backend(MIX), warm.frontend("1.5")) == first
    assert warm.frontend("1.5.0").version == "1.5.0"


def test_components_are_overridden_one_by_one(store: Store, supervisor: Supervisor, faulty: Faulty) -> None:
    backend = provisioner(store, supervisor, faulty(), False).backend(MIX)
    assert backend.components == {"tileiras": "13.3.36", "nvvm": "13.4.92", "ptxas": "13.4.92"}


def test_component_versions_are_told_without_installing(
    store: Store, supervisor: Supervisor, faulty: Faulty
) -> None:
    said: list[str] = []
    asked = Provisioner(store, supervisor, progress=said.append, tools=faulty())
    versions = asked.component_versions(MIX)
    assert said == ["resolving cuda-toolkit 13.3.1", "resolving cuda-toolkit 13.4.3"]
    assert versions == asked.backend(MIX).components


def test_progress_hears_every_slow_step_and_the_choice(
    store: Store, supervisor: Supervisor, faulty: Faulty
) -> None:
    said: list[str] = []
    asked = Provisioner(store, supervisor, progress=said.append, tools=faulty())
    asked.backend(Toolchain("x", "1.5.0", "13.3"))
    assert said == [
        "cuda-toolkit 13.3 is 13.3.1",
        "resolving cuda-toolkit 13.3.1",
        "installing nvidia-cuda-tileiras 13.3.36",
        "installing nvidia-nvvm 13.3.73",
        "installing nvidia-cuda-nvcc 13.3.73",
    ]


def test_offline_with_an_empty_store(store: Store, supervisor: Supervisor, faulty: Faulty) -> None:
    empty = provisioner(store, supervisor, faulty(), True)
    for ask in (lambda: empty.backend(OLD), lambda: empty.frontend("1.5.0")):
        with pytest.raises(NotInStore, match="offline was asked for"):
            ask()
    assert issubclass(NotInStore, ProvisionError)


def test_the_lock_report_names_everything(store: Store, supervisor: Supervisor, faulty: Faulty) -> None:
    asked = provisioner(store, supervisor, faulty(), False)
    asked.backend(OLD)
    asked.frontend("1.5.0")
    report = asked.lock_report()
    assert list(report) == [f"cuda-tile-1.5.0-{python_tag()}", "cuda-toolkit-13.3.1"]
    packages = report["cuda-toolkit-13.3.1"]["packages"]
    assert all(len(h) == 64 for p in packages for h in p["sha256"])
    assert report["cuda-toolkit-13.3.1"]["resolved_at"].endswith("+00:00")
