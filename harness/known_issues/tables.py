"""known_issues.toml, typed: what pydantic checks. Conditions are `load.py`'s, which knows the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import Field

from harness.advice import KINDS
from harness.known_issues.entry import COMPONENTS
from harness.matrix.fields import Axis, Label, Table, Version
from harness.matrix.problems import quote
from harness.matrix.rules import Rule, Text, Word, bad_value, wrong_type
from harness.model import Verdict

FINDINGS = tuple(str(verdict) for verdict in Verdict if verdict.is_finding)


@dataclass(frozen=True)
class Day(Rule):
    """A calendar day, as a TOML date or as text."""

    def check(self, value: Any) -> date:
        if type(value) is date:
            return value
        if not isinstance(value, str):
            raise wrong_type("a day")
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise bad_value(lambda: f"{quote(value)} is not a day; write one such as 2027-06-30") from None

    def describe(self) -> dict[str, Any]:
        return {"type": "string", "format": "date"}


class IssueTable(Table):
    """One known issue."""

    id: Label = Field(
        description="Name by which commands and reports speak of it.", examples=["pool-deadlock"]
    )
    title: Annotated[str, Text("a title", r"[^\x00-\x1f]+", "printable characters", 200)] = Field(
        description="The fault in a sentence.", examples=["The kernel never ends"]
    )
    match: dict[str, Any] = Field(
        description="The cells it speaks of.",
        examples=[{"kernel": "rmsnorm.static_persistent", "occupancy": ">=12"}],
    )
    verdict: Axis[Annotated[str, Word("a finding", FINDINGS)]] | None = Field(
        None, description="What is expected of them.", examples=["predicted_deadlock"]
    )
    advice: Annotated[str, Word("a kind of advice", KINDS)] | None = Field(
        None, description="Advice that is expected, in place of a verdict.", examples=["occupancy_missed"]
    )
    component: Annotated[str, Word("a component", COMPONENTS)] | None = Field(
        None, description="Whose fault it is.", examples=["tileiras"]
    )
    first_seen: Version | None = Field(
        None, description="Oldest version of the component it was seen with.", examples=["13.2.51"]
    )
    fixed_in: Version | None = Field(
        None, description="Version of the component from which on it is gone.", examples=["13.4.59"]
    )
    link: (
        Annotated[str, Text("a link", r"https?://[!-~]+", "http:// or https:// and no blanks", 500)] | None
    ) = Field(None, description="Where it is discussed.", examples=["https://example.org/issues/1"])
    expires: Annotated[date, Day()] | None = Field(
        None, description="Last day on which it is taken for known.", examples=["2027-06-30"]
    )
    workaround: tuple[dict[str, Any], ...] = Field(
        (),
        description="Changes of settings that avoid it; each by itself.",
        examples=[[{"occupancy": "<=8"}]],
    )
