"""Signals end a command in good order, or at once when there is a second."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.process.signals import SIGNALS, Stopping, finishing

BEGIN = """
    import sys, time
    from pathlib import Path
    from harness.cli.leave import leave
    from harness.process.signals import finishing

    def work():
        print("working", flush=True)
        time.sleep(30)
"""


@contextmanager
def program(text: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A running command that has begun to work."""
    command = [sys.executable, "-c", textwrap.dedent(BEGIN) + textwrap.dedent(text), *map(str, arguments)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "working\n"
        yield running
    finally:
        running.kill()
        running.communicate(timeout=10)


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "interrupted; everything finished so far is saved"),
        (signal.SIGTERM, 143, "stopped by SIGTERM; everything finished so far is saved"),
        (signal.SIGHUP, 129, "stopped by SIGHUP; everything finished so far is saved"),
    ],
)
def test_a_signal_ends_a_command_as_ctrl_c_does(number: signal.Signals, code: int, said: str) -> None:
    with program("leave(work)") as running:
        running.send_signal(number)
        _, complaint = running.communicate(timeout=10)
    assert running.returncode == code
    assert complaint == said + "\n"


TIDY = """
    def thorough():
        try:
            work()
        except KeyboardInterrupt:
            print("tidying", flush=True)
            time.sleep(float(sys.argv[1]))
            raise
    leave(thorough)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(number: signal.Signals) -> None:
    with program(TIDY, "30") as running:
        running.send_signal(number)
        assert running.stdout is not None
        assert running.stdout.readline() == "tidying\n"
        time.sleep(0.5)
        running.send_signal(number)
        assert running.wait(5) == -number


def test_a_signal_that_is_sent_twice_in_a_row_is_one(tmp_path: Path) -> None:
    with program(TIDY, "0.5") as running:
        for _ in range(3):
            running.send_signal(signal.SIGTERM)
            time.sleep(0.02)
        assert running.wait(10) == 143


def test_what_must_be_whole_is_finished_first(tmp_path: Path) -> None:
    text = """
        def careful():
            with finishing():
                print("working", flush=True)
                time.sleep(0.5)
                Path(sys.argv[1]).write_text("whole")
            time.sleep(30)
        leave(careful)
    """
    with program(text, tmp_path / "report") as running:
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == 143
    assert (tmp_path / "report").read_text() == "whole"


def test_nohup_is_respected() -> None:
    text = """
        import signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        leave(work)
    """
    with program(text) as running:
        running.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.5)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(KeyboardInterrupt), Stopping() as stopping:
        with pytest.raises(ValueError, match="itself"), finishing():
            raise ValueError("itself")
        signal.raise_signal(signal.SIGTERM)
    assert stopping.heard is signal.SIGTERM
    assert [signal.getsignal(number) for number in SIGNALS] == before
