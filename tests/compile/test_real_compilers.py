"""The real cuda.tile, tileiras and ptxas: what must work is tested here."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compile.backend import Compiler
from harness.compile.cache import Cache
from harness.compile.trace import Tracer
from harness.kernels import get
from harness.model import (
    Array,
    Backend,
    Case,
    Constant,
    Frontend,
    Hints,
    KernelSource,
    Parameter,
    ScalarParameter,
    Specialization,
    Toolchain,
    TraceOutcome,
)
from harness.process import Supervisor
from harness.process.warden import bearers
from harness.toolchain import Provisioner, open_store

pytestmark = pytest.mark.toolchain

FIELD = Path(__file__).with_name("resources") / "field_kernels.py"
FRONTENDS = ("1.3.0", "1.4.0", "1.5.0", "1.6.0", "1.7.0")


@pytest.fixture(scope="module")
def shared() -> Iterator[Supervisor]:
    with Supervisor() as supervisor:
        yield supervisor


@pytest.fixture(scope="module")
def provisioner(shared: Supervisor) -> Provisioner:
    return Provisioner(open_store(), shared)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def tracers(provisioner: Provisioner, shared: Supervisor, results: Cache) -> Iterator[dict[str, Tracer]]:
    found = {version: Tracer(provisioner.frontend(version), shared, results) for version in FRONTENDS}
    yield found
    for tracer in found.values():
        tracer.close()


@pytest.fixture(scope="module")
def compiler(shared: Supervisor, results: Cache) -> Compiler:
    return Compiler(shared, results)


def backend(provisioner: Provisioner, toolkit: str) -> Backend:
    return provisioner.backend(Toolchain(toolkit, "1.5.0", toolkit))


def array(name: str, dtype: str = "float32", rank: int = 1, itemsize: int = 4) -> Array:
    """Contiguous, aligned, rows divisible by 16."""
    outer = rank - 1
    return Array(
        name=name,
        dtype=dtype,
        shape_constant=(None,) * rank,
        shape_divisible_by=(16,) * rank,
        stride_constant=(None,) * outer + (1,),
        stride_divisible_by=(16 // itemsize,) * outer + (1,),
    )


TILE = Constant("TILE", 128)


def field(
    function: str, *parameters: Parameter, hints: Hints | None = None, path: Path = FIELD
) -> Specialization:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    source = KernelSource(str(path), "kernels/field_kernels.py", function, digest)
    return Specialization(source, parameters, hints or Hints())


ADD = (array("a"), array("b"), array("out"), TILE)


def persistent(n: int, *, occupancy: int | None, allow_tma: bool) -> Specialization:
    case = Case(
        "rmsnorm.static_persistent",
        (16384, n),
        "bfloat16",
        Hints(occupancy=occupancy),
        (("allow_tma", allow_tma),),
    )
    return get(case.kernel).specialise(case)


def traced(tracer: Tracer, spec: Specialization, arch: str, version: str = "13.2") -> str:
    outcome = tracer.trace(spec, arch, version, 60)
    assert outcome.bytecode_sha256 is not None, outcome.message
    return outcome.bytecode_sha256


def compilers_running(token: str) -> list[int]:
    """Compilers that the supervisor with this token started; others may run on this machine too."""
    found = []
    for pid in bearers(token):
        try:
            name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            continue
        if os.path.basename(name) in (b"tileiras", b"ptxas"):
            found.append(pid)
    return found


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


# --- trace ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", FRONTENDS)
@pytest.mark.parametrize("name", ["static_persistent", "multi_wave_reload", "multi_wave_cached", "tiled"])
def test_every_frontend_traces_every_shipped_kernel(
    tracers: dict[str, Tracer], version: str, name: str
) -> None:
    case = Case(f"rmsnorm.{name}", (16384, 512), "bfloat16", Hints(occupancy=16))
    for arch in ("sm_90", "sm_120"):
        outcome = tracers[version].trace(get(case.kernel).specialise(case), arch, "13.2", 60)
        assert outcome.status == "ok", outcome.message
        assert outcome.symbol is not None and outcome.symbol.startswith(f"{name}_Kt1_A2bf16")


@pytest.mark.parametrize("version", FRONTENDS)
def test_bytecode_depends_on_neither_store_nor_checkout_nor_history(
    tracers: dict[str, Tracer],
    provisioner: Provisioner,
    shared: Supervisor,
    results: Cache,
    tmp_path: Path,
    version: str,
) -> None:
    """A tile's methods drag cuda.tile's own file into the debug information."""
    frontend = provisioner.frontend(version)
    elsewhere = tmp_path / "another place" / "frontend"
    shutil.copytree(frontend.root, elsewhere)
    copied = tmp_path / "checkout" / "field_kernels.py"
    copied.parent.mkdir()
    shutil.copyfile(FIELD, copied)

    parameters = (array("a"), array("out"), TILE)
    warm = traced(tracers[version], field("methods", *parameters), "sm_90")
    other = Tracer(Frontend(str(elsewhere), version, f"copy of {version}"), shared, results)
    try:
        assert traced(other, field("methods", *parameters, path=copied), "sm_90") == warm
    finally:
        other.close()
    bytecode = results.get(warm) or b""
    assert b"field_kernels.py" in bytecode
    assert (b"_stub.py" in bytecode) == (version != "1.3.0")
    for name in (frontend.root, str(FIELD.parent), str(tmp_path), "site-packages"):
        assert name.encode() not in bytecode


def test_equal_frontends_give_equal_bytecode(tracers: dict[str, Tracer]) -> None:
    new, old = (traced(tracers[version], field("add", *ADD), "sm_90") for version in ("1.7.0", "1.6.0"))
    assert new == old


def test_hints_in_the_file_stay_unless_overridden(tracers: dict[str, Tracer]) -> None:
    parameters = (array("a"), array("out"), TILE)

    def digest(hints: Hints) -> str:
        return traced(tracers["1.5.0"], field("hinted", *parameters, hints=hints), "sm_100")

    as_written = digest(Hints())
    assert digest(Hints(occupancy=4, num_ctas=2)) == as_written
    assert digest(Hints(occupancy=8)) != as_written
    assert digest(Hints(num_ctas=1)) != as_written


def test_a_kernel_made_by_a_factory_is_traced(tracers: dict[str, Tracer]) -> None:
    fp8 = (array("a", "float8_e4m3fn", 2, 1), array("b", "float8_e4m3fn", 2, 1))
    parameters = (*fp8, Constant("ROWS", 64), Constant("WIDTH", 128))
    digests = {
        traced(tracers["1.5.0"], field(name, *parameters), "sm_120") for name in ("zero", "negative_infinity")
    }
    assert len(digests) == 2


def status(tracer: Tracer, spec: Specialization, arch: str = "sm_120", version: str = "13.2") -> TraceOutcome:
    return tracer.trace(spec, arch, version, 60)


@pytest.mark.parametrize("version", FRONTENDS)
def test_an_internal_error_of_the_frontend_is_no_fault_of_the_kernel(
    tracers: dict[str, Tracer], version: str
) -> None:
    spec = field("carried_scalar", array("out", "int32"), ScalarParameter("stop", "int32"))
    outcome = status(tracers[version], spec)
    if version < "1.6":
        assert (outcome.status, outcome.error_type) == ("internal", "KeyError")
        assert outcome.message == "KeyError: 'c.0'"
        assert "cuda/tile/_" in outcome.traceback
    else:
        assert outcome.status == "ok"


@pytest.mark.parametrize("version", FRONTENDS)
def test_a_user_error_is_located_in_the_users_file(tracers: dict[str, Tracer], version: str) -> None:
    outcome = status(tracers[version], field("wrong_type", array("a"), array("out"), TILE))
    line = (
        FIELD.read_text()
        .splitlines()
        .index('    ct.store(out, (0,), ct.load(a, (0,), shape=(TILE,)) + "text")')
    )
    assert outcome.status == "error"
    assert f'"{FIELD}", line {line + 1}' in outcome.message
    assert '+ "text"' in outcome.message


def test_a_feature_of_newer_bytecode_is_unsupported(tracers: dict[str, Tracer]) -> None:
    spec = field("advanced_index", array("a", "float32", 3), Constant("WIDTH", 32))
    for version in ("13.1", "13.2"):
        outcome = status(tracers["1.5.0"], spec, version=version)
        assert outcome.status == "unsupported"
        assert "requires tileiras 13.3" in outcome.message
    assert status(tracers["1.5.0"], spec, version="13.3").status == "ok"
    older = status(tracers["1.3.0"], spec, version="13.3")
    assert (older.status, older.message) == (
        "unsupported",
        "cuda-tile 1.3.0 cannot write bytecode 13.3, only 13.1, 13.2",
    )


@pytest.mark.parametrize("version", FRONTENDS)
def test_an_architecture_with_a_suffix_is_unsupported(tracers: dict[str, Tracer], version: str) -> None:
    outcome = status(tracers[version], field("add", *ADD), arch="sm_121a")
    assert (outcome.status, outcome.error_type) == ("unsupported", "ValueError")


def test_what_an_older_frontend_lacks_is_unsupported(tracers: dict[str, Tracer]) -> None:
    fixed = replace(array("a"), shape_constant=(256,))
    spec = replace(field("add", fixed, *ADD[1:]), calling_convention="cutile_python_v2")
    for version in FRONTENDS:
        outcome = status(tracers[version], spec)
        expected = "unsupported" if version < "1.5" else "ok"
        assert outcome.status == expected, outcome.message


# --- compile ----------------------------------------------------------------------------------


@pytest.mark.parametrize("toolkit", ["13.1.0", "13.2.2", "13.3.1", "13.4.3", "13.5.0"])
def test_every_backend_compiles_at_every_level(
    tracers: dict[str, Tracer], provisioner: Provisioner, compiler: Compiler, results: Cache, toolkit: str
) -> None:
    sha256 = traced(tracers["1.5.0"], field("add", *ADD), "sm_120", "13.1")
    for level in (0, 1, 2, 3):
        outcome = compiler.compile(backend(provisioner, toolkit), sha256, "sm_120", level, 60)
        assert outcome.status == "ok", outcome.stderr
        assert outcome.cubin_sha256 is not None
        assert (results.get(outcome.cubin_sha256) or b"").startswith(b"\x7fELF")


def test_a_corrupt_cubin_is_rebuilt_bit_for_bit(
    tracers: dict[str, Tracer], provisioner: Provisioner, compiler: Compiler, results: Cache
) -> None:
    sha256 = traced(tracers["1.5.0"], field("add", *ADD), "sm_90")
    chosen = backend(provisioner, "13.4.3")
    first = compiler.compile(chosen, sha256, "sm_90", 3, 60)
    assert first.cubin_sha256 is not None
    assert compiler.compile(chosen, sha256, "sm_90", 3, 60).cached
    path = results.root / "blobs" / first.cubin_sha256[:2] / first.cubin_sha256
    path.write_bytes(path.read_bytes()[:-1])
    again = compiler.compile(chosen, sha256, "sm_90", 3, 60)
    assert (again.cached, again.cubin_sha256) == (False, first.cubin_sha256)
    assert results.get(first.cubin_sha256) is not None


def test_an_architecture_the_backend_lacks_is_exit_code_1(
    tracers: dict[str, Tracer], provisioner: Provisioner, compiler: Compiler
) -> None:
    sha256 = traced(tracers["1.5.0"], field("add", *ADD), "sm_90", "13.1")
    outcome = compiler.compile(backend(provisioner, "13.2.2"), sha256, "sm_90", 3, 60)
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert "Cannot find option named 'sm_90'" in outcome.stderr


def test_tileiras_without_end_is_a_timeout_held_by_tileiras(
    tracers: dict[str, Tracer], provisioner: Provisioner, shared: Supervisor, compiler: Compiler
) -> None:
    """bf16, tile 2 x 32768, sm_120, TMA on: 13.3 never ends, 13.4 needs a second or two."""
    sha256 = traced(tracers["1.5.0"], persistent(32768, occupancy=None, allow_tma=True), "sm_120")
    outcome = compiler.compile(backend(provisioner, "13.3.1"), sha256, "sm_120", 3, 6)
    assert (outcome.status, outcome.holder) == ("timeout", "tileiras")
    assert [usage.name for usage in outcome.usage] == ["tileiras"]
    assert outcome.cpu_seconds > 1 and outcome.peak_rss_bytes > 100 << 20
    assert len(outcome.rss_over_time) >= 5
    assert compilers_running(shared._token) == []
    fixed = compiler.compile(backend(provisioner, "13.4.3"), sha256, "sm_120", 3, 60)
    assert fixed.status == "ok", fixed.stderr


@pytest.mark.timeout(600)
def test_a_deadline_that_strikes_in_ptxas_names_ptxas_and_kills_it(
    tracers: dict[str, Tracer],
    provisioner: Provisioner,
    shared: Supervisor,
    compiler: Compiler,
    results: Cache,
    tmp_path: Path,
) -> None:
    """N=16, sm_90, no TMA, default occupancy: 13.3.1 ends, and spends its last part in ptxas.

    When ptxas begins depends on the machine and on what else it does, so the whole is measured first
    and the deadline is moved until it strikes there.
    """
    sha256 = traced(tracers["1.5.0"], persistent(16, occupancy=None, allow_tma=False), "sm_90")
    bytecode = results.get(sha256) or b""
    chosen = backend(provisioner, "13.3.1")
    whole = compiler.compile(chosen, sha256, "sm_90", 3, 100)
    assert whole.status == "ok", (whole.stderr, whole.holder)
    cpu = {usage.name: usage.cpu_seconds for usage in whole.usage}
    assert cpu["ptxas"] > 0.5
    early, late = whole.wall_seconds * (1 - cpu["ptxas"] / whole.cpu_seconds), whole.wall_seconds
    for attempt in range(5):
        fresh = Cache(tmp_path / str(attempt))
        fresh.put(bytecode)
        deadline = (early + late) / 2
        outcome = Compiler(shared, fresh).compile(chosen, sha256, "sm_90", 3, deadline)
        if outcome.holder == "ptxas":
            break
        if outcome.status == "ok":
            late = deadline
        else:
            early, late = deadline, late * 1.2
    assert (outcome.status, outcome.holder) == ("timeout", "ptxas")
    assert {usage.name for usage in outcome.usage} == {"tileiras", "ptxas"}
    assert compilers_running(shared._token) == []


HARNESS = """
    import sys, json, threading
    from pathlib import Path
    from harness.compile.backend import Compiler
    from harness.compile.cache import Cache
    from harness.model import Backend
    from harness.process import Supervisor
    backend = Backend.from_json(json.loads(sys.argv[1]))
    with Supervisor() as supervisor:
        print(supervisor._token, flush=True)
        Compiler(supervisor, Cache(Path(sys.argv[2]))).compile(backend, sys.argv[3], "sm_120", 3, 100)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_harness_killed_in_the_middle_of_a_compile_leaves_nothing(
    tracers: dict[str, Tracer], provisioner: Provisioner, results: Cache, number: signal.Signals
) -> None:
    sha256 = traced(tracers["1.5.0"], persistent(32768, occupancy=None, allow_tma=True), "sm_120")
    chosen = json.dumps(backend(provisioner, "13.3.1").to_json())
    harness = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HARNESS), chosen, str(results.root), sha256],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert harness.stdout is not None
    token = harness.stdout.readline().strip()
    assert until(lambda: bool(compilers_running(token)))
    (scratch,) = {Path(os.readlink(f"/proc/{pid}/cwd")) for pid in compilers_running(token)}
    harness.send_signal(number)
    harness.wait(20)
    assert until(lambda: not compilers_running(token))
    assert until(lambda: not scratch.exists())
    harness.stdout.close()


