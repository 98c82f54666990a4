"""What a command raises becomes one sentence and the exit code that says whose fault it is."""

from __future__ import annotations

import errno

import pytest

from harness.bundle import BundleError
from harness.cli.leave import leave
from harness.compile.cache import CacheError
from harness.store import StoreError as ResultsError
from harness.store import StoreFailed as ResultsFailed
from harness.toolchain import NotInStore, StoreError, StoreFailed

FULL = OSError(errno.ENOSPC, "No space left on device", "results/run.json")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (StoreError("no store"), 2, "no store"),
        (NotInStore("not there"), 2, "not there"),
        (ResultsError("no results"), 2, "no results"),
        (BundleError("damaged"), 2, "damaged"),
        (StoreFailed("disk full"), 3, "the machine failed: disk full"),
        (ResultsFailed("disk full"), 3, "the machine failed: disk full"),
        (CacheError("disk full"), 3, "the machine failed: disk full"),
        (FULL, 3, "the machine failed: [Errno 28] No space left on device: 'results/run.json'"),
        (KeyboardInterrupt(), 130, "interrupted; everything finished so far is saved"),
    ],
)
def test_every_fault_has_its_exit_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    with pytest.raises(SystemExit) as left:
        leave(fail)
    assert left.value.code == code
    assert capsys.readouterr().err == said + "\n"
