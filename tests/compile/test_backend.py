"""Faults of compilers, played by fakes. What must work is in test_real_compilers.py."""

from __future__ import annotations

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compile.backend import Compiler, _key
from harness.compile.cache import Cache, CacheError
from harness.compile.shim import compose_with_shim
from harness.model import Backend, CompileOutcome
from harness.process import Cancelled, StartError, Supervisor
from harness.process.warden import all_pids


@pytest.fixture
def compiler(supervisor: Supervisor, cache: Cache) -> Compiler:
    return Compiler(supervisor, cache)


class Asking:
    """Compile a fault by its name."""

    def __init__(self, compiler: Compiler, cache: Cache, backend: Backend) -> None:
        self.compiler, self.cache, self.backend = compiler, cache, backend

    def __call__(
        self, fault: str, deadline: float = 20, arch: str = "sm_90", extra: tuple[str, ...] = ()
    ) -> CompileOutcome:
        sha256 = self.cache.put(fault.encode())
        return self.compiler.compile(self.backend, sha256, arch, 3, deadline, extra)

    @property
    def calls(self) -> list[str]:
        path = Path(self.backend.root) / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def ask(compiler: Compiler, cache: Cache, fake_backend: Backend) -> Asking:
    return Asking(compiler, cache, fake_backend)


def processes_of(backend: Backend) -> list[int]:
    """Live processes that run anything of this backend."""
    found = []
    for pid in all_pids():
        try:
            if backend.root.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def test_the_compiler_is_called_as_cuda_tile_calls_it(ask: Asking) -> None:
    ask("fail", arch="sm_120", extra=("--sanitize=memcheck",))
    assert ask.calls == [
        "kernel.tileirbc -o kernel.cubin --gpu-name sm_120 -O3 --lineinfo --sanitize=memcheck"
    ]


def test_a_failure_keeps_exit_code_and_words(ask: Asking) -> None:
    outcome = ask("fail")
    assert (outcome.status, outcome.exit_code, outcome.signal) == ("failed", 5, None)
    assert outcome.stderr == "error: failed to compile Tile IR program\n"
    assert outcome.cubin_sha256 is None and not outcome.cached
    assert outcome.cpu_seconds > 0 and outcome.wall_seconds > 0 and outcome.deadline_seconds == 20


def test_words_are_kept_legible(ask: Asking) -> None:
    assert ask("speaks_in_escapes").stderr == "error: \\x1b[31mred\\x00\n"


@pytest.mark.parametrize(
    "change", [{"status": "oj"}, {"usage": [1]}, {"cpu_over_time": 7}, {"exit": 1, "status": None}]
)
def test_an_outcome_that_cannot_be_read_is_made_again(ask: Asking, change: dict[str, Any]) -> None:
    first = ask("fail")
    key = _key(ask.backend, ask.cache.put(b"fail"), "sm_90", 3, ())
    ask.cache.remember("compile", key, {**first.to_json(), **change})
    again = ask("fail")
    assert (again.cached, again.exit_code, len(ask.calls)) == (False, 5, 2)


def test_a_crash_is_a_signal(ask: Asking) -> None:
    outcome = ask("crash")
    assert (outcome.status, outcome.exit_code, outcome.signal) == ("failed", None, 11)


