"""Running compiled cases on GPUs: `execute` turns launches into observations, `judge_run` judges them.

inputs, reference, bounds, compare    what goes in, what may come out (numpy, no GPU)
worker, session, gpu, arena, timing      the GPU process, with canary and channel
pool, watch, handle                   many of them: clocks, isolation, confirmation
device, match, coredump               what is here, what a hang looked like from inside
protocol, verdict                     the values, and what they mean
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.execute.pool import Pool, PoolOptions
from harness.execute.protocol import Gpu, Launch, Observation
from harness.execute.verdict import judge_run
from harness.process import Supervisor

__all__ = ["Gpu", "Launch", "Observation", "PoolOptions", "execute", "judge_run"]


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
    with supervisor.scratch("execute-") as scratch:
        Pool(supervisor, gpus, scratch, options).run(launches, on_result)
