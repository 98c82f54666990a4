"""The result of a reduction: a record that says everything needed to see the fault again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from harness.matrix.explain import toml
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Hints,
    Parameter,
    Record,
    ScalarParameter,
    Specialization,
    Toolchain,
    TupleParameter,
)
from harness.reduce.engine import End
from harness.report.files import write_atomically


@dataclass(frozen=True)
class LaunchArray(Record):
    """Where an array argument lies in memory at launch: shape, strides and offset in elements.

    `original` is the parameter's name in the kernel that was reduced; `role` is in | out | inout.
    """

    name: str
    original: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    role: str = "in"


@dataclass(frozen=True)
class Reduced(Record):
    """The smallest kernel and configuration found.

    `text` is the whole file, `parameters` describe the parameters of `function` in order: constants
    among them are baked in, the others are launch arguments, `arrays` tells how to make them where
    the original kernel says. `case` is the reduced configuration of the original kernel: its shape and
    knobs also give the launch grid. `good` is a toolchain on which the kernel is free of the fault,
    `deadline` how long a compile may take, in seconds.
    """

    text: str
    function: str
    parameters: tuple[Parameter, ...]
    hints: Hints
    arch: str
    toolchain: Toolchain
    good: Toolchain | None
    oracle: str
    verdict: str
    signature: str | None
    summary: str
    case: Case
    arrays: tuple[LaunchArray, ...]
    original_cell: str
    original_case: Case
    original_statements: int
    statements: int
    tried: int
    kept: int
    seconds: float
    end: End
    deadline: float
    calling_convention: str = Specialization.calling_convention
    bytecode_version: str | None = None


_NO_HINTS = Hints()

KERNEL_FILE, RECORD_FILE, MATRIX_FILE = "kernel.py", "reduced.json", "matrix.toml"


def given_hints(hints: Hints) -> dict[str, int]:
    """The hints that are not as the compiler would have them by default."""
    given = hints.to_json().items()
    return {name: value for name, value in given if value not in (None, getattr(_NO_HINTS, name))}


def matrix_text(reduced: Reduced) -> str:
    """A matrix file that shows the fault, and its absence, with `harness run`; lies beside kernel.py."""
    lines = ["# The reduced kernel:   python -m harness run matrix.toml", ""]
    for chain in (reduced.toolchain, *([reduced.good] if reduced.good else [])):
        lines.append("[[toolchain]]")
        for key in ("cuda_tile", "cuda_toolkit", "tileiras", "nvvm", "ptxas"):
            if (value := getattr(chain, key)) is not None:
                lines.append(f"{key} = {toml(value)}")
        lines.append("")
    lines += ["[target]", f"arch = {toml(reduced.arch)}", "", "[[case]]"]
    lines.append(f"kernel = {toml(f'{KERNEL_FILE}:{reduced.function}')}")
    lines += [f"{name} = {value}" for name, value in given_hints(reduced.hints).items()]
    lines.append("parameters = [")
    lines += [f"    {toml({'name': p.name, **_described(p)})}," for p in reduced.parameters]
    lines += ["]", "", "[timeouts]", f"compile = {reduced.deadline:g}", ""]
    return "\n".join(lines)


def _described(parameter: Parameter) -> dict[str, object]:
    match parameter:
        case Array():
            return _array(parameter)
        case ScalarParameter():
            return {"kind": "scalar", "dtype": parameter.dtype}
        case Constant():
            return {"kind": "constant", "value": parameter.value}
        case ArrayList():
            return {
                "kind": "list",
                "element": _array(parameter.element),
                "alias_groups": parameter.alias_groups,
                "elements_may_alias": parameter.elements_may_alias,
            }
        case TupleParameter():
            return {"kind": "tuple", "items": tuple(_described(item) for item in parameter.items)}


def _array(array: Array) -> dict[str, object]:
    told: dict[str, object] = {"kind": "array", "dtype": array.dtype, "rank": array.rank}
    if any(size is not None for size in array.shape_constant):
        told["shape_constant"] = tuple("dynamic" if n is None else n for n in array.shape_constant)
    told["shape_divisible_by"] = array.shape_divisible_by
    told["stride_constant"] = tuple("dynamic" if n is None else n for n in array.stride_constant)
    told["stride_divisible_by"] = array.stride_divisible_by
    told["base_divisible_by"] = array.base_divisible_by
    if array.alias_groups:
        told["alias_groups"] = array.alias_groups
    told["may_alias_internally"] = array.may_alias_internally
    if array.index_dtype != "int32":
        told["index_dtype"] = array.index_dtype
    return told


def write(reduced: Reduced, out: Path) -> list[Path]:
    """Write kernel.py, reduced.json and matrix.toml into `out`; returns their paths. Raises OSError."""
    texts = {
        KERNEL_FILE: reduced.text,
        RECORD_FILE: json.dumps(reduced.to_json(), indent=2) + "\n",
        MATRIX_FILE: matrix_text(reduced),
    }
    for name, text in texts.items():
        write_atomically(out / name, text)
    return [out / name for name in texts]
