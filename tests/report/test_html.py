"""The HTML report as text: what it says, what it holds, and that nothing breaks out of it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import Maker, Unreadable, no_fault_of_a_version

from harness.execute.protocol import Evidence, Observation, Outcome, Stage, Timing, Warp
from harness.execute.verdict import judge_run
from harness.legible import legible
from harness.model import CellResult, Device
from harness.report.html import render_html, write_html
from harness.report.html_data import MAX_TEXT, embeddable, plain

HOSTILE = (
    "</script><script>window.pwned=1</script><!--<img src=x onerror=window.pwned=1>"
    "\x1b[31m\ud800 &amp; {{7*7}}"
)


class Page(HTMLParser):
    """The elements of a page: texts of scripts by id or type, tags, attributes, visible text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: dict[str, str] = {}
        self.styles: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "script":
            self._inside = attributes.get("id") or attributes.get("type") or "script"
            self.scripts[self._inside] = ""
        elif tag == "style":
            self._inside = "style"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.styles.append(data)
        elif self._inside is not None:
            self.scripts[self._inside] += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    @property
    def data(self) -> Any:
        return json.loads(self.scripts["data"])

    def block(self, at: int, which: int) -> Any:
        lines = self.scripts["blocks"].split("\n")
        return json.loads(lines[self.data["cells"]["blocks"][at][which]])


def page(results: list[CellResult], **changes: Any) -> Page:
    return Page(render_html(results, **{"title": "matrix.toml", "facts": None, **changes}))


def hostile(make: Maker) -> CellResult:
    return make.result(make.cell(kernel=HOSTILE), compile=make.failed(5, f"error: {HOSTILE}"))


def hung(make: Maker) -> CellResult:
    cell = make.cell(device=Device("h200", "NVIDIA H200", "sm_90"))
    warps = tuple(
        Warp(n, (0, 0, 0), 0x8D80, 0x8D80, "USETMAXREG.TRY_ALLOC", "rmsnorm.py:15") for n in range(8)
    )
    seen = Evidence(5.0, warps=warps, raw="info cuda warps", notes=("nothing missing",))
    observation = Observation(cell.id, Outcome.HANG, Stage.LAUNCH, stderr="gpu stderr", evidence=seen)
    result = make.result(cell, make.deadlocked())
    judged = judge_run(observation, result.inspection)
    return replace(result, judgement=judged, observation=observation.to_json())


# --- what it says -----------------------------------------------------------------------------


def test_head_says_how_much_is_broken_and_why_cells_are_missing(lab_run: list[CellResult]) -> None:
    text = page(lab_run).text
    assert "1 finding in 10 cells" in text
    assert "193 cells: 10 bad, 166 good, 17 without an answer. 1 cell skipped: no NVIDIA driver" in text


def test_finding_says_what_where_since_when_and_what_to_type(lab_run: list[CellResult]) -> None:
    text = page(lab_run).text
    assert "1. Can never finish on a GPU predicted_deadlock · 10 cells" in text
    assert "What It starts with 24 registers a thread and an empty pool" in text
    assert "rmsnorm.static_persistent · occupancy=16, allow_tma=false · sm_90, sm_100, sm_120" in text
    assert "13.2.86 toolkit 13.2.2 13.3.36 toolkit 13.3.1" in text
    assert "sm_100, sm_120 ✖ bad ✖ bad ✔ good ✔ good" in text
    assert "– unsupported" in text
    assert "tileiras 13.2.86 to 13.3.36 affected; good from 13.4.92" in text
    assert re.search(r"Type next python -m harness explain [0-9a-f]{12} ", text)


def test_commands_name_the_results_where_they_lie_beside_the_report(
    lab_run: list[CellResult], tmp_path: Path
) -> None:
    (tmp_path / "my run").mkdir()
    (tmp_path / "my run" / "harness.sqlite").touch()
    path = tmp_path / "my run" / "report.html"
    write_html(lab_run, path, title="t", facts={"wall_seconds": 3.5})
    made = Page(path.read_text(encoding="utf-8"))
    assert f"--out '{tmp_path}/my run'" in made.text
    assert made.data["explain"]["suffix"] == f" --out '{tmp_path}/my run'"
    assert "wall seconds 3.5" in made.text


