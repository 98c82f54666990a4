"""From known_issues.toml to `Issue`s, or to all that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import ValidationError

from harness import kernels
from harness.known_issues import conditions
from harness.known_issues.conditions import DEFAULT, Condition, NoCondition, Span
from harness.known_issues.entry import COMPONENTS, Issue, overlap
from harness.known_issues.tables import IssueTable
from harness.matrix import words
from harness.matrix.document import Document, read_document
from harness.matrix.expand import is_own
from harness.matrix.explain import explain
from harness.matrix.locate import TomlPath
from harness.matrix.problems import MatrixError, Problem, listing, quote, show, suggestion
from harness.model import HINT_NAMES, Verdict

FILE_NAME = "known_issues.toml"
MAX_PROBLEMS = 100

_WHOLE = {
    "occupancy": Span(1, 32),
    "num_ctas": Span(1, 16),
    "opt_level": Span(0, 3),
    "num_worker_warps": Span(1, 32),
    "latency": Span(1, 10),
    "tile_m": Span(1, 2**20),
    "tile_n": Span(1, 2**20),
    "tile_k": Span(1, 2**20),
}
_NUMBERS = ("offset", "eps")
_FLAGS = ("allow_tma",)
_WORDS: dict[str, Sequence[str]] = {
    "dtype": words.DTYPES,
    "layout": words.LAYOUT_WORDS,
    "values": words.VALUES,
    "arch": words.ARCHS,
    "calling_convention": words.CALLING_CONVENTIONS,
}
_EXTENTS = Span(0, 2**31 - 1)
_ALWAYS = ("kernel", "device", *HINT_NAMES, *_WORDS, *COMPONENTS)


def load_known_issues(path: Path) -> tuple[Issue, ...]:
    """Read and check the file in full. Raises MatrixError with every problem found."""
    document = read_document(path)
    issues: dict[int, Issue] = {}
    problems = list(islice(_problems(document, issues), MAX_PROBLEMS))
    if problems:
        raise MatrixError(sorted(problems, key=lambda problem: problem.line or 0))
    return tuple(issues.values())


def _problems(document: Document, issues: dict[int, Issue]) -> Iterator[Problem]:
    for key in document.data:
        if key != "issue":
            yield document.problem((key,), "unknown table or key; an entry is [[issue]]")
    entries = document.data.get("issue", [])
    if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
        yield document.problem(("issue",), "must be a list of tables; write [[issue]], with two brackets")
        return
    for index, raw in enumerate(entries):
        here: TomlPath = ("issue", index)
        try:
            table = IssueTable.model_validate(raw)
        except ValidationError as error:
            yield from explain(document, here, IssueTable, error)
            continue
        reader = _Reader(document, here)
        issue = reader.issue(table)
        yield from reader.problems
        if not reader.problems:
            yield from _contradictions(document, here, issue)
            yield from _against_earlier(document, here, issue, issues)
            issues[index] = issue


class _Reader:
    """Turns one table into an issue, and collects what is wrong with its conditions."""

    def __init__(self, document: Document, here: TomlPath) -> None:
        self.document, self.here = document, here
        self.problems: list[Problem] = []
        self.known: dict[str, Span | None] = {}
        self.own = False

    def issue(self, table: IssueTable) -> Issue:
        self._learn_kernels(table.match)
        match = self._conditions(table.match, (*self.here, "match"))
        advised = [
            self._conditions(change, (*self.here, "workaround", number), settings_only=True)
            for number, change in enumerate(table.workaround)
        ]
        return Issue(
            id=table.id,
            title=table.title,
            match=match,
            verdicts=frozenset(map(Verdict, table.verdict or ())),
            advice=table.advice,
            component=table.component,
            first_seen=table.first_seen,
            fixed_in=table.fixed_in,
            link=table.link,
            expires=table.expires,
            workaround=tuple(advised),
            line=self.document.problem(self.here, "").line,
        )

    def _learn_kernels(self, match: Mapping[str, Any]) -> None:
        """Which extents and settings the kernels of the entry have."""
        named = _listed(match.get("kernel", list(kernels.names())))
        for name in named:
            if not isinstance(name, str) or is_own(name):
                self.own = True
            elif name in kernels.names():
                kernel = kernels.get(name)
                self.known |= dict.fromkeys(kernel.dims, _EXTENTS)
                self.known |= {knob: _WHOLE.get(knob) for knob in kernel.knobs}

    def _conditions(
        self, table: Mapping[str, Any], here: TomlPath, *, settings_only: bool = False
    ) -> dict[str, Condition]:
        found: dict[str, Condition] = {}
        if not table:
            self._complain(here, 'says nothing; write {occupancy = ">=12"}, say')
        settings = (*HINT_NAMES, *(key for key, span in self.known.items() if span is not _EXTENTS))
        allowed = settings if settings_only else (*_ALWAYS, *self.known)
        for key, value in table.items():
            if key not in allowed and not (self.own and key not in _ALWAYS):
                told = suggestion(key, allowed, f"known here are {listing(map(quote, allowed))}")
                self._complain((*here, key), f"unknown property; {told}")
                continue
            condition = self._condition(key, value, (*here, key))
            if condition is None:
                continue
            if condition.is_empty:
                self._complain((*here, key), "no value can meet it; widen the range")
            found[key] = condition
        return found

    def _condition(self, key: str, value: Any, here: TomlPath) -> Condition | None:
        values = _listed(value)
        if not values:
            self._complain(here, "the list is empty; write a value or a range")
            return None
        if any(isinstance(item, dict | list) for item in values):
            self._complain(here, f"expected a value, a range or a list of them, found {show(values[0])}")
            return None
        if key == "kernel":
            return self._words(key, values, here, kernels.names(), other=is_own)
        if key == "device":
            return self._words(key, values, here, (), other=lambda name: True)
        if key in _WORDS:
            return self._words(key, values, here, _WORDS[key])
        if key in _FLAGS or any(isinstance(item, bool) for item in values):
            if any(not isinstance(item, bool) and item != DEFAULT for item in values):
                self._complain(here, f"expected true, false or {quote(DEFAULT)}")
                return None
            return conditions.words(values)
        return self._ranges(key, values, here)

    def _words(
        self,
        key: str,
        values: Sequence[Any],
        here: TomlPath,
        known: Sequence[str],
        other: Callable[[str], bool] = lambda name: False,
    ) -> Condition | None:
        for value in values:
            if not isinstance(value, str) or not (value in known or other(value)):
                name = value if isinstance(value, str) else show(value)
                self._complain(here, f"unknown {key} {quote(name)}; {suggestion(name, tuple(known))}")
                return None
        return conditions.words(values)

    def _ranges(self, key: str, values: Sequence[Any], here: TomlPath) -> Condition | None:
        within = _WHOLE.get(key) or self.known.get(key)
        parse: conditions.Parse = conditions.whole if within is not None else conditions.number
        like = '">=12", ">=8,<=16", 16 or "default"'
        if key in COMPONENTS:
            parse, like = conditions.version, '">=13.2.51,<13.4.59" or "13.3.36"'
        try:
            return conditions.ranges(values, parse, within)
        except NoCondition as error:
            self._complain(here, f"{quote(str(error))} is neither a value nor a range; write {like}, say")
            return None

    def _complain(self, path: TomlPath, text: str) -> None:
        self.problems.append(self.document.problem(path, text))


def _contradictions(document: Document, here: TomlPath, issue: Issue) -> Iterator[Problem]:
    """Entries that can never match, and advice that does not lead out of the fault."""
    if bool(issue.verdicts) == (issue.advice is not None):
        yield document.problem(here, "says what to expect in verdict or in advice; write one of them")
    if (issue.fixed_in or issue.first_seen) and issue.component is None:
        yield document.problem(here, 'names versions of no component; add component = "tileiras", say')
    if issue.fixed_in and issue.first_seen and Version(issue.first_seen) >= Version(issue.fixed_in):
        text = f"is not older than fixed_in {quote(issue.fixed_in)}; correct one of them"
        yield document.problem((*here, "first_seen"), text)
    if any(condition.is_empty for condition in issue.expected_where.values()):
        text = (
            f"can never match: all versions it speaks of have the fix of {issue.fixed_in}; remove the entry"
        )
        yield document.problem(here, text)
    for number, change in enumerate(issue.workaround):
        if not any(key in issue.match and (issue.match[key] & change[key]).is_empty for key in change):
            text = "leaves the cell among those that match; change a setting that match names"
            yield document.problem((*here, "workaround", number), text)


def _against_earlier(
    document: Document, here: TomlPath, issue: Issue, earlier: Mapping[int, Issue]
) -> Iterator[Problem]:
    for other in earlier.values():
        if other.id == issue.id:
            text = f"{quote(issue.id)} is the id of the entry in line {other.line} already; choose another"
            yield document.problem((*here, "id"), text)
        elif overlap(issue, other):
            text = f"overlaps with {quote(other.id)} in line {other.line}: a cell may be both; narrow one"
            yield document.problem(here, text)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
