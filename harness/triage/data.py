"""A triage as plain data, for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.triage.asked import Asked, short
from harness.triage.findings import KernelFinding
from harness.triage.show import decided, decides, paragraph


def as_json(
    findings: Sequence[KernelFinding], asked: Sequence[Asked], gaps: Sequence[str] = ()
) -> dict[str, Any]:
    """For scripts: a finding per kernel, every answer, and what was not asked at all."""
    return {
        "not_asked": list(gaps),
        "kernels": [
            {
                "kernel": found.kernel,
                "fails": found.worst is not None,
                "failures": found.failures,
                "passes": found.passes,
                "more_in_mind": found.unasked,
                "outcomes": dict(found.outcomes),
                "newest_failure": found.worst.setting.axes if found.worst else None,
                "summary": found.worst.result.judgement.summary if found.worst else None,
                "decided_by": [
                    {"axis": d.axis, "fails": list(d.bad), "passes": list(d.good)} for d in found.decisions
                ],
                "decides_how": list(found.ways),
                "decides": decides(found) if found.worst else None,
                "releases": [[turn.cuda_toolkit, turn.outcome] for turn in found.turns],
                "control": found.control.setting.axes if found.control else None,
                "control_differs": found.control_differs,
                "broken_toolchains": list(found.broken),
                "rejected": list(found.rejected),
                "unread": list(found.unread),
                "other_kinds": [
                    {
                        "outcome": short(kind.worst.result),
                        "failures": kind.failures,
                        "newest_failure": kind.worst.setting.axes,
                        "decides": decided(kind.decisions, ()),
                    }
                    for kind in found.kinds
                ],
                "other_failures": list(found.others),
                "text": paragraph(found),
            }
            for found in findings
        ],
        "answers": [
            {
                "kernel": a.setting.kernel,
                **a.setting.axes,
                "verdict": a.result.verdict,
                "outcome": short(a.result),
            }
            for a in asked
        ],
    }
