"""The kinds of values that keys of a matrix file take."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict

from harness import kernels
from harness.matrix import words
from harness.matrix.rules import Number, OneOrMany, OrWord, ReleaseVersion, Text, Whole, Word

T = TypeVar("T")
Axis = Annotated[tuple[T, ...], OneOrMany()]


class KernelRule(Text):
    """A kernel by name; editors offer the shipped ones. Whether there is one, `check_cases` knows."""

    def describe(self) -> dict[str, Any]:
        own = {"type": "string", "pattern": r"^.+\.py:[A-Za-z_][A-Za-z0-9_]*$"}
        return {"anyOf": [{"type": "string", "enum": list(kernels.names())}, own]}


Arch = Annotated[str, Word("an architecture", words.ARCHS)]
Dtype = Annotated[str, Word("a dtype", words.DTYPES, tuple(words.DTYPE_ALIASES.items()))]
ArrayDtype = Annotated[str, Word("a dtype", (*words.DTYPES, "$dtype"), tuple(words.DTYPE_ALIASES.items()))]
Version = Annotated[str, ReleaseVersion()]
BytecodeVersion = Annotated[
    str,
    Text(
        "a bytecode version",
        r"default|[0-9]{1,3}\.[0-9]{1,3}",
        'a version such as "13.2", or "default"',
        10,
    ),
]
Convention = Annotated[str, Word("a calling convention", words.CALLING_CONVENTIONS)]
Label = Annotated[
    str,
    Text(
        "a name",
        r"[A-Za-z0-9][A-Za-z0-9._+-]*",
        "letters, digits and any of . _ + -, letter or digit first",
        60,
    ),
]
Identifier = Annotated[
    str, Text("a parameter name", r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, no digit first")
]
KernelName = Annotated[
    str, KernelRule("the name of a kernel", r"[^\x00-\x1f]+", "printable characters", 4096)
]
Divisor = Annotated[int, Whole(1, 2**30)]
Seconds = Annotated[float, Number(0, 86_400, above=True)]
Extent = Annotated[int, Whole(0, 2**31 - 1)]
Seed = Annotated[int, Whole(0, 2**63 - 1)]
PerDimension = Annotated[tuple[T, ...], OneOrMany(unique=False)]
ExtentOrDynamic = Annotated[int | None, OrWord(Whole(0, 2**31 - 1), "dynamic")]


class Table(BaseModel):
    """Base: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)
