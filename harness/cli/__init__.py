"""Commands only: parse, call the stage that does the work, choose the exit code.

Exit codes: 0 as expected; 1 findings; 2 the request is wrong; 3 the machine failed; 130 interrupted
(143 by SIGTERM, 129 by SIGHUP) with everything finished so far saved; 141 nobody reads the output.
"""

from harness.cli.app import app, main

__all__ = ["app", "main"]
