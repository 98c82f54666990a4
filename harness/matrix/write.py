"""A case as the keys of a [[case]] table: the way back from `expand`.

What a reader would leave out because it is so anyway is left out.
"""

from __future__ import annotations

from typing import Any

from harness.matrix import expand, parameters
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Parameter,
    RunArgument,
    ScalarParameter,
    TupleParameter,
)

_ASSUMPTIONS = ("shape_constant", "shape_divisible_by", "stride_constant", "stride_divisible_by")


def case_table(case: Case) -> dict[str, Any]:
    """Keys and values of the table whose only case is this one."""
    plain = Case(case.kernel, case.shape, case.dtype)
    own = expand.is_own(case.kernel)
    baked = {p.name for p in case.parameters if isinstance(p, Constant)}
    table: dict[str, Any] = {"kernel": case.kernel}
    if case.shape:
        table["shape"] = [list(case.shape)]
    if case.dtype and not case.parameters:
        table["dtype"] = case.dtype
    for name, value in case.hints.to_json().items():
        if value is not None and (name != "opt_level" or own or value != plain.hints.opt_level):
            table[name] = value
    table |= {name: value for name, value in case.knobs if name not in baked and value is not None}
    for key in ("layout", "values", "seed", "bytecode_version", "calling_convention", "engine"):
        if getattr(case, key) != getattr(plain, key):
            table[key] = getattr(case, key)
    launched = {argument.name: argument for argument in case.run.arguments} if case.run else {}
    if case.run is not None:
        table["grid"] = list(case.run.grid)
        if case.run.reference:
            table["reference"] = dict(case.run.reference)
        if case.run.tolerance:
            table["tolerance"] = {name: given.to_json() for name, given in case.run.tolerance}
    if case.parameters:
        table["parameters"] = [_named(p, launched.get(p.name)) for p in case.parameters]
    return table


def _named(parameter: Parameter, launched: RunArgument | None) -> dict[str, Any]:
    return {"name": parameter.name, **_described(parameter, launched)}


def _described(parameter: Parameter, launched: RunArgument | None = None) -> dict[str, Any]:
    match parameter:
        case Array():
            return _array(parameter, launched)
        case ScalarParameter():
            told: dict[str, Any] = {"kind": "scalar", "dtype": parameter.dtype}
            if launched is not None and launched.value is not None:
                told["value"] = launched.value
            return told
        case Constant():
            return {"kind": "constant", "value": parameter.value}
        case ArrayList():
            told = {"kind": "list", "element": _array(parameter.element)}
            if parameter.alias_groups:
                told["alias_groups"] = list(parameter.alias_groups)
            if parameter.elements_may_alias:
                told["elements_may_alias"] = True
            return told
        case TupleParameter():
            return {"kind": "tuple", "items": [_described(item) for item in parameter.items]}


def _array(array: Array, launched: RunArgument | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"kind": "array", "dtype": array.dtype, "rank": array.rank}
    if launched is not None:
        given |= {"shape": list(launched.shape), "role": launched.role}
        if launched.values != "normal":
            given["values"] = launched.values
    # An item of a tuple has a name that no parameter can have.
    table = parameters.ArrayParameter.model_validate({**given, "name": "array"})
    usual = expand.parameters([table], array.dtype, {})[0].to_json()
    for key in _ASSUMPTIONS:
        told = list(getattr(array, key))
        if told != list(usual[key]):
            given[key] = ["dynamic" if item is None else item for item in told]
    for key in ("base_divisible_by", "may_alias_internally", "index_dtype"):
        if getattr(array, key) != usual[key]:
            given[key] = getattr(array, key)
    if array.alias_groups:
        given["alias_groups"] = list(array.alias_groups)
    return given
