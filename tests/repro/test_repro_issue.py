from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from made_repros import made

from harness.repro.issue import MAX_LINK, Facts, issue
from harness.repro.scrub import Scrubber
from harness.repro.spec import BISECT_FILE, bytecode_file

FACTS = Facts(
    components={"tileiras": "13.3.36", "nvvm": "13.3.73", "ptxas": "13.3.73"},
    log="SYMPTOM: the kernel never ends",
    environment="Python: CPython 3.11.7",
    driver="NVIDIA H200, 580.159.04",
    script="import cuda.tile as ct\n",
)
NOTHING = Scrubber()


def test_the_headings_are_those_of_the_form_in_its_order(tmp_path: Path) -> None:
    text = issue(made(tmp_path), FACTS, NOTHING).text
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == [
        "Version",
        "Version",
        "Which installation method(s) does this occur on?",
        "Describe the bug.",
        "Minimum reproducible example",
        "Relevant log output",
        "Full env printout",
        "Other/Misc.",
        "Contributing Guidelines",
    ]
    assert text.startswith("### Version\n\n1.5.0\n\n### Version\n\n13.3.1\n")
    assert text.count("- [ ] ") == 2


def test_it_says_what_a_compiler_engineer_asks_next(tmp_path: Path) -> None:
    (tmp_path / BISECT_FILE).write_text(
        '{"last_good": "13.1.80", "first_bad": "13.2.51", "last_bad": "13.3.36", "first_fixed": "13.4.59",'
        ' "component": "tileiras", "named_by": "tileiras"}'
    )
    (tmp_path / bytecode_file("sm_90")).write_bytes(b"")
    text = issue(made(tmp_path), FACTS, NOTHING).text
    for fact in (
        "Expected: It ends.",
        "tileiras 13.3.36, nvvm 13.3.73, ptxas 13.3.73",
        "Architectures: sm_90, sm_120",
        "Driver: NVIDIA H200, 580.159.04",
        "--gpu-name sm_90 -O3 --lineinfo",
        "Bytecode version: 13.2",
        "last good 13.1.80, first bad 13.2.51, last bad 13.3.36, first fixed 13.4.59",
        "Guilty component: tileiras",
        'Made from: tile1.5.0-ctk13.3.1 sm_90 k "quoted"',
        "kernel.sm_90.tileirbc",
        "SYMPTOM: the kernel never ends",
    ):
        assert fact in text


def test_the_link_fills_the_form_in(tmp_path: Path) -> None:
    made_issue = issue(made(tmp_path), FACTS, NOTHING)
    parts = urlsplit(made_issue.link)
    assert (parts.netloc, parts.path) == ("github.com", "/NVIDIA/cutile-python/issues/new")
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    assert query["template"] == "01-bug-report.yml"
    assert query["title"] == "[BUG]: The kernel never ends"
    assert (query["version"], query["ctk-version"]) == ("1.5.0", "13.3.1")
    assert query["mvr"] == FACTS.script
    assert made_issue.left_out == ()


@pytest.mark.parametrize("size", [100, 5_000, 200_000])
def test_the_link_is_never_too_long_and_says_what_it_leaves_out(tmp_path: Path, size: int) -> None:
    facts = Facts(FACTS.components, "ö" * size, FACTS.environment, FACTS.driver, "#" * size)
    made_issue = issue(made(tmp_path, title="t" * 500), facts, NOTHING)
    assert len(made_issue.link) <= MAX_LINK
    query = parse_qs(urlsplit(made_issue.link).query)
    for field in made_issue.left_out:
        assert field not in query
    assert made_issue.left_out == (() if size == 100 else ("mvr", "logs"))


def test_a_fence_in_a_log_does_not_end_its_block(tmp_path: Path) -> None:
    facts = Facts(FACTS.components, "before\n```\nafter", "", "", "x")
    text = issue(made(tmp_path), facts, NOTHING).text
    assert "````shell\nbefore\n```\nafter\n````" in text
    assert "### Full env printout\n\n```shell\n_No response_\n```" in text


def test_planted_secrets_reach_neither_text_nor_link(tmp_path: Path) -> None:
    secrets = {"CI_TOKEN": "s3cr3t-value", "USER": "mmustermann", "HOSTNAME": "build-box-7"}
    scrubber = Scrubber.of(secrets, (("/srv/homes/mm", "~"),), ())
    planted = "s3cr3t-value mmustermann build-box-7 /srv/homes/mm/k.py /tmp/tmp81/k.cubin"
    facts = Facts({"tileiras": planted}, planted, planted, planted, planted)
    repro = made(tmp_path, title=planted, summary=planted, origin=planted, observed=planted)
    made_issue = issue(repro, facts, scrubber)
    for text in (made_issue.title, made_issue.text, made_issue.link):
        for word in ("s3cr3t", "mmustermann", "build-box-7", "srv", "tmp81"):
            assert word not in text
