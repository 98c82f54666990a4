"""Does a repro still do what its repro.toml says? Asked of bytecode, kernel and script, place by place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from harness.lab import Deadlines, Lab
from harness.model import Cell, CellResult
from harness.oracle import Answer, Oracle
from harness.process import Finished
from harness.repro.environment import Environment, environment
from harness.repro.identity import oracle_of
from harness.repro.laboratory import from_bytecode, retraced
from harness.repro.spec import Kind, Place, Repro, bytecode_file
from harness.toolchain import ProvisionError

_SCRIPT_ALLOWANCE = 60.0
"""Seconds a script may take besides its compile: two starts of Python, probes of the compiler."""

_SYMPTOM, _OK, _UNKNOWN = (1, "SYMPTOM: "), (0, "OK: "), (2, "UNKNOWN: ")


class Way(StrEnum):
    """What was asked."""

    BYTECODE = "bytecode"
    KERNEL = "kernel"
    SCRIPT = "script"


@dataclass(frozen=True)
class Check:
    """One claim of a repro.toml, and whether it held. `seen` is one line."""

    repro: str
    way: Way
    place: Place
    target: str
    held: bool
    seen: str

    @property
    def claim(self) -> str:
        return "bad" if self.place.bad else "good"


def verify(lab: Lab, repro: Repro, report: Callable[[Check], None]) -> bool:
    """Check every claim, and tell whether all held."""
    lab.deadlines = Deadlines(lab.deadlines.trace, repro.deadline)
    held = True
    for check in _checks(lab, repro):
        report(check)
        held = held and check.held
    return held


def _checks(lab: Lab, repro: Repro) -> Iterator[Check]:
    if repro.kind is Kind.CELL:
        for place, cell in repro.cells():
            yield from _cell(lab, repro, place, cell)
    seen: set[tuple[object, ...]] = set()
    for place in repro.places:
        # Of frontends that differ in nothing that is claimed, one will do: a script takes seconds.
        chain = place.toolchain
        backend = (chain.cuda_toolkit, chain.tileiras, chain.nvvm, chain.ptxas) if chain else place.packages
        claim = (place.bad, place.targets[:1], backend)
        if repro.is_on_device and seen:
            continue  # without a GPU the script can only compile, which the checks above did
        if repro.kind is Kind.SCRIPT or claim not in seen:
            seen.add(claim)
            yield script_check(lab, repro, place)


def _cell(lab: Lab, repro: Repro, place: Place, cell: Cell) -> Iterator[Check]:
    oracle = oracle_of(repro)
    kept = repro.folder / bytecode_file(cell.arch)
    if place.bad and repro.bytecode_version is not None and not kept.is_file():
        yield Check(repro.name, Way.BYTECODE, place, cell.arch, False, f"{kept.name} is missing")
    for way, ask in ((Way.BYTECODE, from_bytecode), (Way.KERNEL, retraced)):
        try:
            result = ask(lab, repro, cell)
        except ProvisionError as error:
            yield Check(repro.name, way, place, cell.arch, False, " ".join(str(error).split()))
            continue
        if result is not None:
            held, seen = holds(repro, place, result, oracle)
            yield Check(repro.name, way, place, cell.arch, held, seen)


def holds(repro: Repro, place: Place, result: CellResult, oracle: Oracle) -> tuple[bool, str]:
    """Whether a result is what is claimed of this place, and what was seen. Pure."""
    answer, seen = oracle.answer(result), " ".join(result.judgement.summary.split())
    if repro.is_on_device:
        return _same_code(place, result)
    if not place.bad:
        return answer is Answer.GOOD, seen
    if repro.verdict and result.verdict != repro.verdict:
        return False, f"{seen} ({result.verdict}, not {repro.verdict})"
    if repro.oracle.startswith("advice=") and answer is Answer.BAD:
        kind = repro.oracle.partition("=")[2]
        seen = next(remark.text for remark in result.judgement.advice if remark.kind == kind)
    return answer is Answer.BAD, seen


def _same_code(place: Place, result: CellResult) -> tuple[bool, str]:
    """Only a GPU can show the fault; anywhere it can be shown that the code is what a GPU ran."""
    code = result.inspection.code_sha256 if result.inspection is not None else None
    if code is None:
        return False, " ".join(result.judgement.summary.split())
    if code != place.code_sha256:
        return (
            False,
            f"writes other machine code ({code[:12]}) than a GPU ran ({(place.code_sha256 or '')[:12]})",
        )
    return True, f"writes the machine code that a GPU ran ({code[:12]})"


def script_check(lab: Lab, repro: Repro, place: Place) -> Check:
    """Run repro.py in one place and see whether its last line is what is claimed."""
    target = place.targets[0] if place.targets else ""
    try:
        with environment(lab, place) as there:
            finished = run_script(lab, there, repro, target)
    except ProvisionError as error:
        return Check(repro.name, Way.SCRIPT, place, target, False, " ".join(str(error).split()))
    line = last_line(finished.stdout) or last_line(finished.stderr) or "no output"
    code, word = _UNKNOWN if repro.is_on_device else _SYMPTOM if place.bad else _OK
    held = finished.exit_code == code and line.startswith(word)
    if finished.timed_out:
        line = f"did not end within {finished.wall_seconds:.0f} s; {line}"
    return Check(repro.name, Way.SCRIPT, place, target, held, line)


def run_script(lab: Lab, there: Environment, repro: Repro, target: str) -> Finished:
    """Run repro.py there, for one target."""
    arguments = ["--arch", target] if target and repro.kind is Kind.CELL else []
    return there.run(lab, repro.script, 2 * repro.deadline + _SCRIPT_ALLOWANCE, *arguments)


def last_line(text: str) -> str:
    """The last line with anything on it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
