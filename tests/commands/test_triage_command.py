"""What `harness triage` refuses before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.commands import triage
from harness.commands.triage import Options, triage_file
from harness.process import Supervisor
from harness.toolchain.resolve import UnknownVersion

FRONTEND = Path(__file__).parent.parent / "resources/triage/frontend"


class Shelf:
    """A provisioner of one version each."""

    def versions(self, package: str) -> tuple[str, ...]:
        return ("1.7.0",) if package == "cuda-tile" else ("13.5.0",)

    def choose(self, package: str, wanted: str) -> str:
        if wanted not in self.versions(package):
            raise UnknownVersion(f"unknown {package} version {wanted!r}")
        return wanted

    def frontend(self, version: str) -> Any:
        return SimpleNamespace(root=str(FRONTEND))


@pytest.fixture(autouse=True)
def _no_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def lab(*args: Any, **options: Any) -> Iterator[Any]:
        with Supervisor() as supervisor:
            yield SimpleNamespace(provisioner=Shelf(), supervisor=supervisor)

    monkeypatch.setattr(triage, "Lab", lab)


def test_an_architecture_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert triage_file(tmp_path / "k.py", Options(tmp_path, arch=("h100",))) == 2
    assert "--arch: there is no architecture 'h100'; " in capsys.readouterr().err


@pytest.mark.parametrize("asked", [{"cuda_toolkit": ("12.9",)}, {"cuda_tile": ("9.9",)}])
def test_a_version_that_there_is_not(tmp_path: Path, asked: dict[str, Any]) -> None:
    with pytest.raises(UnknownVersion, match="unknown cuda-t"):
        triage_file(tmp_path / "k.py", Options(tmp_path, **asked))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "neither binds a kernel to a module-level name nor launches one"),
        (
            "import cuda.tile as ct\n@ct.kernel\ndef k(x): ct.load(x, (0,), (1,))\n",
            "# harness: x = array(float32, 1)",
        ),
        (
            "import cuda.tile as ct, numpy as np\n@ct.kernel\ndef k(n): np.f(n)\nct.launch(0, (1,), k, (1,))",
            "k cannot be looked into: the kernel needs np (k.py, line 1: import cuda.tile as ct, numpy",
        ),
    ],
)
def test_a_file_that_cannot_be_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    path = tmp_path / "k.py"
    path.write_text(text)
    assert triage_file(path, Options(tmp_path / "out")) == 2
    assert told in capsys.readouterr().err
