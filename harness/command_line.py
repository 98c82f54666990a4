"""Command lines as they may be shown to others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_SECRET = re.compile(r"token|secret|passw|credential|api[-_]?key|auth", re.IGNORECASE)
_URL_USER = re.compile(r"(?<=://)[^/@\s]+@")


def scrub(argv: Sequence[str]) -> list[str]:
    """A command line fit to be kept: secrets masked, the home directory as ~."""
    home = str(Path.home())
    cleaned: list[str] = []
    masked = False
    for word in argv:
        name, equals, _ = word.partition("=")
        secret = bool(_SECRET.search(name))
        if masked:
            cleaned.append("***")
        elif secret and equals:
            cleaned.append(f"{name}=***")
        else:
            shown = _URL_USER.sub("***@", word)
            cleaned.append(shown.replace(home, "~") if len(home) > 1 else shown)
        masked = not masked and not equals and secret and word.startswith("-")
    return cleaned
