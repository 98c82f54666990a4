"""No all-clear for what was not asked."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.model import Case, Cell, CellResult, Judgement, Toolchain, Verdict
from harness.triage.asked import Asked, Setting
from harness.triage.findings import KernelFinding, findings
from harness.triage.gaps import exit_code, gaps
from harness.triage.look import FoundKernel, FoundLaunch, Seen
from harness.triage.show import render

KERNEL = FoundKernel("k", "k", 1, (), (FoundLaunch((1,), ()), FoundLaunch((2,), ())))
SEEN = Seen(Path("report.py"), "", (KERNEL,))
GOOD = Judgement(Verdict.COMPILES, None, "Compiles.")
BAD = Judgement(Verdict.COMPILER_CRASH, "crash", "tileiras crashed.", "tileiras")
STOP = "recording stopped at 2 different launches; later ones were not asked about"
SETTINGS = [Setting(kernel, "1.7.0", "13.5.0", "sm_90") for kernel in ("k", "q")]


def found(*judgements: Judgement, unasked: tuple[Setting, ...] = ()) -> list[KernelFinding]:
    return findings(answers(*judgements), (), unasked)


def answers(*judgements: Judgement) -> list[Asked]:
    cell = Cell(Toolchain("t", "1.7.0", "13.5.0"), "sm_90", Case("f.py:k", (), "float16"))
    pairs = zip(SETTINGS, judgements, strict=False)
    return [Asked(setting, CellResult(cell, judgement), 0.0) for setting, judgement in pairs]


@pytest.mark.parametrize(
    ("stopped", "judgements", "code", "told"),
    [
        (False, (GOOD, GOOD), 0, []),
        (False, (GOOD,), 2, ["not asked about: q"]),
        (
            True,
            (GOOD, GOOD),
            2,
            [STOP],
        ),
        (False, (GOOD, BAD), 1, []),
        (
            True,
            (BAD, GOOD),
            1,
            [STOP],
        ),
    ],
)
def test_an_all_clear_needs_an_answer_for_everything(
    stopped: bool, judgements: tuple[Judgement, ...], code: int, told: list[str]
) -> None:
    answered = found(*judgements)
    missed = gaps(replace(SEEN, stopped=stopped), ["k", "q"], answered)
    assert missed == told
    assert exit_code(answered, missed) == code


@pytest.mark.parametrize("count", [1, 2])
def test_what_there_was_no_time_for_is_named_where_kernels_compile(count: int) -> None:
    unasked = (SETTINGS[0], replace(SETTINGS[0], arch="sm_120"))
    judgements = (GOOD,) * count
    console = Console(file=StringIO(), width=200)
    render(found(*judgements, unasked=unasked), answers(*judgements), console, [])
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert (
        "all" not in text
        and "2 more were in mind" in text
        and ("1 setting that was asked" if count == 1 else "the settings that were asked") in text
    )
