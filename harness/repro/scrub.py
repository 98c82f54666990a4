"""Takes out of a text what is nobody's business: names, homes, hosts, secrets and temporary paths.

What goes upstream is public for good, so when in doubt a word goes. Versions, architectures, package
names, exit codes and the kernel stay readable.
"""

from __future__ import annotations

import ast
import getpass
import io
import os
import re
import socket
import tempfile
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|_KEY$|AUTH|COOKIE|SESSION"
    r"|DSN|WEBHOOK|_PAT$",
    re.IGNORECASE,
)
_SHORTEST_SECRET = 6
_SHORTEST_NAME = 3

_PUBLIC_HOSTS = (
    *("github.com", "githubusercontent.com", "nvidia.com", "pypi.org", "pythonhosted.org"),
    *("python.org", "llvm.org", "pytorch.org", "matthewrocklin.com"),
)

_COMMON_USERS = frozenset(
    {"root", "user", "admin", "administrator", "ubuntu", "runner", "nobody", "guest", "test"}
    | {"build", "docker", "jenkins", "default"}
)
"""Names that tell nobody apart, and that are words of their own in texts."""

_REDACTED = "<redacted>"

_PROSE = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""Tokens that people write to be read."""

_TOKENS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
        _REDACTED,
    ),
    (
        re.compile(
            r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|pypi-|npm_|xox[abprs]-|sk-|nvapi-)[\w-]{8,}"
            r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
        ),
        _REDACTED,
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.+/=~-]{8,}"), rf"\1 {_REDACTED}"),
    (
        re.compile(
            r"(?i)((?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|credentials?)"
            r"[\w-]{0,40}(?:[\"']?\s{0,3}:\s{0,3}|[\"']?=|\s{1,3}=\s{0,3}(?=[\"'])))(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;&\"']+)"
        ),
        rf"\1{_REDACTED}",
    ),
    (
        re.compile(r"(?i)((?:passw(?:or)?d|passphrase|secret)\s{1,3}=\s{0,3})[^\s,;&\"'()\[\].]+"),
        rf"\1{_REDACTED}",
    ),
)
"""Repetitions are bounded, so that no text takes long."""

_ADDRESSES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"), "<address>"),
    (
        re.compile(
            r"(?<![\w.])(?:(?:10|127)\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01])|169\.254)"
            r"(?:\.\d{1,3}){2}(?![\w.])"
        ),
        "<host>",
    ),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?=:\d{2,5}\b)"), "<host>"),
    (
        re.compile(
            r"(?<![\w.:])(?:(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){2,6})(?![\w:])",
            re.IGNORECASE,
        ),
        "<host>",
    ),
)
"""Only IPv4 addresses of private networks or with a port: a version such as 13.4.1.0 must stay."""

_HOST_NAME = re.compile(
    r"(?<![\w.@/-])[a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,6}"
    r"\.(?:com|net|org|io|edu|gov|mil|dev|cloud|ai|corp|internal|intranet|local|lan|home|cluster|de|uk|jp|cn|fr)"
    r"(?![\w-]|\.\w|/)",
    re.IGNORECASE,
)
_SHARED = re.compile(r"(?<![\w.-])(?:/mnt|/net|/nfs|/media|/srv|/data)(?:/[^\s:\"',;()<>\[\]]+)")
_UNC = re.compile(r"(?<![\w:\\])\\{2,4}[\w.-]+(?:\\{1,2}[^\\\s:\"',;]+)+")
_NAMED_HOME = re.compile(r"(?<![\w~])~[a-z][\w-]{2,31}(?=/)")

_URL = re.compile(r"\b([a-z][a-z0-9+.-]{0,20})://[^\s\"'<>)\]}]+", re.IGNORECASE)
_HOMES = re.compile(
    r"(?:/home/|/Users/|/export/home/|[A-Za-z]:\\{1,2}Users\\{1,2})[^/\\\s:\"',;)]+|(?<![\w.-])/root(?![\w.-])"
)
_TEMPORARY = re.compile(
    r"(?<![\w.-])(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm|/scratch)(?:/[^\s:\"',;()<>\[\]]+)?"
)


@dataclass(frozen=True)
class Scrubber:
    """`paths` are (path, what stands for it); `words` are names of people and hosts; `secrets` are
    values to be found anywhere, also inside other words."""

    paths: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @classmethod
    def of_this_machine(cls, project: Path | None = None) -> Scrubber:
        """Knows this user, host, environment and where things lie; `project` is shown as "."."""
        paths = [(str(Path.home()), "~"), (tempfile.gettempdir(), "<tmp>")]
        for path in (project or Path.cwd(), Path.cwd()):
            paths.append((str(path.resolve()), "."))
        return cls.of(os.environ, tuple(paths), (_user(), *_hosts()))

    @classmethod
    def of(
        cls, environment: Mapping[str, str], paths: tuple[tuple[str, str], ...], words: tuple[str, ...]
    ) -> Scrubber:
        """Secrets are the values of variables whose names say so; user and host variables give words."""
        secrets = {
            value
            for name, value in environment.items()
            if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET and not value.isspace()
        }
        named = [
            environment.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "HOSTNAME")
        ]
        return cls(
            paths=tuple(sorted({p for p in paths if len(p[0]) > 1}, key=lambda p: -len(p[0]))),
            words=tuple(sorted({w for w in (*words, *named) if _is_telling(w)}, key=len, reverse=True)),
            secrets=tuple(sorted(secrets, key=len, reverse=True)),
        )

    def scrub(self, text: str) -> str:
        """The text without any of it."""
        for secret in self.secrets:
            text = text.replace(secret, _REDACTED)
        for pattern, replacement in _TOKENS:
            text = pattern.sub(replacement, text)
        text = _URL.sub(_without_host, text)
        for pattern, replacement in _ADDRESSES:
            text = pattern.sub(replacement, text)
        for path, shown in self.paths:
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", shown, text)
        text = _HOST_NAME.sub(_unless_public, text)
        text = _TEMPORARY.sub(_shortened, text)
        text = _SHARED.sub(lambda found: f"<path>/{found.group(0).rstrip('/').rpartition('/')[2]}", text)
        text = _NAMED_HOME.sub("~", _HOMES.sub("~", text))
        text = _UNC.sub("<path>", text)
        return self._words.sub("<name>", text) if self._words is not None else text

    def scrub_code(self, text: str) -> str:
        """Python code with its comments and strings scrubbed: a variable that is called like a user or a host
        is no secret, and without it the code would be none. What is no Python is scrubbed as a text."""
        for secret in self.secrets:
            text = text if secret.isidentifier() else text.replace(secret, _REDACTED)
        try:
            ast.parse(text)
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (tokenize.TokenError, SyntaxError, ValueError):
            return self.scrub(text)
        lines = text.splitlines(keepends=True)
        for token in reversed(tokens):
            if token.type not in _PROSE:
                continue
            (first, begin), (last, end) = token.start, token.end
            head, tail = lines[first - 1][:begin], lines[last - 1][end:]
            scrubbed = head + self.scrub(token.string) + tail
            lines[first - 1 : last] = scrubbed.splitlines(keepends=True)
        return "".join(lines)

    @cached_property
    def _words(self) -> re.Pattern[str] | None:
        if not self.words:
            return None
        return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, self.words))})(?![A-Za-z0-9])", re.I)


def _is_telling(word: str) -> bool:
    return len(word) >= _SHORTEST_NAME and word.lower() not in _COMMON_USERS and word.lower() != "localhost"


def _unless_public(found: re.Match[str]) -> str:
    host = found.group(0).lower()
    public = any(host == known or host.endswith(f".{known}") for known in _PUBLIC_HOSTS)
    return found.group(0) if public else "<host>"


def _without_host(found: re.Match[str]) -> str:
    """A URL of a public host without user and query secrets; of any other, nothing but its kind."""
    url, scheme = found.group(0), found.group(1)
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        host, parts = "", None
    if parts is None or not any(host == known or host.endswith(f".{known}") for known in _PUBLIC_HOSTS):
        return f"{scheme}://<host>"
    return url if "@" not in parts.netloc else url.replace(parts.netloc, host, 1)


def _shortened(found: re.Match[str]) -> str:
    """A temporary path by its last part: that is the file's own name."""
    head, slash, tail = found.group(0).rstrip("/").rpartition("/")
    inside = re.fullmatch(r"(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm|/scratch)(/.*)?", head)
    return f"<tmp>/{tail}" if slash and inside is not None else "<tmp>"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user in the password database
        return ""


def _hosts() -> tuple[str, ...]:
    asked: tuple[Callable[[], str], ...] = (socket.gethostname, lambda: os.uname().nodename)
    names = {name for ask in asked if (name := ask())}
    return tuple(names | {name.partition(".")[0] for name in names})
