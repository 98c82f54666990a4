"""Bounded memory of what a process said."""

from __future__ import annotations


class BoundedOutput:
    """Keeps the head and the tail of a stream, at most `limit` bytes, and counts what it cut."""

    def __init__(self, limit: int) -> None:
        self._room = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def feed(self, data: bytes) -> None:
        take = self._room - len(self._head)
        if take > 0:
            self._head += data[:take]
            data = data[take:]
        self._tail += data
        excess = len(self._tail) - self._room
        if excess > 0:
            del self._tail[:excess]
            self._cut += excess

    @property
    def text(self) -> str:
        head, tail = bytes(self._head), bytes(self._tail)
        if self._cut:
            head += f"\n[... {self._cut} bytes cut ...]\n".encode()
        return (head + tail).decode("utf-8", "replace")
