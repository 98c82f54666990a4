from __future__ import annotations

import ast
import builtins
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import Maker

from harness.kernels.arrays import Placement
from harness.model import Array, Constant, Hints, ScalarParameter, Verdict
from harness.oracle import Compared, HasAdvice, SameVerdict, parse_oracle
from harness.repro.kernel_text import kernel_text
from harness.repro.launching import Launch, guess, torch_lines
from harness.repro.script import Content, script_text
from harness.repro.spec import ReproError
from harness.repro.symptom import Symptom, symptom_of

KERNEL = '''"""Many things."""

import cuda.tile as ct
import math

WIDTH = 4
UNUSED = 5


def helper(x):
    return x * WIDTH


@ct.kernel
def other(x):
    pass


@ct.kernel(num_ctas=2)
def k(x, n: int, TILE: ct.Constant[int]):
    # a comment
    ct.store(x, index=(0, 0), tile=helper(ct.load(x, index=(0, 0), shape=(TILE, TILE))))
'''
PARAMETERS = (
    Array("x", "bfloat16", (None, None), (16, 16), (None, 1), (8, 1)),
    ScalarParameter("n", "int32"),
    Constant("TILE", 16),
)


def content(symptom: Symptom, **changes: object) -> Content:
    plain = Content(
        title='It ends with """ and \\',
        summary="It does not.",
        text=KERNEL,
        function="k",
        parameters=PARAMETERS,
        hints=Hints(occupancy=16),
        launch=Launch((Placement("x", "bfloat16", (64, 32), (32, 1)),), ("inout",), (("n", 3),), (8, 1, 1)),
        symptom=symptom,
        arch="sm_90",
        bad="    pip install cuda-tile",
        deadline=20.0,
        bound=4.0,
        error_type="KeyError",
    )
    return replace(plain, **changes)


