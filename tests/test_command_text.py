"""Commands that reports name do what they say when they are pasted."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest
from made_results import Maker
from rich.console import Console

from harness.command_text import DEFAULT_OUT, HERE, Place, command
from harness.report.console import render_summary
from harness.report.html import write_html
from harness.report.junit import write_junit
from harness.store import Store

ELSEWHERE = Place(Path("my results"), Path("/a store"))


def test_what_is_so_by_default_is_left_out() -> None:
    assert HERE.explain("0123abcd") == "python -m harness explain 0123abcd"
    assert command("run", Path("my kernels") / "m.toml", out=DEFAULT_OUT) == (
        "python -m harness run 'my kernels/m.toml'"
    )


def test_what_is_not_is_quoted_for_a_shell() -> None:
    assert ELSEWHERE.explain("0123abcd") == (
        "python -m harness explain 0123abcd --out 'my results' --store '/a store'"
    )


def test_every_report_names_where_results_and_compilers_are(
    make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = make.answer(make.cell())
    wanted = ELSEWHERE.explain(result.cell.id)
    text = io.StringIO()
    render_summary([result], [], Console(file=text, width=60), place=ELSEWHERE)
    assert wanted in text.getvalue()
    write_junit([result], tmp_path / "junit.xml", place=ELSEWHERE)
    assert wanted in (tmp_path / "junit.xml").read_text()
    Store.open(ELSEWHERE.out).close()
    page = ELSEWHERE.out / "report.html"
    write_html([result], page, title="t", facts=None, store=ELSEWHERE.store)
    assert wanted.replace("'", "&#39;") in page.read_text()
    assert shlex.split(wanted)[-1] == "/a store"
