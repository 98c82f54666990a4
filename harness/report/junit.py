"""`junit.xml` for CI servers: a suite per toolchain and target, a case per cell.

What becomes what:
- findings are `failure`s, typed by verdict, with signature, evidence and the command that explains them;
- `infra_error`, `toolchain_broken`, `not_run` and `tainted` are `error`s: an answer was promised and none
  was had, so a CI server must not show them green;
- `skipped` and `unsupported` are `skipped`, with the reason.

The file follows the schema that the Jenkins xunit plugin checks (junit-10), and each suite by
itself the stricter one of Maven Surefire. Neither allows properties in a case, so those of a cell are
properties of its suite, named "CELL.registers", "CELL.cubin_sha256" and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import junitparser
from junitparser import xunit2

from harness.cluster import arch_key, shape_text, value_text
from harness.model import CellResult, Verdict, canonical_json
from harness.report.files import write_atomically
from harness.report.jsonl import row, seconds

FILE_NAME = "junit.xml"
_EVIDENCE = 6000
_ERRORS = (Verdict.INFRA_ERROR, Verdict.TOOLCHAIN_BROKEN, Verdict.NOT_RUN, Verdict.TAINTED)
_SKIPPED = (Verdict.SKIPPED, Verdict.UNSUPPORTED)
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(results: Iterable[CellResult], path: Path) -> None:
    """Write the report of these results. Raises OSError."""
    write_document(build(results), path)


def write_document(document: xunit2.JUnitXml, path: Path) -> None:
    """Write a document whole or not at all. Raises OSError."""
    made = document.tostring()  # type: ignore[no-untyped-call]
    text = made.decode("utf-8") if isinstance(made, bytes) else str(made)
    if not text.startswith("<?xml"):
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'
    write_atomically(path, text)


def build(results: Iterable[CellResult]) -> xunit2.JUnitXml:
    """The document, with suites and cases in the order of the results."""
    suites: dict[str, list[CellResult]] = {}
    for result in results:
        suites.setdefault(_suite_name(result), []).append(result)
    document = xunit2.JUnitXml("harness")
    for name, members in sorted(suites.items(), key=lambda item: _suite_order(item[1][0])):
        document.add_testsuite(_suite(name, members))
    document.update_statistics()  # type: ignore[no-untyped-call]
    return document


def xml_text(text: object) -> str:
    """Text without the characters XML 1.0 forbids; each leaves a visible mark."""
    return _ILLEGAL.sub("\ufffd", str(text))


def _suite_name(result: CellResult) -> str:
    device = f" on {result.cell.device.name}" if result.cell.device else ""
    return xml_text(f"{result.cell.toolchain.name} {result.cell.arch}{device}")


def _suite_order(result: CellResult) -> tuple[str, tuple[int, str], str]:
    device = result.cell.device
    return result.cell.toolchain.name, arch_key(result.cell.arch), device.name if device else ""


def _suite(name: str, results: Sequence[CellResult]) -> xunit2.TestSuite:
    suite = xunit2.TestSuite(name)  # type: ignore[no-untyped-call]
    for key, value in _suite_properties(results):
        suite.add_property(xml_text(key), xml_text(value))
    for result in results:
        suite.add_testcase(_case(result))
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
        yield from ((f"{result.cell.id}.{key}", value) for key, value in _cell_properties(result))


def _cell_properties(result: CellResult) -> Iterable[tuple[str, object]]:
    if result.inspection is not None:
        yield "registers", result.inspection.registers
    for stage, amount in seconds(result).items():
        yield f"seconds.{stage}", f"{amount:.3f}"
    if result.trace is not None and result.trace.bytecode_sha256:
        yield "bytecode_sha256", result.trace.bytecode_sha256
    if result.compile is not None and result.compile.cubin_sha256:
        yield "cubin_sha256", result.compile.cubin_sha256


def _case(result: CellResult) -> xunit2.TestCase:
    case, cell = result.cell.case, result.cell
    settings = " ".join(f"{name}={value_text(value)}" for name, value in case.settings.items())
    stages = seconds(result)
    time = sum(stages.get(stage, 0.0) for stage in ("trace", "compile", "inspect", "execute"))
    made = xunit2.TestCase(
        xml_text(f"{shape_text(case.shape)} {case.dtype} {settings} [{cell.id}]"),
        classname=xml_text(case.kernel),
        time=round(time, 3),
    )
    outcome = _outcome(result)
    if outcome is not None:
        made.result = [outcome]
    remarks = [f"advice: {remark.kind}: {remark.text}" for remark in result.judgement.advice]
    if result.verdict.is_good or remarks:
        made.system_out = xml_text("\n".join([result.judgement.summary, *remarks]))
    return made


def _outcome(result: CellResult) -> junitparser.junitparser.FinalResult | None:
    judgement, verdict = result.judgement, result.verdict
    if verdict.is_good:
        return None
    message = xml_text(judgement.summary)
    if verdict in _SKIPPED:
        return junitparser.Skipped(message)
    kind = junitparser.Error if verdict in _ERRORS else junitparser.Failure
    outcome = kind(message, str(verdict))
    evidence = canonical_json(judgement.evidence)
    outcome.text = xml_text(
        "\n".join(
            [
                f"signature: {judgement.signature or 'none'}",
                *(f"proof: {line}" for line in judgement.evidence.get("proof", ())),
                f"evidence: {evidence[:_EVIDENCE]}{'…' * (len(evidence) > _EVIDENCE)}",
                f"explain: python -m harness explain {result.cell.id}",
            ]
        )
    )
    return outcome
