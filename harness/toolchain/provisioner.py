"""From the versions a user wrote to a frontend and a backend that can run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from packaging.version import Version

from harness.model import Backend, Frontend, Toolchain
from harness.process import Cancelled, Supervisor
from harness.toolchain import versions
from harness.toolchain.compose import compose
from harness.toolchain.errors import InstallError, UnsupportedFrontend
from harness.toolchain.install import Installed, Installer
from harness.toolchain.package_tools import PackageTools
from harness.toolchain.resolve import FRONTEND, NVCC, NVVM, TILEIRAS, TOOLKIT, Pin, Resolver
from harness.toolchain.store import Store

FIRST_FRONTEND = Version("1.3.0")
"""The first cuda-tile with `cuda.tile.compilation.export_kernel`."""


class Provisioner:
    """Safe to share between threads, and between runs that use one store.

    `offline` never starts a package tool: what the store lacks raises NotInStore. `progress` hears one
    short sentence per step that takes time, from the thread that takes it.
    """

    def __init__(
        self,
        store: Store,
        supervisor: Supervisor,
        offline: bool = False,
        progress: Callable[[str], None] | None = None,
        tools: PackageTools | None = None,
    ) -> None:
        self._store = store
        self._supervisor = supervisor
        tools = tools or PackageTools(store, supervisor)
        announce = progress or (lambda text: None)
        interpreter = python_tag()
        self._resolver = Resolver(store, tools, interpreter, offline, announce, self._give_up)
        self._installer = Installer(store, tools, interpreter, offline, announce, self._give_up)
        self._frontends: dict[str, Frontend] = {}
        self._backends: dict[Toolchain, Backend] = {}
        self._lock = threading.Lock()

    def versions(self, package: str) -> tuple[str, ...]:
        """Versions of "cuda-tile", "cuda-toolkit" (from 13.1 on) or a component package, oldest first.

        Remembered for a day, and for as long as there is no network. Raises NotInStore.
        """
        return self._resolver.versions(package)

    def choose(self, package: str, wanted: str) -> str:
        """The exact version meant: "13.3" is the newest 13.3.x. Raises UnknownVersion, NotInStore."""
        return self._resolver.choose(package, wanted)

    def frontend(self, version: str) -> Frontend:
        """Install a cuda-tile if need be. Raises UnsupportedFrontend and every ProvisionError."""
        with self._lock:
            known = self._frontends.get(version)
        if known is None:
            known = self._frontend(version)
            with self._lock:
                self._frontends[version] = known
        return known

    def backend(self, toolchain: Toolchain) -> Backend:
        """Install and compose the components of a toolchain if need be. Raises every ProvisionError.

        `tileiras`, `nvvm` and `ptxas` of the toolchain, where given, are a version of the component's own
        package or of the cuda-toolkit that brings it.
        """
        with self._lock:
            known = self._backends.get(toolchain)
        if known is None:
            known = self._backend(toolchain)
            with self._lock:
                self._backends[toolchain] = known
        return known

    def component_versions(self, toolchain: Toolchain) -> dict[str, str]:
        """Component → version that `backend` would compose. Resolves if need be, installs nothing."""
        packages = {"tileiras": TILEIRAS, "nvvm": NVVM, "ptxas": NVCC}
        return {
            name: self._pin(package, getattr(toolchain, name), toolchain.cuda_toolkit).version
            for name, package in packages.items()
        }

    def lock_report(self) -> dict[str, Any]:
        """Everything this store ever resolved: lock name → requirement, time, packages with hashes."""
        return self._resolver.report()

    def _frontend(self, version: str) -> Frontend:
        refuse_old_frontend(version)
        exact = self._resolver.choose(FRONTEND, version)
        refuse_old_frontend(exact)
        try:
            resolution = self._resolver.frontend(exact)
        except InstallError as error:
            if "no wheels" not in str(error):
                raise
            python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
            raise UnsupportedFrontend(f"cuda-tile {exact} has no build for {python}: {error}") from error
        installed = self._installer.frontend(resolution.packages)
        return Frontend(root=installed.root, version=exact, sha256=installed.sha256)

    def _backend(self, toolchain: Toolchain) -> Backend:
        tileiras = self._component(TILEIRAS, toolchain.tileiras, toolchain.cuda_toolkit)
        nvvm = self._component(NVVM, toolchain.nvvm, toolchain.cuda_toolkit)
        ptxas = self._component(NVCC, toolchain.ptxas, toolchain.cuda_toolkit)
        return compose(self._store, self._supervisor, tileiras, nvvm, ptxas)

    def _component(self, package: str, wanted: str | None, toolkit: str) -> Installed:
        return self._installer.component(self._pin(package, wanted, toolkit))

    def _pin(self, package: str, wanted: str | None, toolkit: str) -> Pin:
        if wanted is not None:
            return self._resolver.component(package, wanted)
        return self._resolver.toolkit(self._resolver.choose(TOOLKIT, toolkit)).pin(package)

    def _give_up(self) -> None:
        if self._supervisor.cancelled:
            raise Cancelled("the run was cancelled")


def refuse_old_frontend(version: str) -> None:
    """Raises UnsupportedFrontend for a cuda-tile that cannot export bytecode."""
    asked = versions.parse(version)
    if asked is not None and len(asked.release) > 1 and asked.release[:2] < FIRST_FRONTEND.release[:2]:
        raise UnsupportedFrontend(
            f"cuda-tile {version} has no ahead-of-time export (cuda.tile.compilation.export_kernel); "
            f"{FIRST_FRONTEND} is the first that can be driven without a GPU"
        )


def python_tag() -> str:
    """The running Python as wheels name it, e.g. cp311 or cp313t."""
    short = "cp" if sys.implementation.name == "cpython" else sys.implementation.name
    return f"{short}{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
