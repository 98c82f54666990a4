"""Text of compilers and kernels, made fit to be kept: it goes into UTF-8, SQLite, XML, HTML and terminals.

Control characters but line feed and tab, and halves of surrogate pairs, which have no UTF-8, are spelled as
backslash escapes, so that nothing is lost and nothing acts.
"""

from __future__ import annotations

import re
from typing import Any

_ILLEGIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def legible(text: str) -> str:
    """The text with line feeds for line ends, and all else that no reader can see spelled out."""
    if _ILLEGIBLE.search(text) is None:
        return text
    return _ILLEGIBLE.sub(_spelled, text.replace("\r\n", "\n"))


def legible_json(value: Any) -> Any:
    """A value of JSON with all texts in it legible, keys included."""
    if isinstance(value, str):
        return legible(value)
    if isinstance(value, dict):
        return {legible(str(key)): legible_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [legible_json(item) for item in value]
    return value


def _spelled(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
