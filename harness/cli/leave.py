"""How every command ends: what it raised as one sentence, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import IntEnum
from typing import NoReturn

from rich.console import Console


class Exit(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FINDINGS = 1
    WRONG_REQUEST = 2
    MACHINE_FAILED = 3
    INTERRUPTED = 130


def leave(command: Callable[[], int]) -> NoReturn:
    """Run a command; turn what it raises into one sentence on stderr and an exit code."""
    from harness.bundle import BundleError
    from harness.commands.explain import NothingToExplain
    from harness.commands.workaround import NoWorkaround
    from harness.compile.cache import CacheError
    from harness.gate.select import SelectionError
    from harness.matrix import MatrixError
    from harness.report.jsonl import ResultsError as RowsError
    from harness.store import StoreError as ResultsError
    from harness.toolchain import ProvisionError, StoreError

    wrong = (
        *(BundleError, MatrixError, NothingToExplain, ProvisionError, StoreError),
        *(NoWorkaround, ResultsError, RowsError, SelectionError),
    )
    complain = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        code = command()
    except wrong as error:
        complain.print(str(error), style="red", markup=False)
        code = Exit.WRONG_REQUEST
    except (CacheError, OSError) as error:
        complain.print(f"the machine failed: {error}", style="red", markup=False)
        code = Exit.MACHINE_FAILED
    except KeyboardInterrupt:
        complain.print("interrupted; everything finished so far is saved", style="yellow", markup=False)
        code = Exit.INTERRUPTED
    sys.exit(code)
