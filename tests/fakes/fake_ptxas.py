"""A ptxas that burns CPU, ignores SIGTERM or fails, as its first argument says."""

import signal
import sys

if sys.argv[1] == "fail":
    sys.stderr.write("ptxas fatal   : Unresolved extern function 'nowhere'\n")
    sys.exit(255)
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    pass
