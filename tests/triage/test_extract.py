"""Kernels made to stand alone keep their lines, and everything they need, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from harness.triage.extract import extract, stands_alone
from harness.triage.lift import ExtractError
from harness.triage.source import Module

SCRIPT = (Path(__file__).parent.parent / "resources" / "triage" / "launches_on_torch.py").read_text()
HEAD = "import torch\nimport cuda.tile as ct\n"


def alone(text: str, name: str = "k", *, nested: Any = None, **others: str) -> str:
    """The text of the kernel; values are told as `# NAME = value` at the end of a module."""
    modules = {}
    for module, content in {"__main__": text, **others}.items():
        lines = [line[2:] for line in content.splitlines() if line.startswith("# ")]
        values = dict(line.split(" = ", 1) for line in lines if " = " in line)
        modules[module] = Module(module, content, values, f"/r/{module}.py")
    found = extract("__main__", name, modules, nested)
    ast.parse(found)
    return found


def test_a_kernel_keeps_its_lines_and_what_it_calls() -> None:
    found = alone(SCRIPT, "scale")
    ours, theirs = found.splitlines(), SCRIPT.splitlines()
    assert all(line in ("", theirs[number]) for number, line in enumerate(ours))
    for kept in ("import cuda.tile as ct", "SCALE = 2.0", "def doubled(tile):", "@ct.kernel"):
        assert kept in ours
    assert "torch" not in found
    assert "main" not in found


@pytest.mark.parametrize(
    "body",
    [
        "def k(a, out):\n    ct.store(out, index=(0,), tile=ct.load(a, index=(0,), shape=(1,)))\n",
        "def k(p):\n    a = ct.load(p, (0,), (1,))\n    out = a + a\n    ct.store(p, (0,), out)\n",
        "def k(p):\n    ct.f([a + out for a in p for out in p])\n",
        "def k(p):\n    def inner(a):\n        out = a\n        return out\n    ct.f(inner(p))\n",
    ],
)
def test_names_of_its_own_pull_nothing_in(body: str) -> None:
    found = alone(f"{HEAD}@ct.kernel\n{body}a = torch.randn(3)\nout = torch.empty_like(a)\n")
    assert "torch" not in found


def test_a_value_takes_the_place_of_what_made_it() -> None:
    text = f"{HEAD}N = int(torch.ones(3).sum())\n@ct.kernel\ndef k(x):\n    ct.f(N)\n# N = 3\n"
    assert alone(text).splitlines()[2] == "N = 3"


def test_how_a_script_was_started_is_a_value() -> None:
    text = "import os\nimport cuda.tile as ct\nLEVEL = int(os.environ.get('L', '2'))\n"
    found = alone(f"{text}@ct.kernel(opt_level=LEVEL)\ndef k(x): ...\n# LEVEL = 2\n")
    assert "LEVEL = 2" in found and "os" not in found.split("LEVEL")[0]


def test_annotations_of_a_library_are_none_of_the_kernels_business() -> None:
    found = alone(f"{HEAD}@ct.kernel\ndef k(x: torch.Tensor, T: ct.Constant[int]) -> None:\n    ct.f(x)\n")
    assert "def k(x: object, T: ct.Constant[int]) -> None:" in found


def test_what_cannot_be_followed_is_told_with_its_line() -> None:
    text = f"import numpy as np\n{HEAD}@ct.kernel\ndef k(x):\n    ct.f(x, np.pi)\n"
    with pytest.raises(ExtractError, match=r"needs np \(__main__\.py, line 1: import numpy as np\), which"):
        alone(text)


def test_an_import_of_several_things_is_followed_thing_by_thing() -> None:
    text = "import torch, math, cuda.tile as ct\nfrom math import pi, e\nN = math.floor(pi)\n"
    found = alone(f"{text}@ct.kernel\ndef k(x):\n    ct.f(x, N, math.e)\n# N = 3\n")
    assert found.splitlines()[:3] == [
        "import math; import cuda.tile as ct",
        "from math import pi",
        "N = math.floor(pi)",
    ]


def test_a_kernel_from_a_factory_keeps_the_factory() -> None:
    text = (
        "import numpy\nimport cuda.tile as ct\n\n\ndef make(n):\n    @ct.kernel\n    def k(x):\n"
        "        ct.f(n)\n    return k\n\n\nunused = numpy.ones(3)\nfour = make(4)\n"
    )
    found = alone(text, "four")
    assert "def make(n):" in found and found.rstrip().endswith("four = make(4)")
    assert "numpy" not in found


FACTORY = """import cuda.tile as ct

