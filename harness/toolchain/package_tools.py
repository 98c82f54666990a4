"""Asks pip and uv; the only module of this room that starts a package tool.

Both read the user's own configuration (index, mirrors, certificates, proxies); no index is named
here. pip lists versions, uv resolves and installs. A user who configured only pip has its
index handed to uv as well, with pip's rule that the best version of all indexes wins.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from harness.process import Finished, StartError, Supervisor
from harness.toolchain.errors import IndexUnreachable, InstallError
from harness.toolchain.store import Store

LIST_DEADLINE_SECONDS = 120.0
RESOLVE_DEADLINE_SECONDS = 180.0
INSTALL_DEADLINE_SECONDS = 600.0

_UNREACHABLE = re.compile(
    r"Retrying \(|error sending request|dns error|client error \(Connect|tcp connect error|Failed to fetch"
    r"|operation timed out|network was disabled|Could not fetch URL|Max retries exceeded",
    re.IGNORECASE,
)
_GAVE_UP = re.compile(r"Retrying \(Retry\(total=0\b")
_DISK_FULL = re.compile(r"os error (28|122)\b|no space left on device|disk quota exceeded", re.IGNORECASE)
_UV_INDEX_SETTINGS = (
    "UV_INDEX",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
    "UV_CONFIG_FILE",
)
_PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "trusted-host": "UV_INSECURE_HOST",
}


@dataclass(frozen=True)
class PackageTools:
    """pip and uv for one Python and one store. `uv` and `pip` are the command lines that start them."""

    store: Store
    supervisor: Supervisor
    uv: tuple[str, ...] = ()
    pip: tuple[str, ...] = (sys.executable, "-m", "pip")

    def list_versions(self, package: str) -> tuple[str, ...]:
        """All released versions, as the index gives them. Raises IndexUnreachable, InstallError."""
        options = ["--disable-pip-version-check", "--no-input", "--retries", "2"]
        command = [*self.pip, "index", "versions", *options, package]
        done = self._run([*command, "--json"], LIST_DEADLINE_SECONDS)
        if done.exit_code == 2 and "no such option" in done.stderr:  # pip before 25
            done = self._run(command, LIST_DEADLINE_SECONDS)
        self._check(done, f"list the versions of {package}")
        if _GAVE_UP.search(done.stderr):  # pip then lists what its other indexes have, and calls it success
            raise IndexUnreachable(last_cause(done.stderr))
        found = parse_version_list(done.stdout)
        if not found:
            raise InstallError(f"cannot list the versions of {package}: pip's answer has none in it")
        return found

    def resolve(self, requirement: str, *, dependencies: bool) -> str:
        """Exact versions with hashes, as requirements text; only wheels are considered."""
        with self.store.scratch("resolve") as scratch:
            asked = scratch / "requirements.in"
            with self.store.guarded():
                asked.write_text(requirement + "\n", encoding="utf-8")
            command = [*self._uv, "pip", "compile", "--python", sys.executable, "--generate-hashes"]
            command += ["--no-header", "--no-annotate", "--only-binary", ":all:", "--color", "never"]
            command += [] if dependencies else ["--no-deps"]
            done = self._run([*command, str(asked)], RESOLVE_DEADLINE_SECONDS, scratch)
        self._check(done, f"resolve {requirement}")
        return done.stdout

    def install(self, requirements: str, target: Path, needed_bytes: int | None) -> None:
        """Install exactly these hashed requirements into an empty directory."""
        with self.store.scratch("install") as scratch:
            asked = scratch / "requirements.txt"
            with self.store.guarded():
                asked.write_text(requirements, encoding="utf-8")
            command = [*self._uv, "pip", "install", "--python", sys.executable, "--target", str(target)]
            command += ["--no-deps", "--require-hashes", "--only-binary", ":all:"]
            command += ["--link-mode", "hardlink", "--color", "never", "--requirements", str(asked)]
            done = self._run(command, INSTALL_DEADLINE_SECONDS, scratch)
        what = " and ".join(line.split()[0] for line in requirements.splitlines() if line.strip())
        self._check(done, f"install {what}", needed_bytes)

    @functools.cached_property
    def _uv(self) -> tuple[str, ...]:
        if self.uv:
            return self.uv
        import uv  # where nothing has to be installed it need not be there

        try:
            return (uv.find_uv_bin(),)
        except FileNotFoundError as error:
            raise InstallError("uv is missing from this Python environment; run pip install uv") from error

    @functools.cached_property
    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
        if any(os.environ.get(name) for name in _UV_INDEX_SETTINGS) or _has_uv_configuration():
            return environment
        listed = self._run_with([*self.pip, "config", "list"], LIST_DEADLINE_SECONDS, None, environment)
        return environment | uv_settings_from_pip(listed.stdout if listed.ok else "", environment)

    def _run(self, argv: Sequence[str], deadline: float, cwd: Path | None = None) -> Finished:
        return self._run_with(argv, deadline, cwd, self._environment)

    def _run_with(
        self, argv: Sequence[str], deadline: float, cwd: Path | None, environment: dict[str, str]
    ) -> Finished:
        # The store, not the current directory: a project there must not configure our tools.
        try:
            return self.supervisor.run(argv, deadline=deadline, cwd=cwd or self.store.root, env=environment)
        except StartError as error:
            raise InstallError(str(error)) from error

    def _check(self, done: Finished, aim: str, needed_bytes: int | None = None) -> None:
        if done.ok:
            return
        if done.timed_out:
            raise InstallError(f"cannot {aim}: no answer within {done.wall_seconds:.0f} s; try again")
        if _DISK_FULL.search(done.stderr):
            raise self.store.full_disk(needed_bytes)
        if _UNREACHABLE.search(done.stderr):
            raise IndexUnreachable(last_cause(done.stderr))
        reason = last_cause(done.stderr) or f"signal {done.signal}, exit code {done.exit_code}"
        raise InstallError(f"cannot {aim}: {reason}")


def parse_version_list(text: str) -> tuple[str, ...]:
    """Versions out of `pip index versions`, with or without --json."""
    text = text.strip()
    if text.startswith("{"):
        try:
            listed = json.loads(text).get("versions", [])
        except ValueError:
            return ()
        return tuple(v for v in listed if isinstance(v, str)) if isinstance(listed, list) else ()
    line = re.search(r"^Available versions:(.*)$", text, re.MULTILINE)
    return tuple(v.strip() for v in line[1].split(",") if v.strip()) if line else ()


def uv_settings_from_pip(listing: str, environment: dict[str, str]) -> dict[str, str]:
    """uv's environment variables that say what `pip config list` says about indexes."""
    found: dict[str, str] = {}
    for line in listing.splitlines():  # later lines win, as in pip
        key, _, quoted = line.partition("=")
        section, _, option = key.rpartition(".")
        if option not in _PIP_TO_UV or section not in ("global", "install", ":env:"):
            continue
        try:
            value = ast.literal_eval(quoted)
        except (ValueError, SyntaxError):
            continue
        if isinstance(value, str) and value.strip():
            found[option] = " ".join(value.split())
    settings = {_PIP_TO_UV[option]: value for option, value in found.items()}
    if "find-links" in found:
        settings["UV_FIND_LINKS"] = found["find-links"].replace(" ", ",")
    if "extra-index-url" in found:
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in settings.items() if name not in environment}


def last_cause(stderr: str) -> str:
    """The innermost reason a package tool gave, on one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"(cause|error|ERROR|Caused by)\b", line)]
    broken = re.findall(r"Retrying \(.*?\[Errno -?\d+\] ([^'\")]+)", stderr)
    chosen = (broken or telling or lines or [""])[-1]
    return re.sub(r"^(cause|error|ERROR|Caused by):\s*", "", chosen)[:400]


def _has_uv_configuration() -> bool:
    places = (platformdirs.user_config_path("uv"), Path("/etc/uv"))
    return any((place / "uv.toml").is_file() for place in places)