# --- diagnose ---------------------------------------------------------------------------------


def test_a_ptxas_older_than_nvvm_is_seen_through_the_catch_all(
    tracers: dict[str, Tracer], provisioner: Provisioner, compiler: Compiler, results: Cache
) -> None:
    sha256 = traced(tracers["1.5.0"], field("add", *ADD), "sm_120", "13.1")
    mixed = provisioner.backend(Toolchain("mix", "1.5.0", "13.4.3", ptxas="13.2.2"))
    outcome = compiler.compile(mixed, sha256, "sm_120", 3, 60)
    assert outcome.exit_code == 5
    answer = compiler.diagnose(mixed, sha256, "sm_120", 3, 60)
    assert answer["ptxas_called"] and answer["ptxas_exit_code"] not in (0, None)
    assert "Unsupported .version" in answer["ptxas_stderr"]
    assert b".target sm_120a" in (results.get(answer["ptx_sha256"]) or b"")


def test_a_fault_inside_tileiras_never_calls_ptxas(
    tracers: dict[str, Tracer], provisioner: Provisioner, compiler: Compiler
) -> None:
    fp8 = (array("a", "float8_e4m3fn", 2, 1), array("b", "float8_e4m3fn", 2, 1))
    spec = field("negative_infinity", *fp8, Constant("ROWS", 64), Constant("WIDTH", 128))
    sha256 = traced(tracers["1.5.0"], spec, "sm_120")
    chosen = backend(provisioner, "13.4.3")
    assert compiler.compile(chosen, sha256, "sm_120", 3, 60).exit_code == 5
    answer = compiler.diagnose(chosen, sha256, "sm_120", 3, 60)
    assert (answer["ptxas_called"], answer["ptx_sha256"]) == (False, None)


def test_the_shim_passes_a_sound_ptxas_through(
    tracers: dict[str, Tracer], provisioner: Provisioner, compiler: Compiler, results: Cache
) -> None:
    sha256 = traced(tracers["1.5.0"], field("add", *ADD), "sm_120", "13.1")
    answer = compiler.diagnose(backend(provisioner, "13.3.1"), sha256, "sm_120", 3, 60)
    assert (answer["ptxas_called"], answer["ptxas_exit_code"], answer["ptxas_stderr"]) == (True, 0, "")
    assert b".version" in (results.get(answer["ptx_sha256"]) or b"")