def test_the_environment_is_clean(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD_NOT", "1")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    names = ask("environment").stderr
    assert names == "['HOME', 'LC_ALL', 'PATH', 'TILE_HARNESS_RUN', 'TMPDIR']\n"


@pytest.mark.parametrize(("fault", "holder"), [("burn", "tileiras"), ("hang_in_ptxas", "ptxas")])
def test_a_deadline_names_the_component_and_leaves_no_process(ask: Asking, fault: str, holder: str) -> None:
    outcome = ask(fault, deadline=0.8)
    assert (outcome.status, outcome.holder, outcome.signal) == ("timeout", holder, 9)
    assert holder in {usage.name for usage in outcome.usage}
    assert outcome.cpu_seconds > 0.05
    assert outcome.rss_over_time and outcome.cpu_over_time
    assert not outcome.unkillable
    assert processes_of(ask.backend) == []


def test_a_ptxas_left_by_a_crashed_tileiras_is_killed(ask: Asking) -> None:
    outcome = ask("orphan")
    assert (outcome.status, outcome.signal) == ("failed", 6)
    assert processes_of(ask.backend) == []


def test_a_flood_of_words_is_cut(ask: Asking) -> None:
    outcome = ask("flood")
    assert outcome.exit_code == 5
    assert "bytes cut ...]" in outcome.stdout and len(outcome.stdout) < 2_000_000
    assert outcome.stderr.endswith("error: failed to compile Tile IR program\n")


@pytest.mark.parametrize(
    ("fault", "words"), [("garbage", "wrote 11 bytes that are not a cubin"), ("no_output", "wrote no cubin")]
)
def test_success_without_a_cubin_is_a_failure(ask: Asking, fault: str, words: str) -> None:
    outcome = ask(fault)
    assert (outcome.status, outcome.exit_code, outcome.cubin_sha256) == ("failed", 0, None)
    assert outcome.stderr == f"tileiras ended with exit code 0 but {words}\n"


def test_a_failure_is_remembered_by_all_that_matters(ask: Asking) -> None:
    first = ask("fail")
    again = ask("fail")
    assert again == replace(first, cached=True)
    assert len(ask.calls) == 1
    ask("fail", arch="sm_120")
    ask("fail", extra=("--sanitize=memcheck",))
    ask.backend = replace(ask.backend, ptxas=replace(ask.backend.ptxas, sha256="f" * 64))
    ask("fail")
    assert len(ask.calls) == 4
    ask.backend = replace(ask.backend, ptxas=replace(ask.backend.ptxas, version="another label"))
    ask("fail")
    assert len(ask.calls) == 4, "equal bytes are an equal backend, whatever the version label"


def test_a_timeout_answers_only_for_shorter_deadlines(ask: Asking) -> None:
    assert ask("burn", deadline=0.4).status == "timeout"
    assert ask("burn", deadline=0.3).cached
    assert not ask("burn", deadline=0.5).cached
    assert len(ask.calls) == 2


@pytest.mark.parametrize("fault", ["killed", "full_disk", "terminated", "cannot_write"])
def test_what_the_machine_did_is_not_remembered(ask: Asking, fault: str) -> None:
    assert ask(fault).status == "failed"
    assert not ask(fault).cached
    assert len(ask.calls) == 2


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_a_lost_cubin_is_compiled_again(ask: Asking, damage: str) -> None:
    first = ask("writes_elf")
    assert first.status == "ok" and first.cubin_sha256 is not None
    assert ask("writes_elf").cached
    path = ask.cache.root / "blobs" / first.cubin_sha256[:2] / first.cubin_sha256
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"\x7fELF broken")
    again = ask("writes_elf")
    assert (again.cached, again.cubin_sha256, len(ask.calls)) == (False, first.cubin_sha256, 2)
    assert ask.cache.get(first.cubin_sha256) == b"\x7fELF of sm_90"


def test_threads_that_ask_the_same_compile_once(ask: Asking) -> None:
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda _: ask("fail"), range(6)))
    assert len(ask.calls) == 1
    assert sorted(outcome.cached for outcome in outcomes) == [False] + [True] * 5


def test_a_cancel_ends_a_compile_at_once(ask: Asking, supervisor: Supervisor) -> None:
    threading.Timer(0.4, supervisor.cancel).start()
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(ask, "burn", 60) for _ in range(2)]
        for one in waiting:
            with pytest.raises(Cancelled):
                one.result(20)
    assert time.monotonic() - begun < 5
    assert processes_of(ask.backend) == []


def test_bytecode_that_is_gone_is_one_sentence(compiler: Compiler, fake_backend: Backend) -> None:
    with pytest.raises(
        CacheError, match=r"^bytecode 000000000000 is missing from the cache: run again to trace it$"
    ):
        compiler.compile(fake_backend, "0" * 64, "sm_90", 3, 5)


