"""The real worker, whole, on the driver that lives in host memory.

`python fake_cuda_worker.py REQUEST RESPONSE STACK`. Kernels: those of test_session, the canary, and "spin".
"""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

from fake_driver import FakeDriver, sing
from test_session import KERNELS

from harness.execute import worker


def spin(driver: FakeDriver, grid: tuple[int, int, int], address: int) -> None:
    time.sleep(600)


def main() -> int:
    driver: Any = FakeDriver({**KERNELS, "canary": sing, "spin": spin})
    package, bindings = ModuleType("cuda"), ModuleType("cuda.bindings")
    setattr(bindings, "driver", driver)  # noqa: B010
    sys.modules.update({"cuda": package, "cuda.bindings": bindings, "cuda.bindings.driver": driver})
    return worker.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
