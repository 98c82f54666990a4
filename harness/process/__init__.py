"""The only room that starts, watches and kills processes.

A `Supervisor` puts every process into a session, and so a process group, of its own: the terminal's
Ctrl-C reaches the harness alone, and killing the group also reaches what the process started
(tileiras leaves its ptxas child running when only tileiras is killed). Waiting is done on pidfds
and pipes, never by busy polling. What a process does, its death included, is data in `Finished`;
exceptions are for what the harness itself could not do.
"""

from harness.process.child import Child
from harness.process.errors import Cancelled, ProcessError, StartError
from harness.process.supervisor import Supervisor
from harness.process.watch import Finished

__all__ = ["Cancelled", "Child", "Finished", "ProcessError", "StartError", "Supervisor"]
