"""The nouns of the lab: frozen values that every stage hands to the next.

Nothing here does any work or imports anything of ours from outside. A value knows how to turn itself into
plain JSON (`to_json`), how to come back (`from_json`) and, where it names something, its identity (`digest`).

record           what every noun can do
verdict          the one word a cell ends with
specialization   what a compiler can tell apart about a launch
asked            cases, toolchains, devices, and the cells they make
outcome          frontends and backends, and what they said
inspection       what the machine code tells
judgement        what was concluded
"""

from __future__ import annotations

from harness.model.asked import Case, Cell, Device, RunArgument, RunSettings, Tolerance, Toolchain
from harness.model.inspection import Inspection, PoolAnswer, PoolBooks, PoolSite, WarpGroup
from harness.model.judgement import Advice, CellResult, Judgement
from harness.model.outcome import Backend, CompileOutcome, Component, Frontend, ProcessUsage, TraceOutcome
from harness.model.record import Record, Scalar, canonical_json, digest_of, scalar, scalar_to_json
from harness.model.specialization import (
    HINT_NAMES,
    Array,
    ArrayList,
    Constant,
    Hints,
    KernelSource,
    Parameter,
    ScalarParameter,
    Specialization,
    TupleParameter,
)
from harness.model.verdict import Verdict

__all__ = [
    "HINT_NAMES",
    "Advice",
    "Array",
    "ArrayList",
    "Backend",
    "Case",
    "Cell",
    "CellResult",
    "CompileOutcome",
    "Component",
    "Constant",
    "Device",
    "Frontend",
    "Hints",
    "Inspection",
    "Judgement",
    "KernelSource",
    "Parameter",
    "PoolAnswer",
    "PoolBooks",
    "PoolSite",
    "ProcessUsage",
    "Record",
    "RunArgument",
    "RunSettings",
    "Scalar",
    "ScalarParameter",
    "Specialization",
    "Tolerance",
    "Toolchain",
    "TraceOutcome",
    "TupleParameter",
    "Verdict",
    "WarpGroup",
    "canonical_json",
    "digest_of",
    "scalar",
    "scalar_to_json",
]