def test_a_backend_without_tileiras_is_one_sentence(ask: Asking) -> None:
    (Path(ask.backend.root) / "bin" / "tileiras").unlink()
    with pytest.raises(StartError, match=r"^cannot start .*/bin/tileiras: No such file or directory$"):
        ask("fail")


def test_a_diagnosis_tells_that_ptxas_was_never_called(ask: Asking) -> None:
    answer = ask.compiler.diagnose(ask.backend, ask.cache.put(b"fail"), "sm_90", 3, 20)
    assert answer == {
        "ptxas_called": False,
        "ptxas_exit_code": None,
        "ptxas_stderr": "",
        "ptx_sha256": None,
        "timed_out": False,
        "missing": ["libnvvm"],
        "components": {"tileiras": "0.0.fake", "nvvm": "0.0.fake", "ptxas": "0.0.fake"},
    }


def test_a_diagnosis_tells_what_ptxas_said_and_keeps_the_ptx(ask: Asking) -> None:
    sha256 = ask.cache.put(b"ptxas_fails")
    answer = ask.compiler.diagnose(ask.backend, sha256, "sm_90", 3, 20)
    assert (answer["ptxas_called"], answer["ptxas_exit_code"]) == (True, 255)
    assert answer["ptxas_stderr"] == "ptxas fatal   : Unresolved extern function 'nowhere'\n"
    assert ask.cache.get(answer["ptx_sha256"]) == b".version 9.3\n"
    assert ask.compiler.diagnose(ask.backend, sha256, "sm_90", 3, 20) == answer
    assert len(ask.calls) == 0, "the backend itself is left alone: calls go to its shadow"


@pytest.mark.parametrize(
    ("fault", "code"),
    [("ptxas_exits_139", 139), ("ptxas_dies_of_SIGSEGV", -11), ("ptxas_dies_of_SIGTERM", -15)],
)
def test_a_diagnosis_tells_exit_codes_from_signals(ask: Asking, fault: str, code: int) -> None:
    sha256 = ask.cache.put(fault.encode())
    answer = ask.compiler.diagnose(ask.backend, sha256, "sm_90", 3, 20)
    assert (answer["ptxas_called"], answer["ptxas_exit_code"]) == (True, code)


def test_through_the_shim_a_signal_stays_a_signal(ask: Asking, tmp_path: Path) -> None:
    root = compose_with_shim(Path(ask.backend.root), tmp_path / "it's a tree")
    codes = [
        subprocess.run([root / "bin" / "ptxas", *words], check=False).returncode
        for words in (("exit", "0"), ("exit", "255"), ("die", "11"), ("die", "9"))
    ]
    assert codes == [0, 255, -11, -9]


def test_a_ptxas_that_somebody_stopped_is_not_remembered(ask: Asking) -> None:
    sha256 = ask.cache.put(b"ptxas_dies_of_SIGTERM")
    ask.compiler.diagnose(ask.backend, sha256, "sm_90", 3, 20)
    assert not (ask.cache.root / "memo" / "diagnosis").exists()


def test_a_diagnosis_that_cannot_be_read_is_made_again(ask: Asking) -> None:
    sha256 = ask.cache.put(b"ptxas_fails")
    answer = ask.compiler.diagnose(ask.backend, sha256, "sm_90", 3, 20)
    ask.cache.remember("diagnosis", _key(ask.backend, sha256, "sm_90", 3, ()), {"ptxas_called": True})
    assert ask.compiler.diagnose(ask.backend, sha256, "sm_90", 3, 20) == answer


def test_a_diagnosis_has_a_deadline_too(ask: Asking) -> None:
    answer = ask.compiler.diagnose(ask.backend, ask.cache.put(b"hang_in_ptxas"), "sm_90", 3, 0.6)
    assert (answer["ptxas_called"], answer["ptxas_exit_code"], answer["timed_out"]) == (True, None, True)
    assert processes_of(ask.backend) == []