def test_gate_decision_comes_first(lab_run: list[CellResult]) -> None:
    cell = lab_run[0].cell.id
    gate = {
        "decision": "no-go",
        "reasons": [
            {
                "kind": "newly bad",
                "text": "It hangs.",
                "cells": [cell, "x"],
                "command": "python -m harness x",
            },
            {"kind": "unknown", "text": "No device.", "cells": [], "command": None},
        ],
    }
    made = page(lab_run, gate=gate)
    assert "✖ No-go" in made.text
    assert f"newly bad It hangs. Open cell {cell} (one of 2) python -m harness x" in made.text
    assert "No-go" in page(lab_run, gate=gate).text.split("What is broken")[0]


@pytest.mark.parametrize("decision, sign", [("go", "✔ Go"), ("cannot tell", "? Cannot tell")])
def test_gate_decisions_have_a_sign(lab_run: list[CellResult], decision: str, sign: str) -> None:
    assert sign in page(lab_run, gate={"decision": decision, "reasons": []}).text


def test_no_findings_and_nothing_tested(make: Maker, lab_run: list[CellResult]) -> None:
    assert "✔ No findings" in page([make.answer(make.cell("13.4.3"))]).text
    assert "? Nothing could be tested" in page([lab_run[-1]]).text
    assert "? Nothing could be tested" in page([]).text


def test_broken_toolchain_is_told_apart_from_findings(make: Maker) -> None:
    broken = make.result(compile=make.failed(5, "x"), control=make.failed(5, "no libnvvm"))
    made = page([broken])
    assert "No answer everywhere: a toolchain or the machine failed" in made.text
    assert any("finding unknown" in (attributes.get("class") or "") for _, attributes in made.tags)


# --- what it holds ----------------------------------------------------------------------------


def test_every_cell_is_there_with_its_evidence(lab_run: list[CellResult]) -> None:
    made = page(lab_run)
    assert made.data["cells"]["id"] == [result.cell.id for result in lab_run]
    for at in (0, 40, len(lab_run) - 1):
        result = lab_run[at]
        assert made.block(at, 0)["summary"] == result.judgement.summary
        assert (made.block(at, 4) or {}).get("registers") == (
            result.inspection.registers if result.inspection else None
        )


def test_order_of_versions_and_architectures(lab_run: list[CellResult]) -> None:
    data = page(lab_run[::-1]).data
    assert data["archs"] == ["sm_90", "sm_100", "sm_120"]
    assert data["backends"] == ["13.2.2", "13.3.1", "13.4.3", "13.5.0"]
    assert data["tiles"] == ["1.5.0", "1.7.0"]


def test_failed_compiles_have_no_compile_time(make: Maker) -> None:
    results = [make.result(compile=make.failed(5, "x")), make.result(make.cell("13.4.3"))]
    assert page(results).data["cells"]["compile"] == [None, 0.45]


def test_hang_keeps_its_warps_and_says_nothing_twice(make: Maker) -> None:
    made = page([hung(make)])
    judgement, inspection, observation = made.block(0, 0), made.block(0, 4), made.block(0, 5)
    assert len(judgement["evidence"]["evidence"]["warps"]) == 8
    assert "evidence" not in observation
    assert inspection["books"]["answer"] == "impossible"


def test_device_time(make: Maker) -> None:
    timing = Timing(35.9, 0.5, 20, 1, 1.0, 1.0, 1)
    observation = Observation("c", Outcome.DONE, Stage.TIMING, timing=timing).to_json()
    assert page([replace(make.result(), observation=observation)]).data["cells"]["run"] == [35.9]


