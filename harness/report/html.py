"""`report.html`: a run in one file that opens anywhere, with no network and no server.

The head of the page (decision, counts, findings, advice) is plain HTML, so that it reads even where scripts
are forbidden. The matrix, the evidence of each cell and the charts are drawn by the page's own script
from JSON in the file. Compiler and kernel texts are untrusted: the template escapes them, the script
only ever makes text nodes of them, and the page's own policy forbids every script but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.cluster import AdviceGroup, Finding, advice_groups, value_text
from harness.command_text import HERE, Place
from harness.legible import legible
from harness.model import CellResult, Verdict
from harness.report.files import write_atomically
from harness.report.html_data import (
    SassOf,
    counts,
    embeddable,
    group_findings,
    page_data,
    plain,
    where_text,
)
from harness.report.version_strip import Strip, Strips
from harness.report.words import LOOKS, count_text
from harness.store import FILE_NAME as STORE_NAME

_SCRIPTS = ("dom", "state", "cells", "matrix", "evidence", "charts", "main")
_CELL = "CELL"
_DECISIONS = {"go": "good", "no-go": "bad"}
_SHOWN_FINDINGS = 12
_SAID_ABOVE = ("cells", "verdicts")
_COMPONENTS = {
    "cuda-tile": "the Python frontend, which turns a kernel into TileIR bytecode",
    "tileiras": "the TileIR compiler of cuda-toolkit",
    "nvvm": "the code generator (libnvvm) of cuda-toolkit, run inside tileiras",
    "ptxas": "the PTX assembler of cuda-toolkit, run by tileiras",
    "kernel": "the kernel's own file; no compiler has seen it yet",
    "matrix": "which describes the kernel otherwise than it is",
}


def write_html(
    results: Sequence[CellResult],
    path: Path,
    *,
    title: str,
    facts: dict[str, Any] | None,
    gate: dict[str, Any] | None = None,
    sass_of: SassOf | None = None,
    store: Path | None = None,
) -> None:
    """Write the report of a run, whole or not at all. Raises OSError.

    `facts` are figures about the run itself, shown at the end. `gate`, where a gate judged this run,
    has "decision" ("go", "no-go" or "cannot tell") and "reasons", each with "kind", "text", "cells" (ids)
    and "command".
    `sass_of` reads machine code around the register-pool instructions of findings, `store` is where the
    run's compilers are, unless at the default. Where the page lies beside results, commands name them.
    """
    place = Place(path.parent, store) if (path.parent / STORE_NAME).is_file() else HERE
    write_atomically(
        path, render_html(results, title=title, facts=facts, gate=gate, sass_of=sass_of, place=place)
    )


def render_html(
    results: Sequence[CellResult],
    *,
    title: str,
    facts: dict[str, Any] | None,
    gate: dict[str, Any] | None = None,
    sass_of: SassOf | None = None,
    place: Place = HERE,
) -> str:
    """The page as text."""
    found = group_findings(results)
    strips = Strips(results)
    cells = {result.cell.id: result for result in results}
    first_look, blocks = page_data(results, found, sass_of)
    before, after = place.explain(_CELL).split(_CELL)
    first_look["explain"] = {"prefix": before, "suffix": after}

    def group(item: Finding | AdviceGroup) -> _Group:
        example = cells[item.example]
        command = place.explain(item.example)
        what = _without_heading(example) if isinstance(item, Finding) else ""
        return _Group(
            item, what, where_text(item), _blame(item, example), strips.of(item), _name(example), command
        )

    script = Markup("\n".join(_part(f"{name}.js") for name in _SCRIPTS))
    style = Markup(_part("report.css"))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=title,
            head=_head(results, found, gate),
            tally=counts(results),
            total=len(results),
            reasons=_reasons(gate),
            findings=[group(finding) for finding in found],
            shown_findings=_SHOWN_FINDINGS,
            advice=[group(remarks) for remarks in advice_groups(results)],
            looks=LOOKS,
            facts=_flat(plain({k: v for k, v in (facts or {}).items() if k not in _SAID_ABOVE})),
            script=script,
            style=style,
            policy=_policy(script, style),
            data=Markup(embeddable(first_look)),
            blocks=Markup("\n".join(blocks)),
        )
    )


@dataclass(frozen=True)
class _Head:
    """The first line of the page; `kind` is good | bad | unknown."""

    kind: str
    symbol: str
    text: str
    detail: str


@dataclass(frozen=True)
class _Group:
    """A finding or a group of remarks, with what the page says beside it."""

    item: Finding | AdviceGroup
    what: str
    where: str
    blame: str
    strip: Strip
    example: str
    command: str


def _head(results: Sequence[CellResult], found: Sequence[Finding], gate: dict[str, Any] | None) -> _Head:
    findings = [finding for finding in found if finding.verdict.is_finding]
    faults = [finding for finding in found if not finding.verdict.is_finding]
    bad = sum(result.verdict.is_finding for result in results)
    good = sum(result.verdict.is_good for result in results)
    detail = _detail(results, bad, good)
    if gate is not None:
        decision = str(gate.get("decision", "cannot tell"))
        kind = _DECISIONS.get(decision, "unknown")
        symbol = {"good": "✔", "bad": "✖"}.get(kind, "?")
        return _Head(kind, symbol, decision[:1].upper() + decision[1:], detail)
    if findings:
        return _Head(
            "bad", "✖", f"{count_text(len(findings), 'finding')} in {count_text(bad, 'cell')}", detail
        )
    if faults:
        return _Head("unknown", "?", "No answer everywhere: a toolchain or the machine failed", detail)
    if not good:
        return _Head("unknown", "?", "Nothing could be tested", detail)
    return _Head("good", "✔", "No findings", detail)


def _detail(results: Sequence[CellResult], bad: int, good: int) -> str:
    """What the other cells came to, and why some came to nothing."""
    unknown = len(results) - bad - good
    parts = [f"{count_text(len(results), 'cell')}: {bad} bad, {good} good, {unknown} without an answer"]
    reasons = {
        str(result.judgement.evidence.get("reason", result.judgement.summary)): None
        for result in results
        if result.verdict is Verdict.SKIPPED
    }
    skipped = sum(result.verdict is Verdict.SKIPPED for result in results)
    if reasons:
        more = f" (and {count_text(len(reasons) - 1, 'other reason')})" if len(reasons) > 1 else ""
        parts.append(f"{count_text(skipped, 'cell')} skipped: {next(iter(reasons))}{more}")
    return ". ".join(parts) + "."


def _reasons(gate: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The gate's reasons with every field there; `cells` is a list of ids."""
    return [
        {
            "kind": str(reason.get("kind", "")),
            "text": str(reason.get("text", "")),
            "cells": [str(cell) for cell in reason.get("cells") or ()],
            "command": str(reason.get("command") or ""),
        }
        for reason in (gate or {}).get("reasons", ())
    ]