def make(n, inner):
    @ct.kernel(occupancy=n)
    def k(x):
        ct.f(inner(n))
    return k

class Ops:
    @staticmethod
    @ct.kernel
    def twice(x):
        ct.f(x)

def relu(x):
    return x
"""


def test_a_kernel_inside_a_function_is_taken_out_with_its_values() -> None:
    nested = {
        "line": 4,
        "name": "k",
        "hints": {"occupancy": 4},
        "values": {"n": {"text": "4"}, "inner": {"text": "relu"}},
    }
    found = alone(FACTORY, nested=nested)
    lines = found.splitlines()
    assert lines[2:6] == ["n = 4", "@ct.kernel(occupancy=4)", "def k(x):", "    ct.f(inner(n))"]
    assert lines[-1] == "inner = relu"
    assert "def relu(x):" in found and "class" not in found and "make" not in found


def test_a_kernel_of_a_class_is_taken_out() -> None:
    found = alone(FACTORY, "twice", nested={"line": 10, "name": "twice", "hints": {}, "values": {}})
    assert found.splitlines()[9:13] == ["", "@ct.kernel", "def twice(x):", "    ct.f(x)"]
    assert "Ops" not in found


def test_a_value_that_cannot_be_written_down_is_named() -> None:
    nested = {"line": 4, "name": "k", "hints": {}, "values": {"inner": {"unknown": "Tensor"}}}
    with pytest.raises(ExtractError, match="has inner from the function around it, of type Tensor"):
        alone(FACTORY, nested=nested)


LIBRARY = """import torch
import cuda.tile as ct
WIDTH = 8
Size = ct.Constant[int]

def twice(x):
    return x * WIDTH

def gelu(x):
    return twice(x)

def unused():
    return torch.ones(3)
"""


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("from lib import gelu", "gelu"),
        ("from lib import gelu as g", "g"),
        ("import lib", "lib.gelu"),
        ("import lib as l", "l.gelu"),
        ("from lib import *", "gelu"),
    ],
)
def test_what_a_helper_has_travels_along(imported: str, call: str) -> None:
    head = f"import cuda.tile as ct\n{imported}\nSize = ct.Constant[int]\n\n"
    text = f"{head}@ct.kernel\ndef k(x, T: Size):\n    {call}(x)\n"
    found = alone(text, lib=LIBRARY)
    for kept in ("# from lib.py", "WIDTH = 8", "def twice(x):", "def gelu(x):", "def k(x, T: Size):"):
        assert kept in found
    assert "torch" not in found and "import lib" not in found and "lib." not in found.replace("lib.py", "")
    scope: dict[str, Any] = {}
    plain = (
        found.replace("import cuda.tile as ct", "")
        .replace("@ct.kernel", "")
        .replace("ct.Constant[int]", "int")
    )
    exec(plain, scope)
    assert scope[call.rpartition(".")[2]](3) == 24


def test_helpers_of_a_package_are_followed() -> None:
    text = "import cuda.tile as ct\nfrom pkg.ops import gelu\n@ct.kernel\ndef k(x):\n    gelu(x)\n"
    others = {
        "pkg.ops": "from .deep import gelu\nfrom . import deep\n",
        "pkg.deep": "def gelu(x):\n    return x\n",
    }
    assert "def gelu(x):" in alone(text, **others)


def test_two_meanings_of_a_name_are_told() -> None:
    text = (
        "import cuda.tile as ct\nfrom lib import gelu\nWIDTH = 9\n@ct.kernel\ndef k(x):\n    gelu(x, WIDTH)\n"
    )
    with pytest.raises(ExtractError, match="both define WIDTH, each in its own way; put the kernel"):
        alone(text, lib=LIBRARY)


def test_only_files_without_strangers_and_launches_stand_alone() -> None:
    assert stands_alone("import math\nimport cuda.tile as ct\n")
    assert not stands_alone(SCRIPT)
    assert not stands_alone("from .other import k\n")
    assert not stands_alone("from helper import k\n")
    assert not stands_alone("import cuda.tile as ct\nct.launch(0, (1,), 0, ())\n")
