"""Python environments of their own for repro.py: a toolchain, or packages as pip installs them."""

from __future__ import annotations

import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.lab import Lab
from harness.model import digest_of
from harness.process import Finished
from harness.repro.spec import Place
from harness.toolchain.package_tools import PackageTools

_PACKAGES_BYTES = 800_000_000
"""What a whole backend with its dependencies takes; only said when a disk turns out to be full."""


@dataclass(frozen=True)
class Environment:
    """A Python and what its processes see."""

    python: Path
    variables: Mapping[str, str]

    def run(self, lab: Lab, script: Path, deadline: float, *arguments: str) -> Finished:
        """Run a script, seconds at most."""
        return lab.supervisor.run(
            [self.python, script.resolve(), *arguments],
            deadline=deadline,
            cwd=self.variables["HOME"],
            env=self.variables,
        )


@contextmanager
def environment(lab: Lab, place: Place) -> Iterator[Environment]:
    """An environment with this toolchain or these packages. Raises every ProvisionError.

    A toolchain's backend stands on PATH, as a system installation does; packages are found by
    cuda.tile itself. Neither sees torch, so no script launches anything.
    """
    if place.toolchain is not None:
        root = Path(lab.provisioner.frontend(place.toolchain.cuda_tile).root)
        binaries = [str(Path(lab.provisioner.backend(place.toolchain).root) / "bin")]
    else:
        root, binaries = installed(lab, place.packages), []
    with lab.supervisor.scratch("repro-") as scratch:
        home = scratch / "python"
        venv.EnvBuilder(symlinks=True, with_pip=False).create(home)
        (site,) = home.glob("lib/python*/site-packages")
        (site / "toolchain.pth").write_text(f"{root.resolve()}\n", encoding="utf-8")
        work = scratch / "home"
        work.mkdir()
        variables = {
            "PATH": ":".join([*binaries, "/usr/bin", "/bin"]),
            "HOME": str(work),
            "TMPDIR": str(work),
            "LC_ALL": "C.UTF-8",
        }
        yield Environment(home / "bin" / "python", variables)


def installed(lab: Lab, packages: tuple[str, ...]) -> Path:
    """A directory with these packages and all they need, installed once."""
    final = lab.store.directory("environments") / digest_of(sorted(packages))[:16]
    if final.is_dir():
        return final
    tools = PackageTools(lab.store, lab.supervisor)
    with lab.store.lock(f"environment-{final.name}"):
        if not final.is_dir():
            pinned = tools.resolve("\n".join(packages), dependencies=True)
            with lab.store.scratch("environment") as scratch:
                built = scratch / final.name
                built.mkdir()
                tools.install(pinned, built, _PACKAGES_BYTES)
                lab.store.publish(built, final)
    return final
