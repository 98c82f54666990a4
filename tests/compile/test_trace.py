"""The tracer's protocol, memory and faults, on a fake frontend. Real ones are in test_real_compilers.py."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.compile.cache import Cache
from harness.compile.trace import PROTOCOL, Tracer
from harness.model import (
    Array,
    Constant,
    Frontend,
    Hints,
    KernelSource,
    Scalar,
    ScalarParameter,
    Specialization,
    TraceOutcome,
    TupleParameter,
    canonical_json,
)
from harness.process import Cancelled, Supervisor

PLAIN = Hints()
FAKE = Path(__file__).parents[1] / "fakes" / "frontend"

KERNELS = """
import cuda.tile as ct

print("modules may print")

def kernel(name):
    def body(x): pass
    body.__name__ = name
    return ct.kernel(body)

not_a_kernel = 7
for name in (
    "fine", "talks", "hang", "crash", "exits", "key_error", "type_error", "unsupported", "internal", "number"
):
    globals()[name] = kernel(name)
"""


@pytest.fixture
def frontend() -> Frontend:
    return Frontend(str(FAKE), "0.0.fake", "f" * 64)


@pytest.fixture
def tracer(frontend: Frontend, supervisor: Supervisor, cache: Cache) -> Iterator[Tracer]:
    tracer = Tracer(frontend, supervisor, cache)
    yield tracer
    tracer.close()


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., Specialization]:
    path = tmp_path / "user's kernels.py"
    path.write_text(KERNELS)

    def make(function: str, *parameters: object, hints: Hints = PLAIN, **settings: object) -> Specialization:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        source = KernelSource(str(path), "kernels/canonical.py", function, digest)
        given = parameters or (ScalarParameter("x", "int32"),)
        return Specialization(source, given, hints, **settings)  # type: ignore[arg-type]

    return make


Make = Callable[..., Specialization]


def trace(tracer: Tracer, spec: Specialization, deadline: float = 20, arch: str = "sm_90") -> TraceOutcome:
    return tracer.trace(spec, arch, "13.2", deadline)


def test_bytecode_is_kept_and_names_only_the_canonical_file(tracer: Tracer, cache: Cache, spec: Make) -> None:
    outcome = trace(tracer, spec("fine", hints=Hints(occupancy=4, opt_level=1)))
    assert (outcome.status, outcome.symbol, outcome.bytecode_version) == ("ok", "fine_mangled", "13.2")
    assert outcome.bytecode_sha256 is not None
    assert cache.get(outcome.bytecode_sha256) == (
        b"fine kernels/canonical.py {'occupancy': 4, 'opt_level': 1} sm_90 13.2"
    )
    assert outcome.wall_seconds > 0 and not outcome.cached
    assert tracer.cpu_seconds > 0.01


def test_a_hint_that_this_version_refuses_is_unsupported(tracer: Tracer, spec: Make) -> None:
    """A matrix takes what the newest frontend does."""
    outcome = trace(tracer, spec("fine", hints=Hints(occupancy=32)))
    assert (outcome.status, outcome.message) == ("unsupported", "occupancy should be at most 16")
    outcome = trace(tracer, spec("fine", hints=Hints(num_worker_warps=8)))
    told = "cuda-tile 0.0.fake knows no hint 'num_worker_warps'"
    assert (outcome.status, outcome.message) == ("unsupported", told)


def test_hints_left_out_stay_as_written(tracer: Tracer, cache: Cache, spec: Make) -> None:
    outcome = trace(tracer, spec("fine"))
    assert outcome.bytecode_sha256 is not None
    assert b" {} " in (cache.get(outcome.bytecode_sha256) or b"")


def test_a_warm_cache_starts_no_process(
    tracer: Tracer, frontend: Frontend, supervisor: Supervisor, cache: Cache, spec: Make
) -> None:
    first = trace(tracer, spec("fine"))
    failed = trace(tracer, spec("type_error"))
    assert tracer.bytecode_versions() == ("13.1", "13.2")
    second = Tracer(frontend, supervisor, cache, python="/no/such/python")
    again = trace(second, spec("fine"))
    assert again.cached and again.bytecode_sha256 == first.bytecode_sha256
    assert trace(second, spec("type_error")).message == failed.message
    assert second.bytecode_versions() == ("13.1", "13.2")
    assert second.cpu_seconds == 0


def test_lost_bytecode_is_traced_again(tracer: Tracer, cache: Cache, spec: Make) -> None:
    sha256 = trace(tracer, spec("fine")).bytecode_sha256
    assert sha256 is not None
    (cache.root / "blobs" / sha256[:2] / sha256).write_bytes(b"corrupt")
    again = trace(tracer, spec("fine"))
    assert (again.cached, again.bytecode_sha256) == (False, sha256)
    assert cache.get(sha256) is not None


def test_a_frontend_that_knows_its_versions_is_not_asked(supervisor: Supervisor, cache: Cache) -> None:
    frontend = Frontend("/nowhere", "1.5.0", "a" * 64, ("13.1", "13.3"))
    assert Tracer(frontend, supervisor, cache).bytecode_versions() == ("13.1", "13.3")


def test_a_user_error_names_the_users_file(tracer: Tracer, spec: Make) -> None:
    outcome = trace(tracer, spec("type_error"))
    assert (outcome.status, outcome.error_type) == ("error", "TileTypeError")
    assert outcome.message == f'wrong type\n  "{spec("fine").source.path}", line 3'
    assert "TileTypeError" in outcome.traceback and "canonical" not in outcome.traceback


@pytest.mark.parametrize(
    ("name", "status", "error_type", "message"),
    [
        ("unsupported", "unsupported", "TileUnsupportedFeatureError", "this requires tileiras 13.9 or later"),
        ("key_error", "internal", "KeyError", "KeyError: 'c.0'"),
        ("internal", "internal", "TileInternalError", "cannot happen"),
    ],
)
def test_faults_are_told_apart(
    tracer: Tracer, spec: Make, name: str, status: str, error_type: str, message: str
) -> None:
    outcome = trace(tracer, spec(name))
    assert (outcome.status, outcome.error_type, outcome.message) == (status, error_type, message)
    assert trace(tracer, spec("fine")).status == "ok"


def test_an_architecture_the_frontend_cannot_read_is_unsupported(tracer: Tracer, spec: Make) -> None:
    outcome = trace(tracer, spec("number"), arch="sm_121a")
    assert outcome.status == "unsupported"
    assert outcome.message == (
        "cuda-tile 0.0.fake takes no architecture suffix: name 'sm_121' instead of 'sm_121a'"
    )
    assert "invalid literal for int() with base 10: '121a'" in outcome.traceback
    assert trace(tracer, spec("number"), arch="sm_121").status == "ok"


def test_bytecode_the_frontend_cannot_write_is_unsupported(tracer: Tracer, spec: Make) -> None:
    outcome = tracer.trace(spec("fine"), "sm_90", "13.4", 20)
    assert (outcome.status, outcome.message) == (
        "unsupported",
        "cuda-tile 0.0.fake cannot write bytecode 13.4, only 13.1, 13.2",
    )


ARRAY = Array("x", "float32", (8, None), (1, 1), (None, 1), (4, 1))


@pytest.mark.parametrize(
    ("parameter", "settings", "message"),
    [
        (ARRAY, {}, "cuda-tile 0.0.fake knows no constant array shapes (parameter 'x')"),
        (TupleParameter("x", ()), {}, "cuda-tile 0.0.fake knows no tuple parameters (parameter 'x')"),
        (ScalarParameter("x", "int3"), {}, "cuda-tile 0.0.fake has no dtype 'int3' (parameter 'x')"),
        (
            Constant("x", 1),
            {"calling_convention": "cutile_python_v9"},
            "cuda-tile 0.0.fake has no calling convention 'cutile_python_v9'",
        ),
    ],
)
def test_what_this_version_lacks_is_unsupported(
    tracer: Tracer, spec: Make, parameter: object, settings: dict[str, Scalar], message: str
) -> None:
    outcome = trace(tracer, spec("fine", parameter, **settings))
    assert (outcome.status, outcome.message) == ("unsupported", message)


def test_requests_that_do_not_fit_are_errors(tracer: Tracer, spec: Make) -> None:
    def message(*arguments: object, stage: str = "trace") -> str:
        outcome = trace(tracer, spec(*arguments))
        assert (outcome.status, outcome.stage) == ("error", stage)
        return outcome.message

    path = spec("fine").source.path
    assert message("absent") == (
        f"{path} has no 'absent'; its kernels are crash, exits, fine, hang, internal, key_error, number, "
        "talks, type_error, unsupported"
    )
    assert message("not_a_kernel") == (
        f"'not_a_kernel' in {path} is not a kernel but 'int'; decorate it with @ct.kernel"
    )
    assert message("fine", Constant("a", 1), Constant("b", 2), stage="signature") == (
        "kernel 'fine' takes 1 parameters (x), but the signature describes 2 (a, b)"
    )
    assert message("fine", Constant("x", "text"), stage="signature") == (
        "invalid signature: Unexpected constant value type <class 'str'>"
    )


def test_a_file_that_changed_is_an_error_that_is_not_remembered(tracer: Tracer, spec: Make) -> None:
    asked = spec("fine")
    path = Path(asked.source.path)
    path.write_text("changed")
    outcome = trace(tracer, asked)
    assert (outcome.status, outcome.message) == (
        "error",
        f"{path} changed on disk while the run was going on; run again",
    )
    path.write_text(KERNELS)
    assert trace(tracer, asked).status == "ok"
    path.unlink()
    other = trace(tracer, Specialization(KernelSource(str(path), "c.py", "f", "0" * 64), ()))
    assert other.message == f"cannot read {path}: No such file or directory"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Specialization]:
    """A file of the user's own that holds this text."""

    def write(text: str) -> Specialization:
        path = tmp_path / "own.py"
        path.write_text(text)
        source = KernelSource(str(path), "canonical.py", "k", hashlib.sha256(text.encode()).hexdigest())
        return Specialization(source, ())

    return write


