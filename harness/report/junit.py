"""`junit.xml` for CI servers: a suite per toolchain and target, a case per cell.

What becomes what:
- findings are `failure`s, typed by verdict, with signature, evidence and the command that explains them;
- `infra_error`, `toolchain_broken`, `not_run` and `tainted` are `error`s: an answer was promised and none
  was had, so a CI server must not show them green;
- `skipped` and `unsupported` are `skipped`, with the reason;
- a known issue is `skipped` too, as an expected failure is everywhere; one that is unexpectedly gone is
  a `failure` of type `fixed`;
- a cell that was run again has a `rerunFailure` for every run that confirmed it, and a flaky one a
  `flakyFailure` for every bad run. Flaky cells are failures all the same, as they make the run fail.

Evidence is in `system-out`, cut to a size that servers take. docs/junit.md says what each shows.

The file follows the schema that the Jenkins xunit plugin checks (junit-10), and each suite by
itself the stricter one of Maven Surefire. Neither allows properties in a case, so those of a cell are
properties of its suite, named "CELL.registers", "CELL.cubin_sha256" and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import junitparser
from junitparser import xunit2

from harness.assumptions import shown, telling
from harness.cluster import arch_key, shape_text, value_text
from harness.command_text import HERE, Place
from harness.known_issues.assess import NOTHING_KNOWN, Assessment
from harness.legible import legible
from harness.model import Case, CellResult, Verdict, canonical_json
from harness.report.files import write_atomically
from harness.report.jsonl import row, seconds
from harness.report.words import reported

FILE_NAME = "junit.xml"
_EVIDENCE = 6000
"""Characters of evidence a case's output may hold."""

_ALL_EVIDENCE = 8_000_000
"""The same for a file: GitLab takes reports of up to 30 MB."""

_ERRORS = (Verdict.INFRA_ERROR, Verdict.TOOLCHAIN_BROKEN, Verdict.NOT_RUN, Verdict.TAINTED)
_SKIPPED = (Verdict.SKIPPED, Verdict.UNSUPPORTED)
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(
    results: Iterable[CellResult], path: Path, known: Assessment = NOTHING_KNOWN, place: Place = HERE
) -> None:
    """Write the report of these results, which lie at `place`. Raises OSError."""
    write_document(build(results, known, place), path)


def write_document(document: xunit2.JUnitXml, path: Path) -> None:
    """Write a document whole or not at all. Raises OSError."""
    made = document.tostring()  # type: ignore[no-untyped-call]
    text = made.decode("utf-8") if isinstance(made, bytes) else str(made)
    if not text.startswith("<?xml"):
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'
    write_atomically(path, text)


def build(
    results: Iterable[CellResult], known: Assessment = NOTHING_KNOWN, place: Place = HERE
) -> xunit2.JUnitXml:
    """The document, with suites and cases in the order of the results."""
    suites: dict[str, list[CellResult]] = {}
    for result in results:
        suites.setdefault(_suite_name(result), []).append(result)
    document, run = xunit2.JUnitXml("harness"), _Run(known, place, _ALL_EVIDENCE)
    for name, members in sorted(suites.items(), key=lambda item: _suite_order(item[1][0])):
        document.add_testsuite(_suite(name, members, run))
    document.update_statistics()  # type: ignore[no-untyped-call]
    return document


def xml_text(text: object) -> str:
    """Text without the characters XML 1.0 forbids: they are spelled out, or leave a visible mark."""
    return _ILLEGAL.sub("\ufffd", legible(str(text)))


def _suite_name(result: CellResult) -> str:
    device = f" on {result.cell.device.name}" if result.cell.device else ""
    return xml_text(f"{result.cell.toolchain.name} {result.cell.arch}{device}")


def _suite_order(result: CellResult) -> tuple[str, tuple[int, str], str]:
    device = result.cell.device
    return result.cell.toolchain.name, arch_key(result.cell.arch), device.name if device else ""


def _suite(name: str, results: Sequence[CellResult], run: _Run) -> xunit2.TestSuite:
    suite = xunit2.TestSuite(name)  # type: ignore[no-untyped-call]
    apart = telling((result.cell.case for result in results), _name)
    for key, value in _suite_properties(results):
        suite.add_property(xml_text(key), xml_text(value))
    for result in results:
        suite.add_testcase(reported(result, lambda told: _case(told, run, apart)))
    suite.update_statistics()  # type: ignore[no-untyped-call]
    suite.time = round(suite.time, 3)
    return suite


def _suite_properties(results: Sequence[CellResult]) -> Iterable[tuple[str, object]]:
    cell = results[0].cell
    yield "cuda_tile", cell.toolchain.cuda_tile
    yield "cuda_toolkit", cell.toolchain.cuda_toolkit
    for name, version in row(results[0])["components"].items():
        if version is not None:
            yield name, version
    yield "arch", cell.arch
    if cell.device is not None:
        yield "device", cell.device.name
    for result in results:
        properties = reported(result, lambda told: list(_cell_properties(told)))
        yield from ((f"{result.cell.id}.{key}", value) for key, value in properties)


