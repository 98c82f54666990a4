"""The GPU process of engine "jit": `python jit_worker.py FRONTEND BACKEND REQUEST_FD RESPONSE_FD STACK_FD`.

Runs under a Python that has torch. FRONTEND is a directory with `cuda/tile` in it, BACKEND one with
`bin/tileiras`. Otherwise it is the same process as `worker.py`, and speaks the same protocol.
"""

from __future__ import annotations

import sys
import traceback

from harness.execute.channel import Channel
from harness.execute.protocol import Stage


def main(arguments: list[str]) -> int:
    frontend, backend, *fds = arguments
    channel = Channel(*(int(fd) for fd in fds))
    channel.enter(Stage.START_UP)
    try:
        from harness.execute.jit_engine import JitEngine, use_compiler

        use_compiler(backend)
        sys.path.insert(0, frontend)
        import torch
        from cuda import tile
        from cuda.bindings import driver

        from harness.execute.session import serve

        serve(channel, driver, lambda gpu: JitEngine(gpu, torch, tile))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        channel.say("broken", message=text, traceback=traceback.format_exc(limit=20))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
