"""The harness's end of the warden."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from harness.process import warden

_CLOSE_SECONDS = 10.0


class WardenLink:
    """The pipe to the warden; a warden that died is replaced and told everything again."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._popen: subprocess.Popen[bytes] | None = None
        self._standing: dict[str, str] = {}

    def add(self, key: str, rest: str = "") -> None:
        self._standing[key] = f"+{key}{rest}\n"
        if self._popen is None:
            self._start()
        else:
            self._send(self._standing[key])

    def drop(self, key: str) -> None:
        if self._standing.pop(key, None) is not None:
            self._send(f"-{key}\n")

    def close(self) -> None:
        if self._popen is not None and self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()
            self._popen.wait(_CLOSE_SECONDS)
            self._popen = None

    @property
    def started(self) -> bool:
        return self._popen is not None

    def _start(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(warden.__file__)), self._token],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            bufsize=0,
            start_new_session=True,
        )
        self._write("".join(self._standing.values()))

    def _send(self, line: str) -> None:
        try:
            self._write(line)
        except BrokenPipeError:
            self.close()
            self._start()

    def _write(self, text: str) -> None:
        assert self._popen is not None and self._popen.stdin is not None
        self._popen.stdin.write(text.encode("ascii"))
