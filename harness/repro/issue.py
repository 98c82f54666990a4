"""The text of an issue for NVIDIA/cutile-python, in the shape of its bug form. Pure; posts nothing.

The headings are the form's own labels, in its order, as GitHub writes them into an issue that was
filed with it. Two of them are called "Version": cuTile Python's, then the CUDA Toolkit's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from harness.repro.readme import bisect_words, bisected, install_lines, where
from harness.repro.scrub import Scrubber
from harness.repro.spec import PTX_FILE, Place, Repro

NEW_ISSUE = "https://github.com/NVIDIA/cutile-python/issues/new"
TEMPLATE = "01-bug-report.yml"

MAX_LINK = 7500
"""Characters of the link: GitHub answers 414 to a request of more than about 8 KB."""

_TERMS = (
    "I agree to follow cuTile Python's contributing guidelines",
    "I have searched the [open bugs](https://github.com/nvidia/cutile-python/issues?q=is%3Aopen+is%3Aissue"
    "+label%3Abug) and have found no duplicates for this bug report",
)

_FORM = (
    ("version", "Version", False),
    ("ctk-version", "Version", False),
    ("installation-method", "Which installation method(s) does this occur on?", False),
    ("description", "Describe the bug.", False),
    ("mvr", "Minimum reproducible example", True),
    ("logs", "Relevant log output", True),
    ("env-printout", "Full env printout", True),
    ("misc", "Other/Misc.", False),
)
"""Field id, label, and whether the form renders it as shell text."""

_LINK_ORDER = (
    "version",
    "ctk-version",
    "installation-method",
    "description",
    "misc",
    "mvr",
    "logs",
    "env-printout",
)


@dataclass(frozen=True)
class Facts:
    """What was found out: component versions where it is bad, the script's log there, environment."""

    components: Mapping[str, str]
    log: str
    environment: str
    driver: str
    script: str


@dataclass(frozen=True)
class Issue:
    """Title, Markdown, and a link that opens the form with as much of it as fits filled in.

    `left_out` are the fields that the link has no room for.
    """

    title: str
    text: str
    link: str
    left_out: tuple[str, ...]


def issue(repro: Repro, facts: Facts, scrubber: Scrubber) -> Issue:
    """Everything scrubbed."""
    place = repro.bad[0]
    fields = {
        name: scrubber.scrub_code(text) if name == "mvr" else scrubber.scrub(text)
        for name, text in _fields(repro, place, facts).items()
    }
    title = scrubber.scrub(f"[BUG]: {repro.title}")
    link, left_out = _link(title, fields)
    return Issue(title, _markdown(fields), link, left_out)


def _fields(repro: Repro, place: Place, facts: Facts) -> dict[str, str]:
    return {
        "version": _tile(place),
        "ctk-version": _toolkit(place),
        "installation-method": "Pip",
        "description": _description(repro),
        "mvr": facts.script,
        "logs": facts.log,
        "env-printout": facts.environment,
        "misc": _misc(repro, place, facts),
    }


def _tile(place: Place) -> str:
    return place.toolchain.cuda_tile if place.toolchain else _package(place, "cuda-tile")


def _toolkit(place: Place) -> str:
    return place.toolchain.cuda_toolkit if place.toolchain else _package(place, "cuda-toolkit")


def _package(place: Place, name: str) -> str:
    versions = (p.partition("==") for p in place.packages if p.partition("==")[0].partition("[")[0] == name)
    return next((version for _, _, version in versions), "not installed")


def _description(repro: Repro) -> str:
    lines = [repro.summary, "", f"Expected: {repro.expected}", "", "Seen with:", ""]
    for place in repro.places:
        targets = f" for {', '.join(place.targets)}" if place.targets else ""
        lines.append(f"- {'**shows**' if place.bad else 'does not show'}: {where(place)}{targets}")
    return "\n".join(lines)


def _misc(repro: Repro, place: Place, facts: Facts) -> str:
    files = (*repro.bytecode, repro.folder / PTX_FILE)
    told = {
        "Components": ", ".join(f"{name} {version}" for name, version in facts.components.items()),
        "Architectures": ", ".join(place.targets),
        "Driver": facts.driver,
        "On a device": repro.observed,
        "Flags": _flags(repro, place),
        "Bytecode version": repro.bytecode_version or "",
        "Bisection": bisect_words(bisected(repro.folder)),
        "Guilty component": repro.component,
        "Made from": repro.origin,
        "Files": ", ".join(path.name for path in files if path.is_file()),
    }
    return "\n".join(f"- {name}: {text}" for name, text in told.items() if text)


def _flags(repro: Repro, place: Place) -> str:
    if repro.case is None or not place.targets:
        return ""
    return f"--gpu-name {place.targets[0]} -O{repro.opt_level} --lineinfo"


# --- rendering ---------------------------------------------------------------------------------


def _markdown(fields: Mapping[str, str]) -> str:
    parts = []
    for name, label, is_shell in _FORM:
        text = fields[name].strip() or "_No response_"
        parts += [f"### {label}", "", _fenced(text) if is_shell else text, ""]
    parts += ["### Contributing Guidelines", "", *(f"- [ ] {term}" for term in _TERMS)]
    return "\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    """In a fence longer than any in the text."""
    longest = max((len(run) for run in text.split() if set(run) == {"`"}), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}shell\n{text}\n{fence}"


def _link(title: str, fields: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Fields from the most telling on, each whole or not at all, as long as there is room."""
    query = {"template": TEMPLATE, "title": title[:200]}
    left_out = []
    for name in _LINK_ORDER:
        tried = {**query, name: fields[name]}
        if fields[name] and len(_url(tried)) <= MAX_LINK:
            query = tried
        elif fields[name]:
            left_out.append(name)
    return _url(query), tuple(left_out)


def _url(query: Mapping[str, str]) -> str:
    return f"{NEW_ISSUE}?{urlencode(query)}"


def reproduction(repro: Repro, script: str) -> str:
    """The minimal example: how to install, then the script."""
    lines = [f"# {line}" for line in install_lines(repro.bad[0])]
    return "\n".join([*lines, script.strip()])
