"""The GPU process: `python -m harness.execute.worker REQUEST_FD RESPONSE_FD STACK_FD`.

Takes charge of its streams before anything else is imported: what native libraries print while
they load must not get in the way.
"""

from __future__ import annotations

import sys
import traceback

from harness.execute.channel import Channel
from harness.execute.protocol import Stage


def main(arguments: list[str]) -> int:
    channel = Channel(*(int(fd) for fd in arguments))
    channel.enter(Stage.START_UP)
    try:
        from cuda.bindings import driver

        from harness.execute.session import serve

        serve(channel, driver)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        channel.say("broken", message=text, traceback=traceback.format_exc(limit=20))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
