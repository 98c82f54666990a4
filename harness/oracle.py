"""Three answers to one question about a judged cell: does it show the fault, is it free of it, or who knows.

Bisecting and reducing ask an oracle after every step. What does not bear on the fault must be
`UNKNOWN`: a toolchain that cannot do the architecture, another bug in the way, a failure of the
machine. Taking any of these for good or bad is how a search ends at an innocent version. Pure.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from harness.model import CellResult, Verdict


class Answer(StrEnum):
    """`BAD` shows the fault, `GOOD` is surely free of it, `UNKNOWN` tells nothing about it."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


class OracleError(ValueError):
    """The oracle cannot be understood, or does not fit the cell; the text says what to write."""


class Oracle(Protocol):
    """A pure predicate on results; `str()` is what `parse_oracle` takes."""

    def answer(self, result: CellResult) -> Answer: ...


@dataclass(frozen=True)
class SameSignature:
    """Bad is the very same finding; another finding stands in the way and is unknown."""

    signature: str

    def __str__(self) -> str:
        return f"signature={self.signature}"

    def answer(self, result: CellResult) -> Answer:
        if result.judgement.signature == self.signature:
            return Answer.BAD
        return Answer.GOOD if result.verdict.is_good else Answer.UNKNOWN


@dataclass(frozen=True)
class SameVerdict:
    """Bad is any finding of this verdict, whatever its words."""

    verdict: Verdict

    def __str__(self) -> str:
        return f"verdict={self.verdict}"

    def answer(self, result: CellResult) -> Answer:
        if result.verdict is self.verdict:
            return Answer.BAD
        return Answer.GOOD if result.verdict.is_good else Answer.UNKNOWN


@dataclass(frozen=True)
class HasAdvice:
    """Bad is a compiled cell that carries this remark."""

    kind: str

    def __str__(self) -> str:
        return f"advice={self.kind}"

    def answer(self, result: CellResult) -> Answer:
        if any(remark.kind == self.kind for remark in result.judgement.advice):
            return Answer.BAD
        return Answer.UNKNOWN if result.inspection is None else Answer.GOOD


@dataclass(frozen=True)
class Compared:
    """Bad is a cell whose `metric` compares so with `bound`; one that has no such number is unknown."""

    metric: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric}{self.comparison}{self.bound:g}"

    def answer(self, result: CellResult) -> Answer:
        measured = METRICS[self.metric](result)
        if measured is None:
            return Answer.UNKNOWN
        holds = _COMPARISONS[self.comparison](measured, self.bound)
        if self.metric == COMPILE_SECONDS and result.compile and result.compile.status == "timeout":
            # It would have gone on: only "longer than" is certain.
            return Answer.BAD if holds and self.comparison in (">", ">=") else Answer.UNKNOWN
        return Answer.BAD if holds else Answer.GOOD


COMPILE_SECONDS = "compile_seconds"

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def _compile_seconds(result: CellResult) -> float | None:
    """CPU seconds where they were measured: they do not grow with the load of the machine."""
    outcome = result.compile
    if outcome is None or outcome.status not in ("ok", "timeout"):
        return None
    return outcome.cpu_seconds or outcome.wall_seconds


def _resource(name: str) -> Callable[[CellResult], float | None]:
    def read(result: CellResult) -> float | None:
        value = getattr(result.inspection, name, None)
        return None if value is None else float(value)

    return read


_RESOURCES = ("registers", "threads", "stack_bytes", "shared_bytes", "code_bytes", "ctas_per_sm")

METRICS: dict[str, Callable[[CellResult], float | None]] = {
    **{name: _resource(name) for name in (*_RESOURCES, "spill_instructions")},
    COMPILE_SECONDS: _compile_seconds,
}
"""What can be compared. Registers and stack are per thread, shared memory per CTA, seconds of CPU."""

_COMPARED = re.compile(r"(\w+)\s*(>=|<=|==|!=|>|<)\s*(\S+)")
_FORMS = "signature, verdict=WORD, advice=KIND, or a comparison such as registers>=255 or compile_seconds>5"


def parse_oracle(text: str, original: CellResult) -> Oracle:
    """The oracle that `text` names, which must call the original bad. Raises OracleError."""
    oracle = _parse(text.strip()) or _same_signature(original)
    if oracle.answer(original) is Answer.BAD:
        return oracle
    raise OracleError(f'the oracle "{oracle}" does not call the cell bad: {_seen(oracle, original)}')


def recall_oracle(text: str, signature: str) -> Oracle:
    """The oracle that `text` names, where "signature" stands for this one. Raises OracleError."""
    told, equals, name = text.strip().partition("signature=")
    if equals and not told:
        return SameSignature(name)
    return _parse(text.strip()) or SameSignature(signature)


def check_oracle(text: str) -> None:
    """Raises OracleError for a text that no cell could make sense of."""
    _parse(text.strip())


def _parse(text: str) -> Oracle | None:
    """None stands for the signature of the original."""
    if text in ("", "signature"):
        return None
    name, equals, value = (part.strip() for part in text.partition("="))
    if name == "verdict" and equals:
        return SameVerdict(_verdict(value))
    if name == "advice" and equals and value:
        return HasAdvice(value)
    compared = _COMPARED.fullmatch(text)
    if compared is None:
        raise OracleError(f'"{text}" is no oracle; write {_FORMS}')
    metric, comparison, number = compared.groups()
    if metric not in METRICS:
        raise OracleError(f'nothing called "{metric}" can be compared; {_choice(metric, METRICS)}')
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound) or bound < 0:
        raise OracleError(f'"{number}" is no number to compare {metric} with; write {metric}{comparison}255')
    return Compared(metric, comparison, bound)


def _same_signature(original: CellResult) -> Oracle:
    signature = original.judgement.signature
    if signature is not None and original.verdict.is_finding:
        return SameSignature(signature)
    kinds = sorted({remark.kind for remark in original.judgement.advice})
    hint = "".join(f", such as advice={kind}" for kind in kinds[:1])
    raise OracleError(
        f"the cell shows no fault to look for ({original.judgement.summary.rstrip('.')}); "
        f"name what is bad with --oracle{hint or ', such as registers>=255'}"
    )


def _verdict(word: str) -> Verdict:
    words = [str(verdict) for verdict in Verdict if not verdict.is_good]
    if word in words:
        return Verdict(word)
    if word in [str(verdict) for verdict in Verdict]:
        raise OracleError(f'"{word}" is the verdict of a cell without a fault; name a fault')
    raise OracleError(f'there is no verdict "{word}"; {_choice(word, words)}')


def _choice(word: str, known: Iterable[str]) -> str:
    words = list(known)
    near = difflib.get_close_matches(word[:80], words, n=1)
    return f"did you mean {near[0]}?" if near else f"it can be {', '.join(words)}"


def _seen(oracle: Oracle, result: CellResult) -> str:
    match oracle:
        case Compared(metric=metric):
            measured = METRICS[metric](result)
            return f"its {metric} {'are not known' if measured is None else f'are {measured:g}'}"
        case HasAdvice():
            kinds = sorted({remark.kind for remark in result.judgement.advice})
            return f"it carries {'the advice ' + ', '.join(kinds) if kinds else 'no advice'}"
    return f"its verdict is {result.verdict}"
