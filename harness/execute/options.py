"""How a pool is to run."""

from __future__ import annotations

from dataclasses import dataclass

from harness.execute.handle import WORKER


@dataclass(frozen=True)
class PoolOptions:
    """How to run. `workers` and `waiting` are per GPU; seconds where it says so.

    `isolation`: "worker" keeps processes warm from case to case, "process" gives every case its own.
    """

    workers: int = 6
    waiting: int = 24
    spares: int = 2
    isolation: str = "worker"
    start_up_seconds: float = 60.0
    overdue_seconds: float = 0.5
    confirm: bool = True
    worker_argv: tuple[str, ...] = WORKER
