"""Versions against architectures, as a reader sees them."""

from __future__ import annotations

from made_results import Maker

from harness.cluster import findings
from harness.model import CellResult
from harness.report.version_strip import Strip, Strips


def strip_of(results: list[CellResult]) -> Strip:
    return Strips(results).of(findings(results)[0])


def test_says_since_when_and_where(lab_run: list[CellResult]) -> None:
    strip = strip_of(lab_run)
    assert strip.component == "tileiras"
    assert strip.versions == (
        ("13.2.86", ("13.2.2",)),
        ("13.3.36", ("13.3.1",)),
        ("13.4.92", ("13.4.3",)),
        ("13.5.37", ("13.5.0",)),
    )
    assert strip.rows == (
        (("sm_90",), ("unsupported", "affected", "good", "good")),
        (("sm_100", "sm_120"), ("affected", "affected", "good", "good")),
    )


def test_a_version_never_asked_is_not_called_good(make: Maker) -> None:
    asked = [("13.3.1", "sm_90"), ("13.3.1", "sm_100"), ("13.4.3", "sm_100")]
    results = [make.answer(make.cell(toolkit, arch)) for toolkit, arch in asked]
    assert strip_of(results).rows == (
        (("sm_90",), ("affected", "not tested")),
        (("sm_100",), ("affected", "good")),
    )


def test_other_settings_do_not_count(make: Maker) -> None:
    """A version is good only where the same case was seen to be good."""
    results = [make.answer(make.cell("13.3.1")), make.answer(make.cell("13.4.3", occupancy=2))]
    assert [version for version, _ in strip_of(results).versions] == ["13.3.36"]
