"""What a compiler can tell apart about a launch: parameters, hints, source."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from harness.model.record import Record, Scalar, digest_of, scalar_to_json


@dataclass(frozen=True)
class Array(Record):
    """An array parameter and what a JIT launch would assume about it.

    Strides and shapes are in elements, `base_divisible_by` is in bytes; one entry per dimension.
    None means dynamic, a divisor of 1 means nothing is assumed.
    """

    name: str
    dtype: str
    shape_constant: tuple[int | None, ...]
    shape_divisible_by: tuple[int, ...]
    stride_constant: tuple[int | None, ...]
    stride_divisible_by: tuple[int, ...]
    base_divisible_by: int = 16
    alias_groups: tuple[str, ...] = ()
    may_alias_internally: bool = False
    index_dtype: str = "int32"
    type: str = "Array"

    @property
    def rank(self) -> int:
        return len(self.stride_constant)


@dataclass(frozen=True)
class ScalarParameter(Record):
    """A scalar passed at launch, e.g. dtype "int32"."""

    name: str
    dtype: str
    type: str = "ScalarParameter"


@dataclass(frozen=True)
class Constant(Record):
    """A `ct.Constant`: baked into the bytecode, no launch argument."""

    name: str
    value: Scalar
    type: str = "Constant"

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "value": scalar_to_json(self.value)}


@dataclass(frozen=True)
class ArrayList(Record):
    """A list of arrays that share one description."""

    name: str
    element: Array
    alias_groups: tuple[str, ...] = ()
    elements_may_alias: bool = False
    type: str = "ArrayList"


@dataclass(frozen=True)
class TupleParameter(Record):
    """A tuple of parameters (cuda-tile 1.5 and newer, calling convention 2)."""

    name: str
    items: tuple[Array | ScalarParameter | Constant, ...]
    type: str = "TupleParameter"


Parameter = Array | ScalarParameter | Constant | ArrayList | TupleParameter


@dataclass(frozen=True)
class Hints(Record):
    """What `ct.kernel(...)` takes: CTAs an SM should hold (1-32), CTAs in a cluster, -O level 0-3, warps
    that compute (cuda-tile 1.4 and newer).

    None leaves what the kernel's own decorator says.
    """

    occupancy: int | None = None
    num_ctas: int | None = None
    opt_level: int | None = 3
    num_worker_warps: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Without what came later and is not asked for, so that a cell keeps its id."""
        plain = super().to_json()
        if self.num_worker_warps is None:
            del plain["num_worker_warps"]
        return plain


HINT_NAMES = tuple(field.name for field in fields(Hints))


@dataclass(frozen=True)
class KernelSource(Record):
    """Where a kernel's text is.

    `path` is the real file; `canonical` is the name the frontend is shown instead, so that
    bytecode, which embeds it, is the same from every checkout; `sha256` is of the file's bytes.
    """

    path: str
    canonical: str
    function: str
    sha256: str


@dataclass(frozen=True)
class Specialization(Record):
    """Everything the frontend can tell apart about a launch; many cases share one."""

    source: KernelSource
    parameters: tuple[Parameter, ...]
    hints: Hints = Hints()
    calling_convention: str = "cutile_python_v1"
    bytecode_version: str | None = None
    """None: the newest that frontend and backend both know, as a JIT launch picks it."""

    @cached_property
    def digest(self) -> str:
        """Without the real path, which the compiler never sees."""
        plain = self.to_json()
        del plain["source"]["path"]
        return digest_of(plain)
