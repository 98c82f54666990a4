"""The gate as `junit.xml`: a suite for the whole comparison, a case for each pair of cells.

A case fails if it is among the cells of a reason that fails the gate, is an error if it is undecided, and
skipped if there was no answer to compare. What a pair differs in otherwise is its output.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import junitparser
from junitparser import xunit2

from harness.gate.compare import Change, Pair
from harness.gate.decision import Decision, Reason, Weight
from harness.plan import describe
from harness.report.junit import write_document, xml_text

_KINDS = {Weight.FAILS: junitparser.Failure, Weight.UNDECIDED: junitparser.Error}


def write_gate_junit(decision: Decision, path: Path) -> None:
    """Write the report of a decision. Raises OSError."""
    suite = xunit2.TestSuite(xml_text(f"gate {decision.baseline} → {decision.candidate}"))  # type: ignore[no-untyped-call]
    suite.add_property("decision", str(decision.answer))
    suite.add_property("headline", xml_text(decision.headline))
    weighty: dict[str, Reason] = {}
    for reason in decision.reasons:
        if reason.weight in _KINDS:
            for cell in reason.cells:
                weighty.setdefault(cell, reason)
    for pair in decision.pairs:
        suite.add_testcase(_case(pair, weighty))
    suite.update_statistics()  # type: ignore[no-untyped-call]
    document = xunit2.JUnitXml("harness gate")
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    write_document(document, path)


def _case(pair: Pair, weighty: Mapping[str, Reason]) -> xunit2.TestCase:
    shown = pair.candidate or pair.baseline
    assert shown is not None
    made = xunit2.TestCase(
        xml_text(f"{describe(shown.cell)} [{shown.cell.id}]"),
        classname=xml_text(shown.cell.case.kernel),
        time=0.0,
    )
    reason = weighty.get(shown.cell.id)
    lines = [
        f"{pair.change}: {_told(pair)}",
        *(f"{d.quantity}: {d.baseline:g} -> {d.candidate:g} {d.note}".rstrip() for d in pair.differences),
    ]
    if reason is not None:
        outcome = _KINDS[reason.weight](xml_text(reason.text), reason.kind)
        outcome.text = xml_text("\n".join([*lines, f"explain: {reason.command}"]))
        made.result = [outcome]
    elif pair.change is Change.UNKNOWN:
        made.result = [junitparser.Skipped(xml_text(shown.judgement.summary))]
    else:
        made.system_out = xml_text("\n".join(lines))
    return made


def _told(pair: Pair) -> str:
    words = [str(side.verdict) if side else "not asked" for side in (pair.baseline, pair.candidate)]
    return " -> ".join(words)
