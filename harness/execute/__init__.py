"""Running compiled cases on GPUs: `execute` turns launches into observations, `judge_run` judges them.

inputs, reference, bounds, compare    what goes in, what may come out (numpy, no GPU)
worker, session, data, gpu, arena     the GPU process, with engine, timing, canary and channel
pool, garage, feed, watch, handle     many of them: clocks, isolation, confirmation
device, match, coredump               what is here, what a hang looked like from inside
protocol, verdict, outputs            the values, and what they mean
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.execute.options import PoolOptions
    from harness.execute.protocol import Gpu, Launch, Observation
    from harness.execute.verdict import judge_run
    from harness.process import Supervisor

__all__ = ["Gpu", "Launch", "Observation", "PoolOptions", "execute", "judge_run"]

_HOMES = {"Gpu": "protocol", "Launch": "protocol", "Observation": "protocol"} | {
    "PoolOptions": "options",
    "judge_run": "verdict",
}


def __getattr__(name: str) -> Any:
    """Import on first use: a GPU process goes through this file too, and its start-up is paid per case."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def execute(
    supervisor: Supervisor,
    launches: Iterable[Launch],
    gpus: tuple[Gpu, ...],
    on_result: Callable[[Launch, Observation], None],
    options: PoolOptions | None = None,
) -> None:
    """Run every launch on one of these GPUs and report each exactly once.

    `launches` is read lazily; `on_result` is called from one thread at a time. After Ctrl-C everything
    unfinished is reported `not_run` and KeyboardInterrupt goes on. No process outlives the call.
    """
    from harness.execute.pool import Pool

    with supervisor.scratch("execute-") as scratch:
        Pool(supervisor, gpus, scratch, options).run(launches, on_result)