Written = Callable[[str], Specialization]


@pytest.mark.parametrize(
    ("text", "error_type", "words"),
    [
        ("def f(:\n", "SyntaxError", "line 1"),
        ("import no_such_module\n", "ModuleNotFoundError", "no_such_module"),
        ("raise SystemExit('bye')\n", "SystemExit", "SystemExit: bye"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt", "KeyboardInterrupt"),
        ("class E(Exception):\n    def __str__(self): raise E()\nraise E()\n", "E", "cannot be made"),
        (r"raise ValueError('\ud800\0\x1b[31m')", "ValueError", r"ValueError: \ud800\x00\x1b[31m"),
        ("raise ValueError('x' * 10**6)\n", "ValueError", "\n...\n"),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_user_error(
    tracer: Tracer, written: Written, text: str, error_type: str, words: str
) -> None:
    outcome = trace(tracer, written(text))
    assert (outcome.status, outcome.error_type, outcome.stage) == ("error", error_type, "import")
    assert words in outcome.message and len(outcome.message) < 20_000
    (outcome.message + outcome.traceback).encode("utf-8")
    assert "tracer_worker.py" not in outcome.traceback, "where the lab called from is not what went wrong"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("import os\nos._exit(0)\n", "exit code 0"),
        ("import os\nos._exit(7)\n", "exit code 7"),
        ("import os\nos.kill(os.getpid(), 11)\n", "SIGSEGV"),
        ("import os\nos.closerange(0, 64)\n", "exit code 120"),
        ("import os, time\nif os.fork() == 0:\n    time.sleep(3)\nos._exit(7)\n", "exit code 7"),
    ],
)
def test_a_module_that_ends_the_process_is_to_blame_itself(
    tracer: Tracer, written: Written, spec: Make, text: str, how: str
) -> None:
    asked = written(text)
    outcome = trace(tracer, asked, deadline=1)
    assert (outcome.status, outcome.stage, outcome.error_type) == ("crash", "import", how)
    assert outcome.message == f"importing {asked.source.path} ended the process ({how})"
    assert trace(tracer, spec("fine")).status == "ok"


def test_a_module_that_loops_is_to_blame_itself(tracer: Tracer, written: Written) -> None:
    asked = written("while True: pass\n")
    outcome = trace(tracer, asked, deadline=0.4)
    assert (outcome.status, outcome.stage) == ("timeout", "import")
    assert outcome.message == f"importing {asked.source.path} did not end within 0.4 s"


def test_a_module_that_forks_gets_one_answer_and_the_next_its_own(
    tracer: Tracer, written: Written, spec: Make
) -> None:
    forks = "import os\nos.fork()\nimport cuda.tile as ct\ndef own(): pass\nk = ct.kernel(own)\n"
    assert trace(tracer, written(forks)).symbol == "own_mangled"
    assert [trace(tracer, spec(name)).symbol for name in ("fine", "talks")] == [
        "fine_mangled",
        "talks_mangled",
    ]


@pytest.mark.parametrize("said", ["no JSON", "[]", '{"status": "ok"}', '{"status": "error", "message": 7'])
def test_what_is_no_answer_is_a_crash(tracer: Tracer, written: Written, spec: Make, said: str) -> None:
    """A module may find the pipe that answers go to."""
    text = "import os\nfor fd in range(3, 12):\n    try: os.write(fd, " + repr(f"{said}\n".encode()) + ")\n"
    outcome = trace(tracer, written(text + "    except OSError: pass\n"))
    assert (outcome.status, outcome.stage) == ("crash", "import")
    assert trace(tracer, spec("fine")).status == "ok"


@pytest.mark.parametrize("change", [{"status": "oj"}, {"status": None}, {"bytecode_sha256": 7}])
def test_an_outcome_that_cannot_be_read_is_traced_again(
    tracer: Tracer, cache: Cache, spec: Make, frontend: Frontend, change: dict[str, object]
) -> None:
    asked = spec("fine")
    first = trace(tracer, asked)
    key = canonical_json([PROTOCOL, frontend.sha256, asked.digest, "sm_90", "13.2"])
    cache.remember("trace", key, {**first.to_json(), **change})
    again = trace(tracer, asked)
    assert (again.cached, again.bytecode_sha256) == (False, first.bytecode_sha256)


def test_a_hang_is_a_timeout_and_the_tracer_is_replaced(tracer: Tracer, spec: Make) -> None:
    trace(tracer, spec("fine"))
    spent = tracer.cpu_seconds
    outcome = trace(tracer, spec("hang"), deadline=0.4)
    assert (outcome.status, outcome.message) == ("timeout", "tracing did not end within 0.4 s")
    assert 0.4 <= outcome.wall_seconds < 5
    assert trace(tracer, spec("talks")).status == "ok"
    assert tracer.cpu_seconds > spent
    assert not trace(tracer, spec("hang"), deadline=0.1).cached


@pytest.mark.parametrize(("name", "how"), [("crash", "SIGSEGV"), ("exits", "exit code 3")])
def test_a_death_is_a_status_and_the_tracer_is_replaced(
    tracer: Tracer, spec: Make, name: str, how: str
) -> None:
    outcome = trace(tracer, spec(name))
    assert (outcome.status, outcome.message, outcome.stage, outcome.error_type) == (
        "crash",
        f"the frontend's process died while tracing ({how})",
        "trace",
        how,
    )
    assert trace(tracer, spec("fine")).status == "ok"


def test_a_tracer_killed_while_idle_is_replaced(tracer: Tracer, spec: Make) -> None:
    trace(tracer, spec("fine"))
    worker = tracer._worker
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)
    while worker.alive:
        time.sleep(0.01)
    assert trace(tracer, spec("talks")).status == "ok"