def _cell_properties(result: CellResult) -> Iterable[tuple[str, object]]:
    if result.inspection is not None:
        yield "registers", result.inspection.registers
    for stage, amount in seconds(result).items():
        yield f"seconds.{stage}", f"{amount:.3f}"
    if result.trace is not None and result.trace.bytecode_sha256:
        yield "bytecode_sha256", result.trace.bytecode_sha256
    if result.compile is not None and result.compile.cubin_sha256:
        yield "cubin_sha256", result.compile.cubin_sha256


def _name(case: Case) -> tuple[str, str]:
    """A case's class and name, as far as its settings go."""
    settings = " ".join(f"{name}={value_text(value)}" for name, value in case.settings.items())
    return case.kernel, " ".join(filter(None, [shape_text(case.shape), case.dtype, settings]))


def _case(result: CellResult, run: _Run, apart: Sequence[str]) -> xunit2.TestCase:
    case, cell = result.cell.case, result.cell
    kernel, name = _name(case)
    stages = seconds(result)
    time = sum(stages.get(stage, 0.0) for stage in ("trace", "compile", "inspect", "execute"))
    made = xunit2.TestCase(
        xml_text(" ".join([name, *shown(case, apart), f"[{cell.id}]"])),
        classname=xml_text(kernel),
        time=round(time, 3),
    )
    outcome = _outcome(result, run)
    if outcome is not None:
        made.append(outcome)  # type: ignore[no-untyped-call]
    for attempt in _attempts(result):
        made.add_interim_result(attempt)
    remarks = [f"advice: {remark.kind}: {remark.text}" for remark in result.judgement.advice]
    told = [] if result.verdict.is_good else [f"evidence: {run.cut(canonical_json(_evidence(result)))}"]
    made.system_out = xml_text("\n".join([result.judgement.summary, *remarks, *told]))
    return made


def _outcome(result: CellResult, run: _Run) -> junitparser.junitparser.FinalResult | None:
    judgement, verdict = result.judgement, result.verdict
    message = xml_text(judgement.summary)
    known, explained = run.known, run.place.explain(result.cell.id)
    gone = next((seen for seen in known.fixed if result.cell.id in seen.cells), None)
    if gone is not None:
        return _told(junitparser.Failure(xml_text(gone.text), "fixed"), result, explained)
    if verdict.is_good:
        return None
    if verdict in _SKIPPED:
        return junitparser.Skipped(message)
    if result.cell.id in known.expected:
        return junitparser.Skipped(xml_text(f"known issue {known.expected[result.cell.id]}: {message}"))
    kind = junitparser.Error if verdict in _ERRORS else junitparser.Failure
    return _told(kind(message, str(verdict)), result, explained)


def _told(
    outcome: junitparser.junitparser.FinalResult, result: CellResult, explained: str
) -> junitparser.junitparser.FinalResult:
    """With what is shown at once: the rest is in the case's output."""
    outcome.text = xml_text(
        "\n".join(
            [
                f"signature: {result.judgement.signature or 'none'}",
                *(f"proof: {line}" for line in result.judgement.evidence.get("proof", ())),
                f"explain: {explained}",
            ]
        )
    )
    return outcome


def _attempts(result: CellResult) -> Iterable[xunit2.InterimResult]:
    """The runs of a cell that ran more than once, as Surefire tells reruns.

    A bad verdict that was confirmed: each run after the first, as a rerunFailure. One that changed:
    each bad run, as a flakyFailure.
    """
    verdicts = result.judgement.evidence.get("verdicts")
    if result.verdict is Verdict.FLAKY and verdicts:
        for number, judged in enumerate(verdicts, 1):
            if not Verdict(judged["verdict"]).is_good:
                text = f"run {number} of {len(verdicts)}: {judged['summary']}"
                yield _interim(xunit2.FlakyFailure, judged["verdict"], text)
    elif result.verdict.is_finding and result.judgement.evidence.get("confirmed"):
        for number, _ in enumerate((result.observation or {}).get("attempts") or (), 2):
            text = f"run {number}, in a fresh process: {result.judgement.summary}"
            yield _interim(xunit2.RerunFailure, str(result.verdict), text)


def _interim(kind: type[xunit2.InterimResult], type_: str, text: str) -> xunit2.InterimResult:
    made = kind(xml_text(text), xml_text(type_))
    made.stack_trace = xml_text(text)
    return made


def _evidence(result: CellResult) -> dict[str, Any]:
    """The evidence without what stands elsewhere in the case."""
    return {key: value for key, value in result.judgement.evidence.items() if key != "proof"}


@dataclass
class _Run:
    """What is known of a run's faults, where its results lie, and how many characters of evidence the file
    may still hold."""

    known: Assessment
    place: Place
    left: int

    def cut(self, evidence: str) -> str:
        kept = evidence[: min(_EVIDENCE, self.left)]
        self.left -= len(kept)
        return kept if len(kept) == len(evidence) else f"{kept}… ({len(evidence)} in all, in results.jsonl)"
