"""The parameters of a kernel of the reader's own, as tables of a matrix file."""

from __future__ import annotations

from typing import Annotated
from typing import Literal as OneOf

from pydantic import Field

from harness.matrix import words
from harness.matrix.fields import (
    ArrayDtype,
    Axis,
    Divisor,
    Extent,
    ExtentOrDynamic,
    Identifier,
    PerDimension,
    Table,
)
from harness.matrix.rules import Flag, Literal, OneOrMany, Whole, Word


class ArrayItem(Table):
    """An array, as part of a list or tuple. Left out, an assumption is what a JIT launch makes of a
    contiguous array whose base and rows are aligned to 16 bytes; nothing is assumed of its extents."""

    kind: OneOf["array"] = Field(description="Kind of parameter.")
    dtype: ArrayDtype = Field(
        "$dtype", description='Element type; "$dtype" is the dtype of the case.', examples=["bfloat16"]
    )
    rank: Annotated[int, Whole(0, 16)] = Field(description="Number of dimensions.", examples=[2])
    base_divisible_by: Divisor = Field(
        16, description="What divides the base address, in bytes.", examples=[16]
    )
    shape_divisible_by: PerDimension[Divisor] | None = Field(
        None,
        description="What divides the extents: one for all, or one a dimension. A JIT launch tests for 16.",
        examples=[16],
    )
    shape_constant: PerDimension[ExtentOrDynamic] | None = Field(
        None,
        description='Extents that are baked in, one a dimension; "dynamic": not known.',
        examples=[["dynamic", 512]],
    )
    stride_divisible_by: PerDimension[Divisor] | None = Field(
        None,
        description="What divides the strides, in elements: one for all, or one a dimension.",
        examples=[[8, 1]],
    )
    stride_constant: PerDimension[ExtentOrDynamic] | None = Field(
        None,
        description='Strides that are baked in, in elements, one a dimension; "dynamic": not known.',
        examples=[["dynamic", 1]],
    )
    alias_groups: tuple[Identifier, ...] = Field(
        (), description="Arrays that share a group may overlap.", examples=[["a"]]
    )
    may_alias_internally: Annotated[bool, Flag()] = Field(
        False, description="Whether two elements may share memory.", examples=[False]
    )
    index_dtype: Annotated[str, Word("an index dtype", words.INDEX_DTYPES)] = Field(
        "int32", description="Type of extents and strides.", examples=["int32"]
    )


class ScalarItem(Table):
    """A number passed at launch, as part of a tuple."""

    kind: OneOf["scalar"] = Field(description="Kind of parameter.")
    dtype: ArrayDtype = Field("int32", description="Its type.", examples=["int32"])


class ConstantItem(Table):
    """A number baked into the kernel, as part of a tuple."""

    kind: OneOf["constant"] = Field(description="Kind of parameter.")
    value: Annotated[bool | int | float, Literal()] = Field(description="Its value.", examples=[128])


class Named(Table):
    """Base of the parameters of a kernel."""

    name: Identifier = Field(description="Name of the parameter in the kernel.", examples=["x"])


class ArrayParameter(ArrayItem, Named):
    """An array. With `shape`, assumptions left out are those of a JIT launch of that array; without,
    those of a contiguous array, base and rows aligned to 16 bytes, of which no extent is known."""

    shape: Annotated[tuple[Extent, ...], OneOrMany(unique=False)] | None = Field(
        None, description="To run the kernel: its extents.", examples=[[4096, 512]]
    )
    role: OneOf["in", "out", "inout"] | None = Field(
        None, description="To run the kernel: whether it is read, written, or both.", examples=["in"]
    )
    values: Annotated[str, Word("a kind of values", words.VALUES)] | None = Field(
        None, description="To run the kernel: what is in it; normal unless said.", examples=["normal"]
    )


class ScalarParameter(ScalarItem, Named):
    """A number passed at launch."""

    value: Annotated[bool | int | float, Literal()] | None = Field(
        None, description="To run the kernel: its value.", examples=[4096]
    )


class ConstantParameter(Named):
    """A `ct.Constant`: a number baked into the kernel. A list makes it an axis."""

    kind: OneOf["constant"] = Field(description="Kind of parameter.")
    value: Axis[Annotated[bool | int | float, Literal()]] = Field(
        description="Its value, or values to try.", examples=[128]
    )


class ListParameter(Named):
    """A list of arrays of one description."""

    kind: OneOf["list"] = Field(description="Kind of parameter.")
    element: ArrayItem = Field(
        description="What every array of the list is.", examples=[{"kind": "array", "rank": 2}]
    )
    alias_groups: tuple[Identifier, ...] = Field(
        (), description="Parameters that share a group may overlap.", examples=[["a"]]
    )
    elements_may_alias: Annotated[bool, Flag()] = Field(
        False, description="Whether two arrays of the list may overlap.", examples=[False]
    )


class TupleParameter(Named):
    """A tuple (cuda-tile 1.5 and newer)."""

    kind: OneOf["tuple"] = Field(description="Kind of parameter.")
    items: tuple[Annotated[ArrayItem | ScalarItem | ConstantItem, Field(discriminator="kind")], ...] = Field(
        description="Its items, in order.", examples=[[{"kind": "scalar"}]]
    )


Parameter = Annotated[
    ArrayParameter | ScalarParameter | ConstantParameter | ListParameter | TupleParameter,
    Field(discriminator="kind"),
]
