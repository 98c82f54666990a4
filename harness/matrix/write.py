"""A case as the keys of a [[case]] table: the way back from `expand`.

What a reader would leave out because it is so anyway is left out.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from harness.matrix import expand, parameters
from harness.model import (
    Array,
    ArrayList,
    Case,
    Constant,
    Hints,
    Parameter,
    ScalarParameter,
    TupleParameter,
)

_NO_HINTS = Hints()
_ITEM: TypeAdapter[parameters.ArrayParameter] = TypeAdapter(parameters.ArrayParameter)


def case_table(case: Case) -> dict[str, Any]:
    """Keys and values of the table whose only case is this one."""
    plain = Case(case.kernel, case.shape, case.dtype)
    baked = {p.name for p in case.parameters if isinstance(p, Constant)}
    table: dict[str, Any] = {"kernel": case.kernel}
    if case.shape:
        table["shape"] = [list(case.shape)]
    if case.dtype and not case.parameters:
        table["dtype"] = case.dtype
    hints = case.hints.to_json()
    table |= {name: v for name, v in hints.items() if v not in (None, getattr(_NO_HINTS, name))}
    table |= {name: value for name, value in case.knobs if name not in baked and value is not None}
    for key in ("layout", "values", "seed"):
        if getattr(case, key) != getattr(plain, key):
            table[key] = getattr(case, key)
    if case.parameters:
        table["parameters"] = [{"name": p.name, **_described(p)} for p in case.parameters]
    return table


def _described(parameter: Parameter) -> dict[str, Any]:
    match parameter:
        case Array():
            return _array(parameter)
        case ScalarParameter():
            return {"kind": "scalar", "dtype": parameter.dtype}
        case Constant():
            return {"kind": "constant", "value": parameter.value}
        case ArrayList():
            told: dict[str, Any] = {"kind": "list", "element": _array(parameter.element)}
            if parameter.alias_groups:
                told["alias_groups"] = list(parameter.alias_groups)
            if parameter.elements_may_alias:
                told["elements_may_alias"] = True
            return told
        case TupleParameter():
            return {"kind": "tuple", "items": [_described(item) for item in parameter.items]}


def _array(array: Array) -> dict[str, Any]:
    given = {"kind": "array", "dtype": array.dtype, "rank": array.rank}
    table = _ITEM.validate_python({**given, "name": array.name})
    usual = expand.parameters([table], array.dtype, {})[0].to_json()
    for key in ("shape_constant", "shape_divisible_by", "stride_constant", "stride_divisible_by"):
        told = list(getattr(array, key))
        if told != usual[key]:
            given[key] = ["dynamic" if item is None else item for item in told]
    for key in ("base_divisible_by", "may_alias_internally", "index_dtype"):
        if getattr(array, key) != usual[key]:
            given[key] = getattr(array, key)
    if array.alias_groups:
        given["alias_groups"] = list(array.alias_groups)
    return given
