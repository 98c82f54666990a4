"""A ptxas that burns CPU, ignores SIGTERM, fails or dies, as its first argument says."""

import os
import signal
import sys

if sys.argv[1] == "fail":
    sys.stderr.write("ptxas fatal   : Unresolved extern function 'nowhere'\n")
    sys.exit(255)
if sys.argv[1] == "exit":
    sys.exit(int(sys.argv[2]))
if sys.argv[1] == "die":
    os.kill(os.getpid(), int(sys.argv[2]))
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    pass
