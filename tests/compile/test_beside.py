"""A kernel's file imports what lies beside it, and an edit there is never answered from the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.compile.cache import Cache
from harness.compile.trace import Tracer
from harness.model import Frontend, KernelSource, Specialization, TraceOutcome
from harness.process import Supervisor

FAKE = Path(__file__).parents[1] / "fakes" / "frontend"
KERNEL = "from lib import k\n"
LIB = """import cuda.tile as ct
from parts import deep

def {name}(): pass

k = ct.kernel({name})
"""

Ask = Callable[..., TraceOutcome]


@pytest.fixture
def tracer(supervisor: Supervisor, cache: Cache) -> Iterator[Tracer]:
    tracer = Tracer(Frontend(str(FAKE), "0.0.fake", "f" * 64), supervisor, cache)
    yield tracer
    tracer.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels of mine"
    (folder / "parts").mkdir(parents=True)
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "lib.py").write_text(LIB.format(name="one"))
    (folder / "parts/__init__.py").write_text("from . import deep\n")
    (folder / "parts/deep.py").write_text("")
    return folder


def trace(tracer: Tracer, folder: Path, function: str = "k") -> TraceOutcome:
    path = folder / "kernel.py"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    source = KernelSource(str(path), "kernels/user/kernel.py", function, digest)
    return tracer.trace(Specialization(source, ()), "sm_90", "13.2", 20)


def test_modules_beside_the_kernel_are_imported_and_remembered(tracer: Tracer, folder: Path) -> None:
    first, again = trace(tracer, folder), trace(tracer, folder)
    assert (first.status, first.symbol, first.cached) == ("ok", "one_mangled", False)
    assert again.cached and again.symbol == "one_mangled"
    assert not list(folder.rglob("__pycache__"))


@pytest.mark.parametrize("warm", [True, False])
def test_an_edited_module_is_traced_anew(
    tracer: Tracer, supervisor: Supervisor, cache: Cache, folder: Path, warm: bool
) -> None:
    trace(tracer, folder)
    (folder / "lib.py").write_text(LIB.format(name="two"))
    other = tracer if warm else Tracer(tracer.frontend, supervisor, cache)
    edited = trace(other, folder)
    assert (edited.symbol, edited.cached) == ("two_mangled", False)
    (folder / "parts/deep.py").write_text("DEPTH = 2\n")
    assert not trace(other, folder).cached
    (folder / "lib.py").write_text(LIB.format(name="one"))
    (folder / "parts/deep.py").write_text("")
    assert trace(other, folder).symbol == "one_mangled"
    other.close()


def test_a_missing_kernel_is_looked_for_again_after_an_edit(tracer: Tracer, folder: Path) -> None:
    assert "has no 'j'" in trace(tracer, folder, "j").message
    (folder / "kernel.py").write_text("from lib import *\n")
    assert "has no 'j'" in trace(tracer, folder, "j").message
    (folder / "lib.py").write_text(LIB.format(name="one") + "j = k\n")
    assert trace(tracer, folder, "j").status == "ok"


def test_two_folders_with_modules_of_one_name(tracer: Tracer, folder: Path) -> None:
    other = folder.parent / "others"
    other.mkdir()
    (other / "kernel.py").write_text(f"{KERNEL}# theirs\n")
    (other / "lib.py").write_text("import cuda.tile as ct\ndef three(): pass\nk = ct.kernel(three)\n")
    assert [trace(tracer, place).symbol for place in (folder, other)] == ["one_mangled", "three_mangled"]


def test_errors_name_the_real_file(tracer: Tracer, folder: Path) -> None:
    (folder / "lib.py").write_text("def f(:\n")
    outcome = trace(tracer, folder)
    assert outcome.status == "error" and outcome.stage == "import"
    assert f"{folder}/lib.py" in outcome.message or f"{folder}/lib.py" in outcome.traceback


def test_the_standard_library_stays_itself(tracer: Tracer, folder: Path) -> None:
    (folder / "json.py").write_text("raise ImportError('not mine')\n")
    (folder / "lib.py").write_text(f"import json\n{LIB.format(name='one')}")
    assert trace(tracer, folder).status == "ok"
