"""A bisection in words: a line per step, and the answer with its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from harness.bisect.result import Accusation, BisectResult, Point, Probe, Side, brief
from harness.bisect.search import Ending
from harness.bisect.versions import BACKEND_COMPONENTS, TILE
from harness.oracle import Answer
from harness.plan import describe
from harness.report.words import count_text, plain

_VERSION_WIDTH = 9
_MIX_WIDTH = 50
_STYLES = {Answer.GOOD: "green", Answer.BAD: "bold red", Answer.UNKNOWN: "yellow"}


class Shown:
    """Prints steps as they come and the result at the end, in ASCII where need be."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ascii = not console.encoding.lower().startswith("utf")
        self._number = 0

    def note(self, words: str) -> None:
        """What takes time in between, such as an installation."""
        self._line(Text(f"  {words}", style="dim"))

    def step(self, probe: Probe) -> None:
        """One probe: version or mix, answer, seconds, why, steps left."""
        self._number += 1
        width = _VERSION_WIDTH if probe.stage == "version" else _MIX_WIDTH
        line = Text(f"{self._number:2}. {probe.label:<{width}} ")
        line.append(f"{probe.answer:<7}", style=_STYLES[probe.answer])
        line.append(f" {probe.seconds:5.1f} s  {_left(probe):<15}", style="dim")
        line.append(f" {probe.reason}")
        self._line(line)

    def result(self, result: BisectResult, commands: Sequence[str]) -> None:
        """The answer, its evidence, and how to check it."""
        self._line(Text())
        self._line(Text(f"{result.oracle} over {result.over}", style="bold"))
        self._pairs([("cell", f"{result.cell.id}  {describe(result.cell)}"), *edges(result)])
        for text in remarks(result):
            self._line(Text(f"  {text}", style="yellow"))
        if result.accusations:
            self._line(Text())
            self._line(Text(f"Guilty component: {result.component or 'not settled'}", style="bold"))
        for accusation in result.accusations:
            self._pairs(
                [
                    (_EDGES[accusation.edge], verdict(accusation)),
                    *(("", line) for line in accusation.evidence),
                ]
            )
        if commands and result.complete:
            self._line(Text())
            self._line(Text("Check it", style="bold"))
            for command in commands:
                self._line(Text(f"    {command}"))
        self._line(Text())
        self._line(Text(f"{count_text(len(result.probes), 'step')} in {result.seconds:.1f} s", style="dim"))

    def elsewhere(self, commands: Sequence[str]) -> None:
        """What to type where the device is missing here."""
        self._line(Text())
        self._line(Text("What only a GPU can tell, told by a host that has one; then bisect again", "bold"))
        for command in commands:
            self._line(Text(f"    {command}"))

    def _line(self, text: Text) -> None:
        shown = Text(plain(text.plain, True), style=text.style) if self._ascii else text
        self._console.print(shown, soft_wrap=True)

    def _pairs(self, items: Sequence[tuple[str, str]]) -> None:
        for name, value in items:
            self._line(Text.assemble(f"  {name:<12} ", value))


def edges(result: BisectResult) -> list[tuple[str, str]]:
    """Last good, first bad, last bad and first fixed, each with what is not known about it."""
    return [
        ("last good", _good(result.older, "older", result)),
        ("first bad", _named(result.first_bad, result)),
        ("last bad", _named(result.last_bad, result)),
        ("first fixed", _good(result.newer, "newer", result)),
    ]


def remarks(result: BisectResult) -> list[str]:
    """What a reader has to know before trusting the edges."""
    found = []
    if not result.complete:
        found.append("stopped before the end: these edges are only where the search stood")
    for side in (result.older, result.newer):
        if side.good is not None and side.gap:
            low, high = sorted((side.good, side.bad), key=lambda point: point is side.bad)
            if side is result.newer:
                low, high = high, low
            found.append(
                f"between {low.version} and {high.version} nothing could be told: {_reasons(side.gap)}"
            )
        if side.untested:
            found.append(f"taken for bad without a test: {', '.join(p.version for p in side.untested)}")
    edges_found = sum(side.good is not None for side in (result.older, result.newer))
    if len(result.flips) > edges_found:
        listed = ", ".join(f"{one} / {other}" for one, other in result.flips)
        found.append(f"the fault comes and goes; answers change between {listed}")
    if result.left_out:
        versions = ", ".join(version for version, _ in result.left_out)
        found.append(f"not considered: {versions} ({result.left_out[0][1]})")
    stopped = Ending.UNFINISHED in (result.older.ending, result.newer.ending)
    if result.over != TILE and edges_found == 0 and not stopped:
        found.append(f"no backend version is known to be good; try --over {TILE}")
    return found


def verdict(accusation: Accusation) -> str:
    """Whom the mixes of one edge convict, in a sentence."""
    blame = accusation.blame
    groups = [" with ".join(group) for group in blame.suspects]
    if not groups:
        return "no single set of components explains the answers"
    if len(groups) > 1:
        return f"{' or '.join(groups)}; no mix that can run tells them apart"
    return groups[0] if blame.is_proven else f"{groups[0]}, as far as mixes can tell"


_EDGES = {"older": "brought by", "newer": "cured by"}


def _good(side: Side, way: str, result: BisectResult) -> str:
    if side.good is not None:
        return _named(side.good, result)
    match side.ending:
        case Ending.NOTHING_THERE:
            return f"there is no {way} version"
        case Ending.ALL_BAD:
            return f"none: every {way} version tested is bad"
        case Ending.UNKNOWN_BEYOND:
            beyond = f"none: nothing {way} than {side.bad.version} could be told"
            return f"{beyond}: {_reasons(side.gap)}"
    return "not known yet: the search was stopped"


def _named(point: Point, result: BisectResult) -> str:
    """A version as the component and as the versions of the axis that bring it."""
    if result.named_by == result.over:
        others = [
            f"{name} {point.components[name]}" for name in BACKEND_COMPONENTS if name in point.components
        ]
        extra = f"  ({', '.join(others)})" if result.over != TILE else ""
        return f"{result.over} {' = '.join(point.stands_for)}{extra}"
    return f"{result.named_by} {point.version}  ({result.over} {', '.join(point.stands_for)})"


def _reasons(gap: Sequence[Point]) -> str:
    """Gap versions with why, equal reasons once."""
    by_reason: dict[str, list[str]] = {}
    for point in gap:
        by_reason.setdefault(point.reason.rstrip("."), []).append(point.version)
    listed = ((", ".join(versions), brief(reason)) for reason, versions in by_reason.items())
    return "; ".join(f"{versions} ({reason})" for versions, reason in listed)


def _left(probe: Probe) -> str:
    return "last step" if probe.left == 0 else f"at most {probe.left} more"
