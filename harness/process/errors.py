"""What the harness itself could not do with a process. What a process does is never an exception."""

from __future__ import annotations


class ProcessError(Exception):
    """The harness could not do its part; the text says what, and how to mend it."""


class StartError(ProcessError, OSError):
    """The executable could not be started at all."""


class Cancelled(ProcessError):
    """`Supervisor.cancel` was called: the process was killed or never started."""
