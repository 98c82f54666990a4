from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.process import Cancelled, StartError, Supervisor, warden
from harness.process.group import Group
from harness.process.output import BoundedOutput
from harness.process.warden import TOKEN_VARIABLE, bearers, group_members, stat_fields

PYTHON = [sys.executable, "-ISs", "-c"]


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as supervisor:
        yield supervisor


def python(text: str) -> list[str]:
    return [*PYTHON, textwrap.dedent(text)]


def alive(pid: int) -> bool:
    found = stat_fields(pid)
    return found is not None and found[1][0] not in "ZX"


def until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


# --- run --------------------------------------------------------------------------------------


def test_output_exit_code_and_time_are_kept(supervisor: Supervisor) -> None:
    done = supervisor.run(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), deadline=10
    )
    assert (done.exit_code, done.signal, done.timed_out, done.ok) == (3, None, False, False)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert 0 < done.cpu_seconds < 2
    assert 0 < done.wall_seconds < 5
    assert done.peak_rss_bytes > 1 << 20
    assert done.usage == () and done.holder is None


def test_a_signal_is_not_an_exit_code(supervisor: Supervisor) -> None:
    done = supervisor.run(python("import os; os.kill(os.getpid(), 11)"), deadline=10)
    assert (done.exit_code, done.signal) == (None, 11)


def test_the_environment_is_replaced_not_extended(supervisor: Supervisor) -> None:
    done = supervisor.run(
        python("import os; print(sorted(os.environ))"), deadline=10, env={"A": "1", "LC_ALL": "C"}
    )
    assert done.stdout == f"['A', 'LC_ALL', '{TOKEN_VARIABLE}']\n"


def test_input_is_fed_and_a_reader_who_stops_early_is_no_error(supervisor: Supervisor) -> None:
    big = b"x" * 3_000_000
    done = supervisor.run(python("import sys; print(len(sys.stdin.buffer.read()))"), deadline=10, stdin=big)
    assert done.stdout == "3000000\n"
    done = supervisor.run(python("import os; os.close(0); print('bye')"), deadline=10, stdin=big)
    assert done.stdout == "bye\n"


def test_a_flood_neither_blocks_the_child_nor_fills_memory(supervisor: Supervisor) -> None:
    flood = """
        import os
        os.write(1, b"head")
        for _ in range(400):
            os.write(1, b"x" * 65536)
        os.write(1, b"tail")
    """
    done = supervisor.run(python(flood), deadline=20, max_output=1000)
    assert done.ok
    assert done.stdout.startswith("head") and done.stdout.endswith("tail")
    assert f"[... {400 * 65536 + 8 - 1000} bytes cut ...]" in done.stdout


@given(chunks=st.lists(st.binary(max_size=40), max_size=30), limit=st.integers(2, 100))
def test_bounded_output_keeps_head_and_tail(chunks: list[bytes], limit: int) -> None:
    kept = BoundedOutput(limit)
    for chunk in chunks:
        kept.feed(bytes(byte & 0x7F for byte in chunk))
    whole = bytes(byte & 0x7F for byte in b"".join(chunks)).decode()
    half = limit // 2
    if len(whole) <= 2 * half:
        assert kept.text == whole
    else:
        cut = len(whole) - 2 * half
        assert kept.text == f"{whole[:half]}\n[... {cut} bytes cut ...]\n{whole[-half:]}"


@pytest.mark.parametrize("sample", [True, False])
def test_the_deadline_kills_the_group_and_names_who_held_the_cpu(
    supervisor: Supervisor, sample: bool
) -> None:
    """The parent burns first and then waits for its child: the child holds the CPU at the end."""
    parent = """
        import os, time, sys
        end = time.monotonic() + 0.2
        while time.monotonic() < end: pass
        child = os.fork()
        if child == 0:
            with open("/proc/self/comm", "w") as f: f.write("burner")
            while True: pass
        print(child, flush=True)
        os.wait()
    """
    done = supervisor.run(python(parent), deadline=1.1, sample=sample)
    assert (done.timed_out, done.signal, done.exit_code, done.unkillable) == (
        True,
        signal.SIGKILL,
        None,
        False,
    )
    assert done.holder == "burner"
    assert not alive(int(done.stdout))
    assert 1.1 <= done.wall_seconds < 3
    names = {usage.name: usage for usage in done.usage}
    assert names["burner"].cpu_seconds > 0.05
    assert names["burner"].peak_rss_bytes > 1 << 20
    assert done.cpu_seconds > names["burner"].cpu_seconds, "it counts, though nobody reaped it"
    assert bool(done.rss_over_time) == bool(done.cpu_over_time) == sample
    if sample:
        seconds = [at for at, _ in done.cpu_over_time]
        assert seconds == sorted(seconds) and len(seconds) >= 2
        assert done.cpu_over_time[-1][1] >= done.cpu_over_time[0][1]