def test_machine_code_around_the_sites_is_read_once_a_cubin(make: Maker) -> None:
    asked = []

    def sass_of(result: CellResult) -> Any:
        asked.append(result)
        return lambda pc: (f"> {pc:#x} {HOSTILE}",)

    results = [make.answer(make.cell("13.3.1", arch)) for arch in ("sm_90", "sm_100", "sm_120")]
    made = page([*results, make.answer(make.cell("13.4.3"))], sass_of=sass_of)
    assert len(asked) == 1
    assert made.block(2, 4)["sass"][str(0x8D80)][0].startswith("> 0x8d80 </script>")


def test_long_compiler_output_is_cut_in_the_middle(make: Maker) -> None:
    result = make.result(compile=make.failed(5, "first" + "x" * 10 * MAX_TEXT + "last"))
    stderr = page([result]).block(0, 3)["stderr"]
    assert len(stderr) < MAX_TEXT + 100
    assert stderr.startswith("first") and stderr.endswith("last") and "characters left out" in stderr


# --- nothing breaks out -----------------------------------------------------------------------


def test_hostile_texts_stay_texts(make: Maker) -> None:
    gate = {
        "decision": HOSTILE,
        "reasons": [{"kind": HOSTILE, "text": HOSTILE, "cells": [HOSTILE], "command": HOSTILE}],
    }
    text = render_html([hostile(make)], title=HOSTILE, facts={HOSTILE: [HOSTILE]}, gate=gate)
    text.encode("utf-8")
    made = Page(text)
    assert list(made.scripts) == ["data", "blocks", "module"]
    assert not any(tag in ("img", "iframe", "link", "base") for tag, _ in made.tags)
    assert made.data["kernels"] == [legible(HOSTILE)]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    assert made.block(0, 3)["stderr"].startswith("error: </script>")
    assert "{{7*7}}" in made.text and "49" not in made.text
    assert not any(name.startswith("on") or name == "style" for _, attrs in made.tags for name in attrs)


@pytest.mark.parametrize("verdict", ["infra_error", "import", "trace", "signature"])
def test_findings_that_no_version_is_to_blame_for_name_none(make: Maker, verdict: str) -> None:
    made = page([no_fault_of_a_version(make, verdict)])
    assert "Since when" not in made.text and "affected" not in made.text


def test_an_odd_result_costs_the_page_only_its_own_evidence(make: Maker) -> None:
    odd = replace(make.result(), observation={"k": {1: Unreadable()}})
    made = page([odd, make.answer(make.cell("13.4.3"))])
    assert "cannot be reported: RuntimeError" in made.block(0, 0)["summary"]
    assert made.block(1, 0)["verdict"] == "compiles"


def test_policy_allows_this_script_and_style_and_nothing_else(lab_run: list[CellResult]) -> None:
    made = page(lab_run)
    policy = next(a["content"] for t, a in made.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None

    def named(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert f"script-src 'sha256-{named(made.scripts['module'])}'" in policy
    assert f"style-src 'sha256-{named(''.join(made.styles))}'" in policy
    assert "require-trusted-types-for 'script'" in policy


def test_nothing_is_fetched(lab_run: list[CellResult]) -> None:
    made = page(lab_run)
    assert not any("src" in attributes for _, attributes in made.tags)
    assert all((a.get("href") or "#").startswith("#") for _, a in made.tags)
    own = made.scripts["module"] + "".join(made.styles)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|url\(|@import", own
    )


@given(st.text(), st.text())
def test_embedded_json_can_end_nothing_and_comes_back(key: str, text: str) -> None:
    embedded = embeddable({key: text})
    assert embedded.isascii() and not re.search(r"[<>&\n]", embedded)
    assert json.loads(embedded) == {key: text}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
)


@given(_JSON)
def test_plain_values_can_always_be_embedded(value: Any) -> None:
    json.loads(embeddable(plain(value)))


def test_not_a_number_becomes_text() -> None:
    assert plain({"a": [math.nan, math.inf, 1.5]}) == {"a": ["nan", "inf", 1.5]}
