"""All reports of a run, in one directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.bits import compare_bits, sentences
from harness.command_text import Place
from harness.known_issues.assess import NOTHING_KNOWN, Assessment
from harness.model import CellResult
from harness.report.files import forget_earlier, write_atomically
from harness.report.html import write_html
from harness.report.jsonl import write_results
from harness.report.junit import write_junit

REPORTS = ("report.html", "results.jsonl", "junit.xml", "run.json")
"""Files that every run writes below its --out."""


def write_reports(
    results: list[CellResult], facts: dict[str, Any], place: Place, known: Assessment = NOTHING_KNOWN
) -> list[Path]:
    """Write every one of REPORTS below `place.out`; returns their paths."""
    page, rows, suites, run = (place.out / name for name in REPORTS)
    write_results(results, rows)
    write_junit(results, suites, known, place)
    bits = compare_bits(results)
    write_atomically(
        run, json.dumps({**facts, "bits": bits.to_json(), "known_issues": known.to_json()}, indent=2) + "\n"
    )
    if bits.compared:
        agree = f"{bits.agreeing} of {bits.compared} outputs"
        facts = {**facts, "same_bits_in_every_cell": agree, "other_bits_within_the_bound": sentences(bits)}
    title = f"CUDA Tile regression run, {len(results)} cells"
    write_html(results, page, title=title, facts=facts, store=place.store)
    forget_earlier(place.out, REPORTS)
    return [page, rows, suites, run]
