"""Kernels made to stand alone keep their lines, and everything they need."""

from __future__ import annotations

import ast
from pathlib import Path

from harness.triage.extract import extract, stands_alone

SCRIPT = (Path(__file__).parent.parent / "resources" / "triage" / "launches_on_torch.py").read_text()


def test_a_kernel_keeps_its_lines_and_what_it_calls() -> None:
    alone = extract(SCRIPT, ["scale"], {"SCALE": 2.0, "WIDTH": 64})
    ours, theirs = alone.splitlines(), SCRIPT.splitlines()
    assert all(line in ("", theirs[number]) for number, line in enumerate(ours))
    for kept in ("import cuda.tile as ct", "SCALE = 2.0", "def doubled(tile):", "@ct.kernel"):
        assert kept in ours
    assert "torch" not in alone
    assert "main" not in alone
    ast.parse(alone)


def test_a_value_takes_the_place_of_what_made_it() -> None:
    head = "import torch\nimport cuda.tile as ct\nN = int(torch.ones(3).sum())\n"
    text = head + "@ct.kernel\ndef k(x):\n    ct.f(N)\n"
    alone = extract(text, ["k"], {"N": 3})
    assert alone.splitlines()[2] == "N = 3"
    assert "torch" not in alone


def test_a_kernel_from_a_factory_keeps_the_factory() -> None:
    text = (
        "import numpy\nimport cuda.tile as ct\n\n\ndef make(n):\n    @ct.kernel\n    def k(x):\n"
        "        ct.f(n)\n    return k\n\n\nunused = numpy.ones(3)\nfour = make(4)\n"
    )
    alone = extract(text, ["four"], {})
    assert "def make(n):" in alone and alone.rstrip().endswith("four = make(4)")
    assert "numpy" not in alone


def test_only_files_without_strangers_and_launches_stand_alone() -> None:
    assert stands_alone("import math\nimport cuda.tile as ct\n")
    assert not stands_alone(SCRIPT)
    assert not stands_alone("from .other import k\n")
    assert not stands_alone("import cuda.tile as ct\nct.launch(0, (1,), 0, ())\n")