def test_a_frontend_that_cannot_be_imported_says_so(
    tracer: Tracer, spec: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FRONTEND", "broken")
    assert tracer.bytecode_versions() == ("13.1",)
    outcome = trace(tracer, spec("fine"))
    assert outcome.status == "crash"
    assert outcome.message == (
        "cuda-tile 0.0.fake cannot be imported (ImportError: libfake.so: cannot open shared object file)"
    )
    monkeypatch.delenv("FAKE_FRONTEND")
    assert tracer.bytecode_versions() == ("13.1", "13.2")
    assert trace(tracer, spec("fine")).status == "ok"


def test_threads_share_one_tracer(tracer: Tracer, spec: Make) -> None:
    outcomes: list[TraceOutcome] = []
    asked = [spec("fine", hints=Hints(occupancy=n + 1)) for n in range(12)]
    threads = [threading.Thread(target=lambda s=s: outcomes.append(trace(tracer, s))) for s in asked]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert {outcome.status for outcome in outcomes} == {"ok"}
    assert len({outcome.bytecode_sha256 for outcome in outcomes}) == 12


def test_a_cancel_ends_a_trace_at_once(tracer: Tracer, supervisor: Supervisor, spec: Make) -> None:
    trace(tracer, spec("fine"))
    threading.Timer(0.3, supervisor.cancel).start()
    with pytest.raises(Cancelled):
        trace(tracer, spec("hang"), deadline=60)
    assert tracer._worker is None


def test_the_environment_cannot_steer_the_frontend(
    tracer: Tracer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_TILE_ENABLE_CRASH_DUMP", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = tmp_path / "kernel.py"
    text = "import os, sys\nassert not [n for n in os.environ if 'CUDA_TILE' in n], 'steered'\n"
    text += f"assert {str(tmp_path)!r} not in sys.path\n"
    text += "import cuda.tile as ct\ndef fine(): pass\nk = ct.kernel(fine)\n"
    path.write_text(text)
    source = KernelSource(str(path), "kernel.py", "k", hashlib.sha256(text.encode()).hexdigest())
    assert trace(tracer, Specialization(source, ())).message == ""
