"""A kernel's file imports what lies beside it, and an edit there is never answered from the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.compile.cache import Cache
from harness.compile.trace import Tracer
from harness.kernels import get
from harness.kernels.arrays import aligned
from harness.lab import Lab
from harness.model import Constant, Frontend, KernelSource, Specialization, TraceOutcome
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


ACT = """import cuda.tile as ct
from helper import doubled

@ct.kernel
def k(x, T: ct.Constant[int]):
    ct.store(x, index=(ct.bid(0),), tile=doubled(ct.load(x, index=(ct.bid(0),), shape=(T,))))
"""
HELPER = """import cuda.tile as ct

@ct.function
def doubled(tile):
    return tile * {factor}
"""


@pytest.mark.toolchain
def test_bytecode_hangs_on_the_helper_and_not_on_its_place(tmp_path: Path) -> None:
    found = []
    with Lab() as lab:
        frontend = lab.provisioner.frontend("1.7.0")
        for place, factor in (("here", 2), ("there", 2), ("elsewhere", 3)):
            folder = tmp_path / place
            folder.mkdir()
            (folder / "kernel.py").write_text(ACT)
            (folder / "helper.py").write_text(HELPER.format(factor=factor))
            source = get("kernel.py:k", folder).source()
            tracer = Tracer(frontend, lab.supervisor, Cache(tmp_path / f"cache of {place}"))
            spec = Specialization(source, (aligned("x", "float32", 1), Constant("T", 128)))
            outcome = tracer.trace(spec, "sm_90", "13.1", 60)
            tracer.close()
            assert outcome.status == "ok", outcome.message
            found.append(outcome.bytecode_sha256)
    assert found[0] == found[1] != found[2]
