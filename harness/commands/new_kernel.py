"""`harness new kernel`: a kernel and its matrix, to be changed into the reader's own."""

from __future__ import annotations

import keyword
from pathlib import Path

from rich.console import Console

from harness.command_text import command

_KERNEL = '''"""What this kernel computes, and what its parameters are. Only `cuda.tile` is imported."""

import cuda.tile as ct


@ct.kernel
def {name}(x, y, TILE: ct.Constant[int]):
    """y = 2 x, a tile a block."""
    block = ct.bid(0)
    tile = ct.load(x, index=(block,), shape=(TILE,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, index=(block,), tile=tile + tile)
'''

_MATRIX = """# What to compile and run:   python -m harness run matrix.toml

[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = ["13.3.1", "13.4.3", "13.5.0"]

[target]
arch = ["sm_90", "sm_120"]

# A GPU to run on; where it is missing, its cells are skipped.
[[device]]
name = "h200"
gpu = "H200"
arch = "sm_90"

[[case]]
kernel = "{name}.py:{name}"
dtype = ["float32", "bfloat16"]        # of every array without a dtype of its own
occupancy = ["default", 4]
grid = [32]                            # tile blocks; leave it out, and shapes too, only to compile
reference = {{ y = "x + x" }}            # what is right, in NumPy's words; may be left out
parameters = [                         # one for each of the kernel's, in order
    {{ name = "x", kind = "array", rank = 1, shape = [4096], role = "in" }},
    {{ name = "y", kind = "array", rank = 1, shape = [4096], role = "out" }},
    {{ name = "TILE", kind = "constant", value = 128 }},      # a list makes it an axis
]
"""


def write_kernel(name: str, out: Path) -> int:
    """Write NAME/NAME.py and NAME/matrix.toml below `out`; 2 for a bad name, or if NAME is there."""
    folder = out / name
    problem = ""
    if keyword.iskeyword(name) or name in ("ct", "cuda"):
        problem = f"{name!r} is a word of Python's or cuda.tile's here; choose another name"
    elif not name.isidentifier():
        problem = f"{name!r} cannot name a function; use letters, digits and _, no digit first"
    elif folder.exists():
        problem = f"{folder} is there already; choose another name, or remove it"
    if problem:
        Console(stderr=True, highlight=False, soft_wrap=True).print(problem, style="red", markup=False)
        return 2
    texts = {folder / f"{name}.py": _KERNEL, folder / "matrix.toml": _MATRIX}
    folder.mkdir(parents=True)
    for path, text in texts.items():
        path.write_text(text.format(name=name), encoding="utf-8")
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"written: {', '.join(map(str, texts))}", markup=False)
    console.print(f"next: {command('run', folder / 'matrix.toml')}", markup=False)
    return 0
