"""What the lab must know about a kernel: data where it can be.

A `Kernel` says where the text is, which arguments it takes and which settings may vary. From a
`Case` it derives the `Specialization` (what the compiler sees), the placement of every array and
the grid (what a launch needs).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.kernels.arrays import Placement, assume, place
from harness.model import (
    Array,
    Case,
    Constant,
    KernelSource,
    Parameter,
    Scalar,
    ScalarParameter,
    Specialization,
)


@dataclass(frozen=True)
class ArrayArgument:
    """An array parameter. `dims` names its extents, e.g. ("M", "N"); dtype "$dtype" is the case's.

    `role`: in | out | inout. `dtype_for` replaces the dtype for some case dtypes (an 8-bit float
    input has a bfloat16 output, say). The case's layout and kind of values apply where `follows_layout` is
    set; `values` names a kind of its own.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str = "$dtype"
    role: str = "in"
    follows_layout: bool = False
    values: str | None = None
    dtype_for: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ScalarArgument:
    """A scalar passed at launch; its value is the setting or dimension `of`."""

    name: str
    dtype: str
    of: str


@dataclass(frozen=True)
class ConstantArgument:
    """A `ct.Constant`; its value is the setting or dimension `of`."""

    name: str
    of: str


Argument = ArrayArgument | ScalarArgument | ConstantArgument
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Kernel:
    """A kernel the lab can compile, launch and judge.

    `dims` names the entries of a case's shape. `knobs` maps the kernel's own settings to their
    defaults; None is filled in by `heuristics`, which maps all known values to those it adds, as
    users' launch code does. `grid` maps values and the SM count to a launch grid; without it, or
    without `reference` (a name in the execution room's registry), the kernel is judged as far as possible.
    `formulas` say in expressions over the parameters what `reference` computes, for scripts that stand alone.
    `rows` names the dimension whose entries are computed independently of each other, if there is one:
    permuting or splitting arrays along it commutes with the kernel. `dtypes` lists the element types that
    it is written for; none means any.
    """

    name: str
    path: Path
    canonical: str
    function: str
    dims: tuple[str, ...]
    arguments: tuple[Argument, ...]
    knobs: Mapping[str, Scalar] = field(default_factory=dict)
    heuristics: Callable[[Values], Values] = lambda values: {}
    grid: Callable[[Values, int], tuple[int, int, int]] | None = None
    reference: str | None = None
    formulas: tuple[tuple[str, str], ...] = ()
    rows: str | None = None
    dtypes: tuple[str, ...] = ()

    def described_by(self, case: Case) -> Kernel:
        """The kernel with the arguments and grid that a case spells out, where it does."""
        run = case.run
        if run is None:
            return self
        launched = {argument.name: argument for argument in run.arguments}
        arguments: list[Argument] = []
        known: dict[str, Scalar] = {}
        for parameter in case.parameters:
            if isinstance(parameter, Constant):
                arguments.append(ConstantArgument(parameter.name, parameter.name))
                known[parameter.name] = parameter.value
            elif isinstance(parameter, ScalarParameter):
                arguments.append(ScalarArgument(parameter.name, parameter.dtype, parameter.name))
                known[parameter.name] = launched[parameter.name].value
            elif isinstance(parameter, Array):
                told = launched[parameter.name]
                extents = {f"{told.name}.shape[{axis}]": n for axis, n in enumerate(told.shape)}
                arguments.append(
                    ArrayArgument(told.name, tuple(extents), parameter.dtype, told.role, False, told.values)
                )
                known |= extents
        return replace(self, arguments=tuple(arguments), knobs=known, grid=lambda values, sm_count: run.grid)

    def values(self, case: Case) -> dict[str, Any]:
        """Dimensions and settings of a case, heuristics applied."""
        if len(case.shape) != len(self.dims):
            raise ValueError(f"{self.name} takes a shape ({', '.join(self.dims)}), not {list(case.shape)}")
        given: dict[str, Any] = dict(zip(self.dims, case.shape, strict=True))
        given |= {"dtype": case.dtype, **self.knobs, **dict(case.knobs)}
        return given | {k: v for k, v in self.heuristics(given).items() if given.get(k) is None}

    def placements(self, case: Case) -> tuple[Placement, ...]:
        """Where every array argument lies, in argument order."""
        values = self.values(case)
        return tuple(
            place(
                a.name,
                a.dtype_for.get(case.dtype, case.dtype if a.dtype == "$dtype" else a.dtype),
                tuple(values[d] for d in a.dims),
                case.layout if a.follows_layout else "contiguous",
            )
            for a in self.arguments
            if isinstance(a, ArrayArgument)
        )

    def specialise(self, case: Case) -> Specialization:
        """The specialisation a JIT launch of this case would compile."""
        values = self.values(case)
        placed = {p.name: p for p in self.placements(case)}

        def parameter(argument: Argument) -> Parameter:
            if isinstance(argument, ArrayArgument):
                return assume(placed[argument.name])
            if isinstance(argument, ScalarArgument):
                return ScalarParameter(argument.name, argument.dtype)
            return Constant(argument.name, values[argument.of])

        parameters = case.parameters or tuple(parameter(a) for a in self.arguments)
        return Specialization(
            self.source(), parameters, case.hints, case.calling_convention, case.bytecode_version
        )

    def source(self) -> KernelSource:
        return KernelSource(str(self.path), self.canonical, self.function, _sha256(self.path))


class KernelFileError(ValueError):
    """The file of a kernel cannot be read; the text is one sentence with a remedy."""


@lru_cache(maxsize=256)
def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise KernelFileError(
            f"the kernel file {path} cannot be read ({error.strerror}); name the matrix that it belongs to "
            "with --matrix, or run the matrix again"
        ) from None


def user_kernel(spec: str, base: Path | None = None) -> Kernel:
    """A kernel named "path/to/file.py:function"; the case spells out its parameters.

    Compilers are shown a harmless name: a `"` in a file's name ends up in PTX, which ptxas then rejects.
    """
    file, _, function = spec.rpartition(":")
    path = ((base or Path.cwd()) / file).absolute()
    name = re.sub(r"[^A-Za-z0-9._-]", "_", path.name)
    return Kernel(spec, path, f"kernels/user/{name}", function, dims=(), arguments=())
