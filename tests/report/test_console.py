"""What a person reads at the end of a run, and on the way there."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import Maker, no_fault_of_a_version
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from harness.judge import judge_not_run
from harness.model import CellResult, PoolAnswer, Verdict
from harness.report.console import Progress, render_summary
from harness.report.progress import LOG_SECONDS
from harness.report.words import LOOKS, cell_text, plain

PATHS = [Path("harness-results/results.jsonl"), Path("harness-results/junit.xml")]


def rendered(
    results: list[CellResult],
    width: int = 120,
    *,
    encoding: str = "utf-8",
    quiet: bool = False,
    **terminal: object,
) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    console = Console(file=file, width=width, highlight=False, **terminal)  # type: ignore[arg-type]
    render_summary(results, PATHS, console, seconds=3.21, quiet=quiet)
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_fits_the_terminal(lab_run: list[CellResult], width: int) -> None:
    lines = rendered(lab_run, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert not any("…" in line for line in lines)


def test_one_table_where_it_fits_else_one_an_architecture(lab_run: list[CellResult]) -> None:
    assert rendered(lab_run, 200).count("occupancy  allow_tma") == 1
    assert rendered(lab_run, 120).count("occupancy  allow_tma") == 3


def test_a_series_of_versions_is_shown_with_what_was_chosen(make: Maker) -> None:
    series = replace(make.result(make.cell("13.3")), resolved={"cuda_toolkit": "13.3.1"})
    full = replace(make.result(make.cell("13.4.3")), resolved={"cuda_toolkit": "13.4.3"})
    lines = [line.split() for line in rendered([series, full]).splitlines()]
    assert ["13.3", "=", "13.3.1", "13.4.3"] in [line[-4:] for line in lines]


@pytest.mark.parametrize("kind", ["infra_error", "import", "trace", "signature"])
def test_findings_that_no_version_is_to_blame_for_name_none(make: Maker, kind: str) -> None:
    text = rendered([no_fault_of_a_version(make, kind)])
    assert "affected" not in text and "Rejected by cuda.tile" not in text
    blamed = {"infra_error": "harness", "signature": "matrix"}.get(kind, "kernel")
    assert f"blame     {blamed}" in text


def test_half_a_surrogate_pair_is_shown_as_a_mark() -> None:
    assert plain("\ud800", False) == "\ufffd"


def test_cells_finding_and_totals(lab_run: list[CellResult]) -> None:
    lines = [line.rstrip() for line in rendered(lab_run, 200).splitlines()]
    text = "\n".join(lines)
    assert "✖ never ends 24" in text
    assert "✔ 255 !" in text
    assert "– unsupported" in text
    assert "✖ 1. Can never finish on a GPU  predicted_deadlock, 10 cells" in lines
    assert (
        "  where     rmsnorm.static_persistent · occupancy=16, allow_tma=false · sm_90, sm_100, sm_120"
        in lines
    )
    assert (
        "  versions  tileiras 13.2.86 to 13.3.36 affected; good from 13.4.92, the next version tested; "
        "no older version was tested"
    ) in lines
    assert "python -m harness explain " in text
    assert "1 cell skipped: no NVIDIA driver on this machine; device h200 needs NVIDIA H200" in lines
    assert "193 cells · 166 compiles · 16 unsupported · 10 predicted_deadlock · 1 skipped · 3.2 s" in lines
    assert lines[-1] == "harness-results/results.jsonl · harness-results/junit.xml"


def test_quiet_keeps_findings_and_the_last_lines(lab_run: list[CellResult]) -> None:
    text = rendered(lab_run, quiet=True)
    assert "allow_tma  " not in text
    assert "Advice" not in text
    assert "1. Can never finish" in text
    assert "193 cells" in text


def test_plain_ascii_where_there_is_no_utf8(lab_run: list[CellResult]) -> None:
    text = rendered(lab_run, encoding="ascii")
    assert text.isascii()
    assert "X never ends 24" in text
    assert "16384x512" in text
    assert "?" not in text


def test_no_colour_in_logs_and_with_no_color(
    lab_run: list[CellResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[" not in rendered(lab_run)
    assert "\x1b[1;31m✖" in rendered(lab_run, 200, force_terminal=True, color_system="standard")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in rendered(lab_run, 200, force_terminal=True)


def test_compiler_output_cannot_drive_the_terminal_or_markup(make: Maker) -> None:
    said = "error: \x1b]0;owned\x07 [bold]x[/nonsense]"
    text = rendered([make.result(compile=make.failed(5, said))])
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]x[/nonsense]" in text


def test_every_verdict_has_looks() -> None:
    assert set(LOOKS) == set(Verdict)
    for look in LOOKS.values():
        assert cell_len(look.symbol) == 1
        assert look.ascii.isascii()


def test_undecided_books_are_marked(make: Maker) -> None:
    undecided = make.inspection(168, 16, books=make.books(PoolAnswer.UNKNOWN))
    result = make.result(inspection=undecided)
    assert cell_text(result) == "✔ 168 ?"
    assert "? register pool undecided" in rendered([result])


def test_nothing_at_all() -> None:
    assert rendered([]).split("\n")[1] == "0 cells · 3.2 s"


def test_not_run_says_why(make: Maker) -> None:
    cell = make.cell()
    text = rendered([CellResult(cell, judge_not_run(cell, "the run was interrupted"))])
    assert "1 cell not run: the run was interrupted" in text


def test_plain_strips_control_characters() -> None:
    assert plain("a\tb\x1b[0m\x9b", False) == "a b\ufffd[0m\ufffd"
    assert plain("16×512 → x", True) == "16x512 -> x"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_in_a_log_is_a_line_now_and_then(make: Maker) -> None:
    file, clock = io.StringIO(), Clock()
    console = Console(file=file, width=120)
    with Progress(3, console, clock=clock) as progress:
        progress.note("toolchains: 4")
        progress.advance(make.answer(make.cell("13.2.2")))
        clock.now = LOG_SECONDS + 1
        progress.advance(make.answer(make.cell("13.3.1")))
        progress.advance(make.answer(make.cell("13.4.3")))
    lines = file.getvalue().splitlines()
    assert lines.pop(1).startswith(
        "✖ predicted_deadlock at rmsnorm.static_persistent tile1.5.0-ctk13.3.1 sm_90: Can never finish"
    )
    assert lines == [
        "toolchains: 4",
        "2/3 cells after 6 s: ✔ 0  ✖ 1  ? 1, last rmsnorm.static_persistent tile1.5.0-ctk13.3.1 sm_90",
        "3/3 cells after 6 s: ✔ 1  ✖ 1  ? 1",
    ]


def test_quiet_progress_says_nothing_in_a_log(make: Maker) -> None:
    file = io.StringIO()
    with Progress(1, Console(file=file), quiet=True) as progress:
        progress.note("toolchains: 4")
        progress.advance(make.answer(make.cell()))
    assert file.getvalue() == ""


def test_progress_on_a_terminal_leaves_nothing_behind(make: Maker) -> None:
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=True)
    with Progress(1, console) as progress:
        progress.advance(make.answer(make.cell()))
    assert "1/1" in file.getvalue()


def test_a_finding_is_told_once_as_it_appears(make: Maker) -> None:
    file = io.StringIO()
    with Progress(4, Console(file=file, width=60)) as progress:
        for toolkit in ("13.3.1", "13.4.3"):
            for arch in ("sm_100", "sm_120"):
                progress.advance(make.answer(make.cell(toolkit, arch)))
    assert file.getvalue().count("predicted_deadlock") == 1


def test_a_terminal_shows_the_stage_what_runs_and_how_long_yet(make: Maker) -> None:
    file, clock = io.StringIO(), Clock()
    console = Console(file=file, width=100, force_terminal=True, _environ={})
    with Progress(2, console, clock=clock) as progress:
        progress.stage("compile", 6)
        names = [f"cell {number} " + "x" * 100 for number in range(6)]
        with contextlib.ExitStack() as all_of_them:
            for name in names:
                all_of_them.enter_context(progress.running(name))
            console.print(progress._render())
            shown = file.getvalue()
    assert "compile" in shown and "0/6" in shown and "about" in shown
    assert "cell 3 xx" in shown and "cell 4" not in shown and "and 2 more" in shown
    assert max(cell_len(line) for line in Text.from_ansi(shown).plain.splitlines()) <= 100
    assert not progress._running


def test_a_dumb_terminal_gets_plain_lines(make: Maker) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, _environ={"TERM": "dumb", "NO_COLOR": "1"})
    with Progress(1, console) as progress:
        progress.advance(make.answer(make.cell("13.4.3")))
    assert file.getvalue() == "1/1 cells after 0 s: ✔ 1  ✖ 0\n"
