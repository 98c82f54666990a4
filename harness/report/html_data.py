"""What the HTML report shows, as plain values: the head of the page, its findings, and its cells. Pure.

The page opens fast because it reads little at first: `cells` holds one short column per property, and
everything else about a cell lies in `blocks`, lines of JSON that are parsed when somebody looks.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.assumptions import assumptions, telling
from harness.cluster import AdviceGroup, Finding, arch_key, findings, shape_text, value_text
from harness.legible import legible, legible_json
from harness.model import Case, CellResult, Verdict
from harness.report.compiler_alone import compiler_alone
from harness.report.jsonl import seconds
from harness.report.table import backend_text
from harness.report.words import LOOKS, reported
from harness.version_span import version_key

SassOf = Callable[[CellResult], Callable[[int], Sequence[str]] | None]
"""For a result, what reads machine code around a byte offset; None where its cubin is gone."""

MAX_TEXT = 16_000
"""Characters of one text that the page keeps; the rest is in the result store."""

_MAX_ITEMS = 2_000
_MAX_DISASSEMBLED = 64


@dataclass(frozen=True)
class Vocabulary:
    """Numbers texts in the order they come; lists of cells hold the numbers."""

    numbers: dict[str, int]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Vocabulary:
        return cls({text: at for at, text in enumerate(dict.fromkeys(texts))})

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    @property
    def texts(self) -> list[str]:
        return list(self.numbers)


def page_data(
    results: Sequence[CellResult], found: Sequence[Finding], sass_of: SassOf | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The first-look value of the page, and the lines of JSON that its cells refer to by number."""
    kernels = Vocabulary({})
    dtypes = Vocabulary({})
    summaries = Vocabulary({})
    blocks = Vocabulary({})
    devices = Vocabulary.of([""])
    signatures = Vocabulary.of(finding.name for finding in found)
    named = {cell: finding.name for finding in found for cell in finding.cells}
    tiles = Vocabulary.of(sorted({r.cell.toolchain.cuda_tile for r in results}, key=version_key))
    archs = Vocabulary.of(sorted({r.cell.arch for r in results}, key=arch_key))
    backends = Vocabulary.of(
        sorted({backend_text(r) for r in results}, key=lambda text: (version_key(text.split()[0]), text))
    )
    answers = Vocabulary({})
    verdicts = list(Verdict)
    cases: dict[Case, int] = {}
    apart = telling(
        (result.cell.case for result in results), lambda case: (case.kernel, *_axes(case).items())
    )
    cells: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    sass = _Disassembly(sass_of)
    for result in results:
        cell, judgement = result.cell, result.judgement
        case = cases.setdefault(cell.case, len(cases))
        inspection = result.inspection
        values = {
            "id": cell.id,
            "case": case,
            "tile": tiles[cell.toolchain.cuda_tile],
            "backend": backends[backend_text(result)],
            "arch": archs[cell.arch],
            "device": devices[cell.device.name if cell.device else ""],
            "verdict": verdicts.index(result.verdict),
            "signature": signatures[named[cell.id]] if cell.id in named else -1,
            "summary": summaries[judgement.summary],
            "answer": answers[_answer(result)],
            "advice": len(judgement.advice),
            "registers": inspection.registers if inspection else None,
            "shared": inspection.shared_bytes if inspection else None,
            "compile": _compile_seconds(result),
            "run": device_microseconds(result),
            "blocks": [blocks[text] for text in reported(result, lambda told: _blocks(told, sass))],
        }
        for name, column in cells.items():
            column.append(values[name])
    return {
        "cells": cells,
        "cases": legible_json([_case(case, kernels, dtypes, apart) for case in cases]),
        "kernels": legible_json(kernels.texts),
        "dtypes": legible_json(dtypes.texts),
        "summaries": [_cut(legible(text)) for text in summaries.texts],
        "signatures": legible_json(signatures.texts),
        "tiles": legible_json(tiles.texts),
        "backends": legible_json(backends.texts),
        "archs": legible_json(archs.texts),
        "devices": legible_json(devices.texts),
        "verdicts": [_look(verdict) for verdict in verdicts],
    }, blocks.texts


_COLUMNS = (
    *("id", "case", "tile", "backend", "arch", "device", "verdict", "signature", "summary", "answer"),
    *("advice", "registers", "shared", "compile", "run", "blocks"),
)


