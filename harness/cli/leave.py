"""How every command ends: what it raised as one sentence, and the exit code."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NoReturn, TextIO

from rich.console import Console

from harness.process.signals import Stopping


class Exit(IntEnum):
    """What a command's exit code means. Signals have 128 and their number, as in a shell."""

    OK = 0
    FINDINGS = 1
    WRONG_REQUEST = 2
    MACHINE_FAILED = 3
    HUNG_UP = 128 + signal.SIGHUP
    INTERRUPTED = 128 + signal.SIGINT
    NOBODY_READS = 128 + signal.SIGPIPE
    TERMINATED = 128 + signal.SIGTERM


def leave(command: Callable[[], int]) -> NoReturn:
    """Run a command to its end, or until a signal stops it, and exit."""
    with Stopping() as stopping:
        code = _run(command, stopping)
    sys.exit(code)


def leave_with_all_written(program: Callable[[], object]) -> NoReturn:
    """Run the whole program and see to it that its output was written, which may fail only at the end.

    Standard output on a full disk is exit code 3 and a sentence; output that nobody reads is no fault.
    """
    sys.stdout = _named_stdout()
    code: int | str | None = Exit.OK
    try:
        try:
            program()
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):  # rich's way, and it would read as findings
                raise end.__context__ from None
            code = end.code
        print(end="", flush=True)  # which knows that there may be no stdout
    except BrokenPipeError:
        code = Exit.NOBODY_READS
    except OSError as error:
        if code != Exit.MACHINE_FAILED:
            _complain(f"the machine failed: {error}")
        code = Exit.MACHINE_FAILED
    _write_no_more()
    sys.exit(code)


def _run(command: Callable[[], int], stopping: Stopping) -> int:
    """What the command returns; what it raises becomes one sentence on stderr and an exit code."""
    try:
        return command()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        number = stopping.heard or signal.SIGINT
        how = "interrupted" if number is signal.SIGINT else f"stopped by {number.name}"
        _complain(f"{how}; everything finished so far is saved", style="yellow")
        return 128 + number
    except Exception as error:
        code = _blamed_on(error)
        if code is None:
            raise
        _complain(f"the machine failed: {error}" if code is Exit.MACHINE_FAILED else str(error))
        return code


def _blamed_on(error: Exception) -> Exit | None:
    """Whether the machine or the request is to blame; None for a fault of our own.

    The classes are imported only here, because they would load every stage for a command that needs none.
    """
    if isinstance(error, OSError):
        return Exit.MACHINE_FAILED
    from harness.bundle import BundleError
    from harness.commands.explain import NothingToExplain
    from harness.commands.workaround import NoWorkaround
    from harness.compile.cache import CacheError
    from harness.gate.select import SelectionError
    from harness.kernels.description import KernelFileError
    from harness.matrix import MatrixError
    from harness.report.jsonl import ResultsError as RowsError
    from harness.store import StoreError as ResultsError
    from harness.store import StoreFailed as ResultsFailed
    from harness.toolchain import ProvisionError, StoreError, StoreFailed

    if isinstance(error, CacheError | StoreFailed | ResultsFailed):
        return Exit.MACHINE_FAILED
    wrong = (
        *(BundleError, MatrixError, NothingToExplain, ProvisionError, StoreError),
        *(KernelFileError, NoWorkaround, ResultsError, RowsError, SelectionError),
    )
    return Exit.WRONG_REQUEST if isinstance(error, wrong) else None


def _complain(text: str, style: str = "red") -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, style=style, markup=False)


class _Named(io.FileIO):
    """A file whose errors tell its name."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = "standard output"
            raise


def _named_stdout() -> TextIO:
    """Standard output that says so where it cannot be written."""
    old = sys.stdout
    try:
        raw = _Named(old.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):  # closed, or none
        return old
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        old.encoding,
        old.errors,
        line_buffering=bool(old.line_buffering),
        newline="\n",
    )


def _write_no_more() -> None:
    """The interpreter flushes once more; by then it is told already."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