def imported(text: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    return found


@pytest.mark.parametrize("symptom", list(Symptom))
def test_a_script_needs_cuda_tile_and_torch_only(symptom: Symptom) -> None:
    text = script_text(content(symptom))
    assert imported(text) - set(sys.stdlib_module_names) <= {"cuda", "torch"}
    top = ast.parse(text).body
    assert not any(isinstance(n, ast.Import) and n.names[0].name == "torch" for n in top)


@pytest.mark.parametrize("symptom", list(Symptom))
def test_a_script_defines_everything_that_it_uses(symptom: Symptom) -> None:
    module = ast.parse(script_text(content(symptom)))
    names = {n.id for n in ast.walk(module) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names |= {n.name for n in ast.walk(module) if isinstance(n, ast.FunctionDef)}
    names |= {n.arg for n in ast.walk(module) if isinstance(n, ast.arg)}
    imports = [n for n in ast.walk(module) if isinstance(n, ast.Import | ast.ImportFrom)]
    names |= {(alias.asname or alias.name).partition(".")[0] for n in imports for alias in n.names}
    names |= {n.name for n in ast.walk(module) if isinstance(n, ast.ExceptHandler) and n.name}
    read = {n.id for n in ast.walk(module) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert read - names - set(dir(builtins)) <= {"__file__"}


def test_the_kernel_brings_what_it_needs_and_no_more() -> None:
    text, imports = kernel_text(KERNEL, "k", Hints(occupancy=16, opt_level=0))
    assert "@ct.kernel(num_ctas=2, occupancy=16, opt_level=0)\ndef k(" in text
    assert "WIDTH = 4" in text and "def helper" in text and "# a comment" in text
    assert "other" not in text and "UNUSED" not in text
    assert imports == ["import cuda.tile as ct"]


def test_whatever_gives_a_name_its_value_is_brought() -> None:
    text = (
        "import cuda.tile as ct\nimport torch\nfrom os import path, sep as SEP\n"
        "A, B = 5, 6\n"
        "if B > 5:\n    C = 2\nelse:\n    C = 3\n"
        "try:\n    import nothing as D\nexcept ImportError:\n    D = 4\n"
        "C += 1\n"
        "def init():\n    global E\n    E = 7\n"
        "init()\n"
        "print(F := 8)\nUNUSED = 9\n\n"
        "@ct.kernel\ndef k(x):\n"
        "    ct.store(x, (0,), ct.load(x, (0,), shape=(A + C + D + E + F,)) + len(SEP))\n"
    )
    kernel, imports = kernel_text(text, "k", Hints())
    assert imports == ["import cuda.tile as ct", "from os import sep as SEP"]
    for line in ("A, B = 5, 6", "    C = 3", "    D = 4", "C += 1", "    E = 7", "init()", "print(F := 8)"):
        assert line in kernel
    assert "UNUSED" not in kernel
    ast.parse(kernel)


def test_a_name_that_the_script_needs_for_itself_is_refused_with_a_remedy() -> None:
    clash = "import cuda.tile as ct\nSECONDS = 4\n\n@ct.kernel\ndef k(x):\n    ct.store(x, (0,), SECONDS)\n"
    with pytest.raises(ReproError, match=r"binds SECONDS, which repro\.py needs for itself; rename it"):
        script_text(content(Symptom.FAILS, text=clash))


def test_a_kernel_that_is_no_plain_function_is_refused() -> None:
    with pytest.raises(ReproError, match=r"k is not a plain function under @ct\.kernel"):
        kernel_text("k = make()", "k", Hints())


def test_the_signature_spells_every_assumption() -> None:
    odd = Array("x", "int8", (4, None), (1, 1), (None, None), (1, 1), 1, ("g",), True, "int64")
    text = script_text(content(Symptom.FAILS, parameters=(odd, *PARAMETERS[1:])))
    assert (
        "array(ct.int8, (1, 1), (1, 1), (None, None), base_addr_divisible_by=1, shape_constant=(4, None), "
        "alias_groups=('g',), may_alias_internally=True, index_dtype=ct.int64),  # x"
    ) in text
    assert "ScalarConstraint(ct.int32),  # n" in text
    assert "16,  # TILE" in text


def test_arrays_are_made_as_they_lie() -> None:
    arrays = (
        Placement("a", "float32", (4, 8), (8, 1)),
        Placement("b", "int32", (4,), (1,)),
        Placement("c", "float16", (4, 8), (10, 1), offset=3),
    )
    assert torch_lines(Launch(arrays, ("in",) * 3, (), (1, 1, 1))) == [
        'a = torch.rand(4, 8, device="cuda").to(torch.float32)',
        'b = torch.zeros(4, dtype=torch.int32, device="cuda")',
        'c = torch.rand(41, device="cuda").to(torch.float16).as_strided((4, 8), (10, 1), 3)',
    ]


def test_a_guess_keeps_every_promise() -> None:
    array = Array("x", "float32", (None, 32, None), (16, 1, 1), (None, None, 1), (4, 4, 1))
    (x,) = guess((array,)).arrays
    assert x.shape[0] % 16 == 0 and x.shape[1] == 32 and x.shape[2] % 16 != 0
    assert x.strides[2] == 1 and x.strides[1] % 4 == 0 and x.strides[1] >= x.shape[2]
    assert x.strides[0] % 4 == 0 and x.strides[0] >= x.strides[1] * 32


# --- which symptom -------------------------------------------------------------------------------


def test_the_symptom_follows_from_verdict_and_oracle(make: Maker) -> None:
    deadlock = make.result(inspection=make.deadlocked())
    crash = make.result(compile=make.failed(None, signal=11))
    remark = make.result(inspection=make.inspection(255, 1))
    assert symptom_of(deadlock, parse_oracle("", deadlock)) == (Symptom.DEADLOCK, None)
    assert symptom_of(crash, SameVerdict(Verdict.COMPILER_CRASH)) == (Symptom.FAILS, None)
    assert symptom_of(remark, HasAdvice("occupancy_missed")) == (Symptom.OCCUPANCY, None)
    assert symptom_of(remark, Compared("compile_seconds", ">", 4.0)) == (Symptom.SLOW, 4.0)
    with pytest.raises(ReproError, match=r"not something repro\.py can look at"):
        symptom_of(remark, Compared("registers", ">", 4.0))
    with pytest.raises(ReproError, match=r"not something repro\.py can look at"):
        symptom_of(remark, SameVerdict(Verdict.HANG))


# --- what a script does, with a compiler that only plays faults ------------------------------------

FAKE = """
import os, subprocess, sys, time

class TileCompilerExecutionError(Exception): pass
class TileUnsupportedFeatureError(Exception): pass
class ArrayConstraint:
    def __init__(self, *given, **named): pass
class ScalarConstraint(ArrayConstraint): pass
class KernelSignature(ArrayConstraint): pass
class CallingConvention:
    cutile_python_v1 = staticmethod(lambda: None)

def export_kernel(kernel, signatures, path, **options):
    fault = os.environ["FAULT"]
    if fault == "crash":
        raise TileCompilerExecutionError("Return code 5\\nfailed to compile Tile IR program")
    if fault == "refusal":
        raise TileCompilerExecutionError("Return code 1\\nCannot find option named 'sm_90'!")
    if fault == "unsupported":
        raise TileUnsupportedFeatureError("requires tileiras 13.9")
    if fault == "internal":
        raise KeyError("a.0")
    if fault == "endless":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # " + os.environ["MARK"]])
        time.sleep(600)
    if fault == "slow":
        program = os.path.join(os.environ["MARK"], "tileiras")
        os.symlink("/bin/sh", program)
        work = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; : > " + path
        os.execv(program, [program, "-c", work])
    open(path, "wb").write(b"")
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    package = tmp_path / "lib" / "cuda" / "tile"
    package.mkdir(parents=True)
    (package / "compilation.py").write_text(FAKE)
    (package / "__init__.py").write_text(
        "float16 = bfloat16 = int32 = None\n"
        "class Constant:\n    def __class_getitem__(cls, item): return cls\n"
        "def kernel(function=None, **hints):\n    return function or (lambda f: f)\n"
    )

    def runner(symptom: Symptom, fault: str, seconds: float = 20.0, **changes: object) -> tuple[int, str]:
        script = tmp_path / "repro.py"
        script.write_text(script_text(content(symptom, deadline=seconds, **changes)))
        environment = {
            **os.environ,
            "PYTHONPATH": str(tmp_path / "lib"),
            "FAULT": fault,
            "MARK": str(tmp_path),
        }
        done = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        lines = (done.stdout + done.stderr).strip().splitlines()
        return done.returncode, lines[-1] if lines else ""

    return runner


def alive(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize(
    ("symptom", "fault", "code", "line"),
    [
        (
            Symptom.FAILS,
            "crash",
            1,
            "SYMPTOM: compiling for sm_90 fails: TileCompilerExecutionError",
        ),
        (Symptom.FAILS, "refusal", 2, "UNKNOWN: TileCompilerExecutionError: Return code 1"),
        (Symptom.FAILS, "unsupported", 2, "UNKNOWN: TileUnsupportedFeatureError"),
        (Symptom.FAILS, "none", 0, "OK: sm_90 compiles"),
        (Symptom.FRONTEND, "internal", 1, "SYMPTOM: tracing the kernel fails: KeyError: 'a.0'"),
        (Symptom.FRONTEND, "unsupported", 2, "UNKNOWN"),
        (Symptom.FRONTEND, "none", 0, "OK: the kernel becomes bytecode"),
        (Symptom.DEADLOCK, "crash", 2, "UNKNOWN: TileCompilerExecutionError"),
        (Symptom.ENDLESS, "none", 0, "OK: compiling for sm_90 ended"),
        (Symptom.SLOW, "none", 0, "OK: compiling for sm_90 took 0.0 s of CPU"),
    ],
)
def test_a_script_tells_its_symptom(
    run: Callable[..., tuple[int, str]], symptom: Symptom, fault: str, code: int, line: str
) -> None:
    seen, last = run(symptom, fault)
    assert (seen, last[: len(line)]) == (code, line)


def test_a_compile_without_end_is_stopped_with_all_that_it_started(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    began = time.monotonic()
    code, line = run(Symptom.ENDLESS, "endless", 1.5)
    assert code == 1 and line.startswith("SYMPTOM: compiling for sm_90 did not end within 1.5 s")
    assert time.monotonic() - began < 20
    assert not alive(str(tmp_path / "repro.py")) and not alive(f"# {tmp_path}")


def test_cpu_seconds_are_those_of_the_compiler(run: Callable[..., tuple[int, str]]) -> None:
    code, line = run(Symptom.SLOW, "slow", bound=0.05)
    assert code == 1, line
    assert "tileiras " in line
