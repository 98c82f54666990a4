"""What was asked for: a case, on a toolchain, for an architecture, on a device."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.model.record import Record, Scalar, scalar_to_json
from harness.model.specialization import Hints, Parameter


@dataclass(frozen=True)
class RunArgument(Record):
    """What a parameter of a kernel that is not shipped is launched with.

    Of an array `shape` in elements, whether it is read or written (in | out | inout) and a kind of
    `values`; of a scalar its `value`.
    """

    name: str
    shape: tuple[int, ...] = ()
    role: str = "inout"
    values: str = "normal"
    value: Scalar = None

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "value": scalar_to_json(self.value)}


@dataclass(frozen=True)
class Tolerance(Record):
    """How far an output may lie from its reference: a share of the exact value, plus a number, and then
    ULP of the output's type."""

    relative: float = 0.0
    absolute: float = 0.0
    ulp: int = 0


@dataclass(frozen=True)
class RunSettings(Record):
    """How to launch a kernel that is not shipped: the grid, in tile blocks, and an argument per
    array and scalar, in the kernel's order.

    `reference` are (name, expression) in order: outputs, and steps that later expressions use. An output
    without an entry of `tolerance` is held to what float32 arithmetic may be off by.
    """

    grid: tuple[int, int, int]
    arguments: tuple[RunArgument, ...]
    reference: tuple[tuple[str, str], ...] = ()
    tolerance: tuple[tuple[str, Tolerance], ...] = ()


@dataclass(frozen=True)
class Case(Record):
    """One launch of one kernel: problem shape, dtype, hints, knobs of the kernel, and data.

    `kernel` is a shipped name ("rmsnorm.static_persistent") or "path/to/file.py:name". `knobs` are its
    own compile-time settings (allow_tma, latency, tile_m, ...), sorted by name. `layout` and
    `values` name how arrays lie in memory and what is in them; they matter to execution, and the
    layout to alignment. `parameters` is empty unless the matrix spells them out; `run` then says how
    to launch the kernel, if it can be launched. `engine` is who launches: "cubin", the lab itself, or
    "jit", `cuda.tile.launch` on torch tensors, as users do.
    """

    kernel: str
    shape: tuple[int, ...]
    dtype: str
    hints: Hints = field(default=Hints())
    knobs: tuple[tuple[str, Scalar], ...] = ()
    layout: str = "contiguous"
    values: str = "normal"
    seed: int = 0
    parameters: tuple[Parameter, ...] = ()
    run: RunSettings | None = None
    bytecode_version: str | None = None
    calling_convention: str = "cutile_python_v1"
    engine: str = "cubin"

    def to_json(self) -> dict[str, Any]:
        """Without what came later and is not asked for, so that a cell keeps its id."""
        plain = super().to_json()
        plain["knobs"] = [[name, scalar_to_json(value)] for name, value in self.knobs]
        for name in ("run", "bytecode_version", "calling_convention", "engine"):
            if getattr(self, name) == getattr(type(self), name):
                del plain[name]
        return plain

    def knob(self, name: str, default: Scalar = None) -> Scalar:
        return dict(self.knobs).get(name, default)

    @property
    def settings(self) -> dict[str, Scalar]:
        """All hints and knobs under one roof, as reports show them."""
        further: dict[str, Scalar] = {}
        if self.bytecode_version is not None:
            further["bytecode_version"] = self.bytecode_version
        if self.calling_convention != "cutile_python_v1":
            further["calling_convention"] = self.calling_convention
        if self.engine != "cubin":
            further["engine"] = self.engine
        return {**self.hints.to_json(), **dict(self.knobs), **further}


@dataclass(frozen=True)
class Toolchain(Record):
    """A frontend version and a backend version; a component may be overridden alone."""

    name: str
    cuda_tile: str
    cuda_toolkit: str
    tileiras: str | None = None
    nvvm: str | None = None
    ptxas: str | None = None


@dataclass(frozen=True)
class Device(Record):
    """What execution needs: a GPU of this name and architecture, and a driver in this range."""

    name: str
    gpu: str
    arch: str
    driver: str = ""
    """A version range such as ">=580,<600"; empty for any."""


@dataclass(frozen=True)
class Cell(Record):
    """One square of the matrix. Without a device it asks about compiling, with one about running."""

    toolchain: Toolchain
    arch: str
    case: Case
    device: Device | None = None

    @cached_property
    def id(self) -> str:
        """Twelve hex digits, stable across runs and machines."""
        return self.digest[:12]