def _without_heading(result: CellResult) -> str:
    """The summary, without the words that head its finding anyway."""
    heading, summary = f"{LOOKS[result.verdict].phrase}: ", result.judgement.summary
    if not summary.startswith(heading):
        return summary
    rest = summary.removeprefix(heading)
    return rest[:1].upper() + rest[1:]


def _blame(item: Finding | AdviceGroup, example: CellResult) -> str:
    named = item.blame if isinstance(item, Finding) else example.judgement.component or "not known"
    words = named + (f", {_COMPONENTS[named]}" if named in _COMPONENTS else "")
    why = example.judgement.evidence.get("blame")
    return f"{words}: {why}" if why else words


def _name(result: CellResult) -> str:
    """A cell in words: what differs between cells of one finding."""
    case, toolchain = result.cell.case, result.cell.toolchain
    settings = [f"{name}={value_text(value)}" for name, value in case.settings.items() if value is not None]
    place = result.cell.arch + (f" on {result.cell.device.name}" if result.cell.device else "")
    versions = f"cuda-toolkit {toolchain.cuda_toolkit} · cuda-tile {toolchain.cuda_tile}"
    return f"{place} · {versions} · {' '.join(settings)}"


def _flat(facts: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, dict):
            pairs += _flat(value, f"{name}: ")
        elif value is not None:
            pairs.append((name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return pairs


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("harness.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: legible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _part(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """A Content-Security-Policy under which only this script and this style work, nothing is fetched,
    and no text can be turned into HTML."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