def embeddable(value: Any) -> str:
    """JSON that nothing inside can break out of: neither a script element nor an HTML comment can end or
    begin in it, and every character is ASCII."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(value: Any) -> Any:
    """A value JSON can hold: texts legible, long texts and lists cut, NaN and infinities as text."""
    if isinstance(value, dict):
        return {legible(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        kept = [plain(item) for item in value[:_MAX_ITEMS]]
        return [*kept, f"… and {len(value) - _MAX_ITEMS} more"] if len(value) > _MAX_ITEMS else kept
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return _cut(legible(value))
    return value if isinstance(value, int | float | None) else str(value)


def counts(results: Sequence[CellResult]) -> list[dict[str, Any]]:
    """How many cells got each verdict, findings first, then good ones, then unknown ones."""
    seen = Counter(result.verdict for result in results)
    order = sorted(seen, key=lambda v: (not v.is_finding, not v.is_good, list(Verdict).index(v)))
    return [{**_look(verdict), "count": seen[verdict]} for verdict in order]


def device_microseconds(result: CellResult) -> float | None:
    """Median device time of a cell that was timed, in µs."""
    timing = (result.observation or {}).get("timing") or {}
    return _number(timing.get("median_us"))


def where_text(group: Finding | AdviceGroup) -> str:
    """Kernels, settings and architectures in one line."""
    kernels = group.kernels if isinstance(group, Finding) else ()
    return " · ".join(filter(None, [", ".join(kernels), group.settings, ", ".join(group.archs)]))


def group_findings(results: Sequence[CellResult]) -> tuple[Finding, ...]:
    """The findings of a run, those on which people act first: broken toolchains and failures of the
    machine come last."""
    return tuple(sorted(findings(results), key=lambda finding: not finding.verdict.is_finding))


# --- inside -----------------------------------------------------------------------------------


def _case(case: Case, kernels: Vocabulary, dtypes: Vocabulary, apart: Sequence[str]) -> dict[str, Any]:
    told = assumptions(case)
    axes = _axes(case) | {name: told[name] for name in apart if name in told}
    return {"kernel": kernels[case.kernel], "dtype": dtypes[case.dtype], "axes": axes}


def _axes(case: Case) -> dict[str, str]:
    axes = {"shape": shape_text(case.shape), "dtype": case.dtype}
    axes |= {name: value_text(value) for name, value in case.settings.items()}
    return axes | {"layout": case.layout, "values": case.values, "seed": str(case.seed)}


def _look(verdict: Verdict) -> dict[str, Any]:
    look = LOOKS[verdict]
    kind = "bad" if verdict.is_finding else "good" if verdict.is_good else "unknown"
    return {
        "name": str(verdict),
        "symbol": look.symbol,
        "word": look.word,
        "phrase": look.phrase,
        "kind": kind,
    }


def _answer(result: CellResult) -> str:
    """What makes two cells look equal in the matrix; compile times are noise, so they do not count."""
    registers = result.inspection.registers if result.inspection else None
    remarks = sorted({r.kind for r in result.judgement.advice if r.kind != "slow_compile"})
    return f"{result.verdict}|{result.judgement.signature}|{registers}|{','.join(remarks)}"


def _compile_seconds(result: CellResult) -> float | None:
    """CPU seconds where they were measured: they do not grow with the load of the machine. None for a compile
    that failed, which may have failed early."""
    if result.compile is None or result.compile.status != "ok":
        return None
    known = seconds(result)
    return _number(known.get("compile_cpu") or known["compile"])


def _number(value: Any) -> float | None:
    """To three places; None for what no chart can show."""
    return round(float(value), 3) if isinstance(value, int | float) and math.isfinite(value) else None


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _blocks(result: CellResult, sass: _Disassembly) -> list[str]:
    """Everything about a cell in six lines, each of which many cells may share."""
    judgement = result.judgement.to_json()
    inspection = result.inspection.to_json() if result.inspection else {}
    books = inspection.get("books") or {}
    observation = result.observation or {}
    evidence = {
        key: value
        for key, value in judgement["evidence"].items()
        if not any(key in other and other[key] == value for other in (inspection, books))
    }
    compile = result.compile.to_json() if result.compile else None
    if compile is not None:
        del compile["rss_over_time"], compile["cpu_over_time"]
    excerpts = sass.around_sites(result)
    asked = {
        "toolchain": result.cell.toolchain.name,
        "components": {
            name: result.components.get(name) or getattr(result.cell.toolchain, name)
            for name in ("tileiras", "nvvm", "ptxas")
        },
        "seconds": result.seconds,
        "alone": compiler_alone(result),
    }
    whole = [
        {**judgement, "evidence": evidence},
        asked,
        result.trace.to_json() if result.trace else None,
        compile,
        {**inspection, "sass": excerpts} if excerpts else inspection or None,
        {key: value for key, value in observation.items() if key not in evidence} or None,
    ]
    return [embeddable(plain(value)) for value in whole]


class _Disassembly:
    """Machine code around the register-pool sites of findings; a cubin is asked about once."""

    def __init__(self, sass_of: SassOf | None) -> None:
        self._sass_of = sass_of
        self._known: dict[str, dict[str, Sequence[str]]] = {}

    def around_sites(self, result: CellResult) -> dict[str, Sequence[str]]:
        """Lines by the site's offset in decimal; empty where there is nothing to show."""
        books = result.inspection.books if result.inspection else None
        cubin = result.compile.cubin_sha256 if result.compile else None
        if self._sass_of is None or books is None or cubin is None or not result.verdict.is_finding:
            return {}
        if cubin not in self._known and len(self._known) < _MAX_DISASSEMBLED:
            context = self._sass_of(result)
            sites = books.sites if context is not None else ()
            self._known[cubin] = {str(site.pc): context(site.pc) for site in sites if context is not None}
        return self._known.get(cubin, {})