def test_where_nobody_burns_the_youngest_process_is_the_holder(supervisor: Supervisor) -> None:
    done = supervisor.run(["/bin/sh", "-c", "sleep 100; true"], deadline=0.5)
    assert done.holder == "sleep"


def test_what_outlives_its_leader_is_killed_and_reported(supervisor: Supervisor) -> None:
    deaf = "import os, signal, time; signal.signal(15, 1); print(os.getpid(), flush=True); time.sleep(99)"
    script = f"""
        import subprocess, sys, time
        child = subprocess.Popen([{sys.executable!r}, "-ISsc", {deaf!r}], stdout=subprocess.PIPE)
        print(child.stdout.readline().decode(), flush=True)
        sys.exit(7)
    """
    done = supervisor.run(python(script), deadline=20)
    assert done.exit_code == 7
    assert done.wall_seconds < 10
    assert len(done.leftovers) == 1 and done.leftovers[0].startswith("python")
    assert not alive(int(done.stdout))


def test_an_escaped_process_delays_nothing_and_dies_with_the_supervisor() -> None:
    """It made its own session and still holds standard output open."""
    with Supervisor() as supervisor:
        script = """
            import os, time
            if os.fork() == 0:
                os.setsid()
                print(os.getpid(), flush=True)
                time.sleep(99)
            time.sleep(0.2)
        """
        done = supervisor.run(python(script), deadline=20)
        assert done.exit_code == 0 and done.wall_seconds < 5
        escaped = int(done.stdout)
        assert alive(escaped)
    assert until(lambda: not alive(escaped))


def test_what_cannot_be_started_is_a_sentence(supervisor: Supervisor, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"^cannot start /no/such/tileiras: No such file or directory$"):
        supervisor.run(["/no/such/tileiras"], deadline=1)
    (tmp_path / "tileiras").write_text("text")
    with pytest.raises(StartError, match=r"^cannot start .*/tileiras: Permission denied$"):
        supervisor.run([tmp_path / "tileiras"], deadline=1)
    with pytest.raises(StartError, match=r"^cannot start .*: embedded null byte$"):
        supervisor.run(["/bin/tr\0ue"], deadline=1)


def test_many_threads_share_a_supervisor(supervisor: Supervisor) -> None:
    with ThreadPoolExecutor(8) as pool:
        outputs = pool.map(lambda i: supervisor.run(["/bin/echo", str(i)], deadline=10).stdout, range(100))
    assert list(outputs) == [f"{i}\n" for i in range(100)]


def test_no_file_descriptors_leak(supervisor: Supervisor) -> None:
    supervisor.run(["/bin/true"], deadline=5)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        supervisor.run(["/bin/true"], deadline=5, stdin=b"x")
        supervisor.spawn(["/bin/cat"]).kill()
    assert len(os.listdir("/proc/self/fd")) == before


def test_cancel_kills_what_runs_and_refuses_what_comes() -> None:
    with Supervisor() as supervisor:
        threading.Timer(0.3, supervisor.cancel).start()
        begun = time.monotonic()
        with pytest.raises(Cancelled):
            supervisor.run(["/bin/sleep", "100"], deadline=100)
        assert time.monotonic() - begun < 5
        assert supervisor.cancelled
        with pytest.raises(Cancelled):
            supervisor.run(["/bin/true"], deadline=1)
        with pytest.raises(Cancelled):
            supervisor.spawn(["/bin/cat"])


# --- spawn ------------------------------------------------------------------------------------


def test_a_worker_answers_line_by_line(supervisor: Supervisor) -> None:
    worker = supervisor.spawn(["/bin/cat"])
    assert worker.alive and worker.exit_code is None
    worker.send(b"one\ntwo\n", 5)
    assert (worker.readline(5), worker.readline(5)) == (b"one", b"two")
    with pytest.raises(TimeoutError):
        worker.readline(0.05)
    big = b"x" * 1_000_000 + b"\n"
    with pytest.raises(TimeoutError):
        worker.send(big, 0.3)
    assert worker.kill() and worker.kill()
    assert (worker.alive, worker.signal, worker.exit_code) == (False, 9, None)


def test_a_worker_that_dies_shows_as_end_of_file_with_its_words(supervisor: Supervisor) -> None:
    worker = supervisor.spawn(python("import sys; input(); sys.exit('last words')"))
    worker.send(b"go\n", 5)
    with pytest.raises(EOFError):
        worker.readline(10)
    assert worker.kill()
    assert worker.stderr_text == "last words\n"
    assert worker.exit_code in (1, None)
    assert worker.cpu_seconds > 0
    with pytest.raises((EOFError, ValueError)):
        worker.send(b"more\n", 1)


def test_a_worker_that_watches_its_input_ends_when_closed(supervisor: Supervisor) -> None:
    worker = supervisor.spawn(["/bin/cat"])
    assert worker.close(5)
    assert (worker.exit_code, worker.signal) == (0, None)
    stubborn = supervisor.spawn(["/bin/sleep", "100"])
    assert stubborn.close(0.1)
    assert stubborn.signal == 9


