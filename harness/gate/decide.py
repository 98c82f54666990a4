"""Go, no-go or cannot tell, and the reasons, each with its smallest example and the command that
explains it. Pure.

The rules of the matrix say which differences fail. No failure and nothing undecided is a go; a failure is
a no-go whatever else is unknown; otherwise, and where nothing at all could be compared, nobody can tell.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from harness.cluster import arch_key, describe_settings, simplest
from harness.gate.compare import Change, Difference, Pair, compile_seconds
from harness.gate.decision import Answer, Decision, Reason, Weight
from harness.matrix import GateRules
from harness.model import CellResult
from harness.plan import describe
from harness.report.words import LOOKS, count_text

KnownAs = Callable[[CellResult], str | None]
"""The id of the known issue that a bad cell is an instance of, if it is one."""

_ORDER = tuple(Weight)
_WORST_FIRST = (
    *(Change.REGRESSED, Change.NEWLY_BAD, Change.NEWLY_UNSUPPORTED, Change.LOST),
    *(Change.FIXED, Change.STILL_BAD),
    *("device_time", "registers", "spills", "shared_memory", "output_bits", "compile_seconds"),
    Change.UNKNOWN,
)
_QUANTITIES = {
    "registers": ("registers a thread", "{:.0f}"),
    "spills": ("spill instructions", "{:.0f}"),
    "shared_memory": ("bytes of shared memory a CTA", "{:.0f}"),
    "compile_seconds": ("CPU seconds of a compile", "{:.1f}"),
    "device_time": ("device time in µs", "{:.1f}"),
    "output_bits": ("output bits", "{:.0f}"),
}


def decide(
    pairs: Sequence[Pair],
    rules: GateRules,
    baseline: str,
    candidate: str,
    *,
    explain: Callable[[CellResult], str],
    known_as: KnownAs = lambda result: None,
) -> Decision:
    """Judge the candidate. `explain` makes the command that explains a result."""
    changes = _changes(pairs, rules, explain, known_as)
    reasons = sorted([*changes, *_measures(pairs, rules, explain), *_compile_total(pairs)], key=_rank)
    failing = [reason for reason in reasons if reason.weight is Weight.FAILS]
    undecided = [reason for reason in reasons if reason.weight is Weight.UNDECIDED]
    compared = sum(pair.compared for pair in pairs)
    if failing:
        answer = Answer.NO_GO
    elif undecided or not compared:
        answer = Answer.CANNOT_TELL
    else:
        answer = Answer.GO
    headline = _headline(answer, failing, undecided, pairs, compared)
    return Decision(answer, headline, tuple(reasons), tuple(pairs), baseline, candidate)


def _rank(reason: Reason) -> tuple[int, int, int]:
    return _ORDER.index(reason.weight), _WORST_FIRST.index(reason.kind), -len(reason.cells)


def _headline(
    answer: Answer, failing: list[Reason], undecided: list[Reason], pairs: Sequence[Pair], compared: int
) -> str:
    asked = len(pairs)
    if answer is Answer.NO_GO:
        bad = len({cell for reason in failing for cell in reason.cells})
        return f"{count_text(len(failing), 'reason')} against it, in {count_text(bad, 'cell')} of {asked}"
    if answer is Answer.CANNOT_TELL:
        if not compared:
            return f"none of {count_text(asked, 'cell')} has an answer on both sides"
        open_cells = len({cell for reason in undecided for cell in reason.cells})
        return f"nothing known to be worse, but {count_text(open_cells, 'cell')} of {asked} cannot be decided"
    rest = f"; {asked - compared} were not answered on both sides" if compared < asked else ""
    return f"nothing is worse in {count_text(compared, 'compared cell')}{rest}"


# --- verdicts ---------------------------------------------------------------------------------


def _changes(
    pairs: Sequence[Pair], rules: GateRules, explain: Callable[[CellResult], str], known_as: KnownAs
) -> Iterable[Reason]:
    groups: dict[tuple[Change, Weight, str, str | None], list[CellResult]] = defaultdict(list)
    for pair in pairs:
        shown = _telling_side(pair)
        if shown is None:
            continue
        weight = _weight(pair, rules)
        groups[pair.change, weight, _what(shown), known_as(shown)].append(shown)
    everything = [r for pair in pairs for r in (pair.baseline, pair.candidate) if r is not None]
    for (change, weight, _, known), members in groups.items():
        example = simplest(members, members[0].judgement.component)
        yield Reason(
            kind=change,
            weight=weight,
            text=_sentence(change, example, len(members)),
            where=_where(members, everything),
            cells=tuple(result.cell.id for result in members),
            example=example.cell.id,
            command=explain(example),
            signature=example.judgement.signature,
            known=known,
        )


def _weight(pair: Pair, rules: GateRules) -> Weight:
    if pair.undecided:
        return Weight.UNDECIDED
    if pair.change in rules.fail:
        # An answer that is missing proves nothing against the candidate, whoever insists on having it.
        return Weight.UNDECIDED if pair.change is Change.UNKNOWN else Weight.FAILS
    return Weight.WARNS if pair.change in rules.warn else Weight.NOTED


def _telling_side(pair: Pair) -> CellResult | None:
    """The result that shows what changed; None where nothing did."""
    match pair.change:
        case Change.GOOD | Change.GAINED:
            return None
        case Change.FIXED:
            return pair.baseline
    return pair.candidate or pair.baseline


def _what(result: CellResult) -> str:
    """What groups results: the signature of a finding, the reason of anything else."""
    judgement = result.judgement
    return judgement.signature or str(judgement.evidence.get("reason", judgement.summary))


def _sentence(change: Change, example: CellResult, count: int) -> str:
    cells, look = count_text(count, "cell"), LOOKS[example.verdict]
    summary = example.judgement.summary.removeprefix(f"{look.phrase}: ")
    match change:
        case Change.FIXED:
            return f"fixed in {cells}: {example.verdict}: {summary}"
        case Change.REGRESSED:
            return f"{cells} good before: {example.verdict}: {summary}"
        case Change.NEWLY_BAD:
            return f"{cells} bad in a new way: {example.verdict}: {summary}"
        case Change.STILL_BAD:
            return f"{cells} bad as before: {example.verdict}: {summary}"
        case Change.NEWLY_UNSUPPORTED:
            return f"{cells} no longer supported: {summary}"
        case Change.LOST:
            return f"{cells} good before, without an answer now: {summary}"
    return f"{cells} without an answer to compare: {summary}"


def _where(affected: Sequence[CellResult], everything: Sequence[CellResult]) -> str:
    kernels = sorted({result.cell.case.kernel for result in affected})
    archs = sorted({result.cell.arch for result in affected}, key=arch_key)
    devices = sorted({result.cell.device.name for result in affected if result.cell.device})
    on = f"on {', '.join(devices)}" if devices else ""
    parts = [", ".join(kernels), describe_settings(affected, everything), ", ".join(archs), on]
    return " · ".join(filter(None, parts))


# --- measurements -----------------------------------------------------------------------------


def _measures(
    pairs: Sequence[Pair], rules: GateRules, explain: Callable[[CellResult], str]
) -> Iterable[Reason]:
    """One reason for each quantity and direction."""
    groups: dict[tuple[str, bool, bool], list[tuple[Pair, Difference]]] = defaultdict(list)
    for pair in pairs:
        for difference in pair.differences:
            groups[difference.quantity, difference.worse, difference.grew].append((pair, difference))
    everything = [pair.candidate for pair in pairs if pair.candidate is not None]
    for (quantity, worse, grew), members in groups.items():
        weight = Weight.NOTED
        if worse and quantity in rules.fail:
            weight = Weight.FAILS
        elif worse and quantity in rules.warn:
            weight = Weight.WARNS
        ordered = sorted(members, key=lambda member: -_size(member[1]))
        affected = [pair.candidate for pair, _ in ordered if pair.candidate is not None]
        yield Reason(
            kind=quantity,
            weight=weight,
            text=_measured_text(quantity, worse, grew, len(members)),
            where=_where(affected, everything),
            cells=tuple(result.cell.id for result in affected),
            example=affected[0].cell.id,
            command=explain(affected[0]),
            details=_lines(quantity, ordered, everything),
        )


def _measured_text(quantity: str, worse: bool, grew: bool, count: int) -> str:
    noun, cells = _QUANTITIES[quantity][0], count_text(count, "cell")
    if quantity == "output_bits":
        return f"{noun} differ in {cells}, within the error bound"
    accepted = ", as the rules accept" if grew and not worse else ""
    return f"{noun}: {'more' if grew else 'less'} in {cells}{accepted}"


def _size(difference: Difference) -> float:
    low, high = sorted((difference.baseline, difference.candidate))
    return high / low if low > 0 else high * 1e6


def _lines(
    quantity: str, members: Sequence[tuple[Pair, Difference]], everything: Sequence[CellResult]
) -> tuple[str, ...]:
    """A line a cell, in the words that tell cells apart; equal lines of several toolchains are one."""
    number = _QUANTITIES[quantity][1]
    words = [describe(result.cell).split(" ")[1:] for result in everything]
    shared = set.intersection(*map(set, words)) if len(words) > 1 else set()
    lines: Counter[str] = Counter()
    for pair, difference in members:
        assert pair.candidate is not None
        told = describe(pair.candidate.cell).split(" ")[1:]
        cell = " ".join(word for word in told if word not in shared) or told[0]
        if quantity == "output_bits":
            lines[f"{difference.note}: {cell}"] += 1
            continue
        before, after = number.format(difference.baseline), number.format(difference.candidate)
        ratio = f" (×{difference.candidate / difference.baseline:.2f})" if difference.baseline else ""
        note = f", {difference.note}" if difference.note else ""
        lines[f"{before} → {after}{ratio}{note}: {cell}"] += 1
    return tuple(f"{line}{f' ({count} toolchains)' * (count > 1)}" for line, count in lines.items())


def _compile_total(pairs: Sequence[Pair]) -> Iterable[Reason]:
    """What all compiles that both sides finished cost together."""
    seconds = [
        (short, long)
        for pair in pairs
        if pair.baseline
        and pair.candidate
        and pair.candidate.cell.device is None
        and (short := compile_seconds(pair.baseline)) is not None
        and (long := compile_seconds(pair.candidate)) is not None
    ]
    if seconds:
        before, after = (sum(side) for side in zip(*seconds, strict=True))
        text = f"compiling {count_text(len(seconds), 'cell')} takes {before:.1f} → {after:.1f} CPU seconds"
        yield Reason("compile_seconds", Weight.NOTED, f"{text} (×{after / before:.2f})", "", ())
