"""matrix.toml: what to compile and run, checked in full before anything starts.

document.py   the file: text, parsed data, where things stand
locate.py     line numbers, which tomllib does not keep
problems.py   faults as sentences
words.py      the vocabulary: dtypes, architectures, ...
rules.py      what one value may be
schema.py     the tables, as pydantic models and JSON Schema
explain.py    pydantic's errors as sentences
check.py      faults of toolchains, targets and devices as a whole
check_cases.py  the same for cases and their kernels
expand.py     tables multiplied out
value.py      the result
load.py       all of that in order
"""

from harness.matrix.load import load_matrix
from harness.matrix.problems import MatrixError, Problem
from harness.matrix.schema import json_schema
from harness.matrix.value import GateRules, Generator, Matrix, Timeouts

__all__ = [
    "GateRules",
    "Generator",
    "Matrix",
    "MatrixError",
    "Problem",
    "Timeouts",
    "json_schema",
    "load_matrix",
]