def test_leaving_the_context_kills_workers() -> None:
    with Supervisor() as supervisor:
        worker = supervisor.spawn(["/bin/sh", "-c", "sleep 100 & sleep 100"])
        assert until(lambda: len(group_members(worker.pid)) == 3)
    assert group_members(worker.pid) == []


# --- scratch and warden -----------------------------------------------------------------------


def test_scratch_is_removed_with_what_is_in_it(supervisor: Supervisor) -> None:
    with supervisor.scratch("x-") as directory:
        (directory / "deep" / "er").mkdir(parents=True)
        (directory / "deep" / "file").write_text("text")
    assert not directory.exists()
    with pytest.raises(KeyError), supervisor.scratch() as directory:
        raise KeyError
    assert not directory.exists()


HARNESS = """
    import os, sys, threading, time
    from harness.process import Supervisor
    supervisor = Supervisor()
    with supervisor.scratch("warden-test-") as directory:
        (directory / "file").write_text("text")
        tree = "import os, time\\nif os.fork(): os.setsid() if os.fork() == 0 else None\\ntime.sleep(99)"
        run = lambda: supervisor.run([sys.executable, "-ISsc", tree], deadline=99)
        runs = threading.Thread(target=run, daemon=True)
        runs.start()
        worker = supervisor.spawn(["/bin/cat"])
        time.sleep(0.5)
        groups = [str(pid) for pid in supervisor._groups]
        print(directory, supervisor._warden._popen.pid, supervisor._token, *groups, flush=True)
        runs.join()
"""


def start_harness() -> tuple[subprocess.Popen[str], Path, int, str, list[int]]:
    harness = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HARNESS)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert harness.stdout is not None
    directory, warden, token, *groups = harness.stdout.readline().split()
    return harness, Path(directory), int(warden), token, [int(group) for group in groups]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_outlives_a_harness_that_is_killed(number: signal.Signals) -> None:
    """A group of two, one that escaped into its own session, a worker, a directory, the warden."""
    harness, directory, warden, token, groups = start_harness()
    try:
        assert len(groups) == 2 and len(bearers(token)) == 4
        assert directory.exists() and alive(warden)
        harness.send_signal(number)
        harness.wait(10)
        assert until(lambda: not bearers(token)), "a process was left"
        assert until(lambda: not any(group_members(group) for group in groups))
        assert until(lambda: not directory.exists()), "the scratch directory was left"
        assert until(lambda: not alive(warden)), "the warden was left"
    finally:
        harness.kill()
        harness.stdout.close()  # type: ignore[union-attr]


def test_a_warden_that_died_is_replaced_and_told_everything() -> None:
    with Supervisor() as supervisor, supervisor.scratch() as directory:
        worker = supervisor.spawn(["/bin/cat"])
        first = supervisor._warden._popen
        assert first is not None
        first.kill()
        first.wait(5)
        supervisor.run(["/bin/true"], deadline=5)
        second = supervisor._warden._popen
        assert second is not None and second.pid != first.pid
        assert second.stdin is not None
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), second.stdin.fileno())  # as if the harness had died
        second.wait(10)
        assert until(lambda: not worker.alive)
        assert until(lambda: not directory.exists())


def test_the_warden_spares_a_group_whose_number_was_reused() -> None:
    """Registered with another start time than the process that bears the number now."""
    bystander = subprocess.Popen(["/bin/sleep", "100"], start_new_session=True)
    script = Path(sys.modules["harness.process.warden"].__file__ or "")
    try:
        line = f"+{bystander.pid} 1\n".encode()
        subprocess.run([sys.executable, "-IS", script, "token"], input=line, timeout=20, check=True)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait(5)


# --- what will not die ------------------------------------------------------------------------


@pytest.fixture
def immortal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SIGKILL does nothing for a while, as for a process stuck in the driver."""
    with monkeypatch.context() as patch:
        patch.setattr(warden, "kill_group", lambda pgid: None)
        end = Group.end
        patch.setattr(Group, "end", lambda self, patience=0.2, *, kill=True: end(self, 0.2, kill=kill))
        yield


def test_a_process_that_will_not_die_is_waited_for_briefly_and_said(
    supervisor: Supervisor, immortal: None
) -> None:
    begun = time.monotonic()
    done = supervisor.run(python("while True: pass"), deadline=0.3)
    assert time.monotonic() - begun < 3
    assert (done.timed_out, done.unkillable, done.exit_code, done.signal) == (True, True, None, None)
    assert done.cpu_seconds > 0


def test_a_worker_that_will_not_die_is_said(supervisor: Supervisor, immortal: None) -> None:
    worker = supervisor.spawn(["/bin/sleep", "100"])
    assert not worker.kill()
    assert worker.alive
