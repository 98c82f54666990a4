"""What a kernel's text shows of its parameters, and the line that a reader is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.triage.look import FoundKernel, FoundParameter, Seen, TriageError
from harness.triage.notation import parse
from harness.triage.signatures import signatures
from harness.triage.source import Module
from harness.triage.usage import usages

TEXT = """import cuda.tile as ct

@ct.kernel
def k(x, y, z, w, q, n, scale, eps: ct.Constant[float], CAUSAL: ct.Constant[bool], T: ct.Constant[int]):
    i = ct.bid(0)
    for j in range(n):
        t = ct.load(x, index=(i, j, 0), shape=(1, 1, T)) * scale
        ct.store(y, (i, j), t)
    ct.atomic_add(z, i, t)
    helper(w, q.shape[3])
"""
NAMES = ("x", "y", "z", "w", "q", "n", "scale", "eps", "CAUSAL", "T")


def test_roles_and_ranks() -> None:
    found = usages(TEXT, "k", 3)
    assert {name: found[name].role for name in ("x", "y", "z", "w", "q")} == {
        "x": "in",
        "y": "out",
        "z": "inout",
        "w": "inout",
        "q": "inout",
    }
    assert [found[name].rank for name in ("x", "y", "q")] == [3, 2, 4]
    assert usages(TEXT, "other", 3) == {}


def test_the_line_to_write_can_be_used_as_it_stands() -> None:
    constants = {"eps": "float", "CAUSAL": "bool", "T": "int"}
    said = {name: "constant" if name in constants else "" for name in NAMES}
    parameters = tuple(FoundParameter(name, said[name], constants.get(name, "")) for name in NAMES)
    kernel = FoundKernel("k", "k", 3, parameters, bound="k")
    seen = Seen(Path("report.py"), TEXT, (kernel,), {"__main__": Module("__main__", TEXT)})
    with pytest.raises(TriageError) as caught:
        signatures(seen)
    line = str(caught.value).rpartition("# harness: ")[2]
    assert line.startswith("x = array(float32, 3); y = array(float32, 2); z = array(float32, 2)")
    assert line.endswith(
        "n = scalar(int32); scale = scalar(float32); eps = const(1.0); CAUSAL = const(true); T = const(128)"
    )
    assert set(parse(line, "here")) == set(NAMES)
