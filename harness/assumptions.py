"""What a matrix says of the parameters of a reader's own kernel, fact by fact. Pure.

Settings are axes of a matrix and always told. Parameters say much that is rarely of interest, so reports
name of it only what tells cases apart that look equal otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

from harness.model import Array, ArrayList, Case, Constant, Parameter, RunSettings, ScalarParameter

_PER_DIMENSION = ("shape_constant", "shape_divisible_by", "stride_constant", "stride_divisible_by")

_LAST_RESORT = "case"


def assumptions(case: Case) -> dict[str, str]:
    """Everything that is said of the parameters and of the launch, as {"x.rank": "2", ...}, and last,
    should none of that differ, the start of the case's digest."""
    if not case.parameters:
        return {}
    told: dict[str, str] = {}
    for parameter in case.parameters:
        told |= {f"{parameter.name}.{key}": text for key, text in _facts(parameter, case.dtype).items()}
    if case.run is not None:
        told |= _launch(case.run)
    return {**told, _LAST_RESORT: case.digest[:6]}


def telling(cases: Iterable[Case], row: Callable[[Case], Hashable]) -> tuple[str, ...]:
    """The names of as few assumptions as it takes to part the cases whose `row` is equal."""
    alike: dict[Hashable, dict[Case, dict[str, str]]] = defaultdict(dict)
    for case in cases:
        if case.parameters and case not in (group := alike[row(case)]):
            group[case] = assumptions(case)
    groups = [list(group.values()) for group in alike.values() if len(group) > 1]
    known = dict.fromkeys(name for group in groups for told in group for name in told)
    names: list[str] = []
    for name in sorted(known, key=_LAST_RESORT.__eq__):
        if any(_parts(group, [*names, name]) > _parts(group, names) for group in groups):
            names.append(name)
    return tuple(names)


def shown(case: Case, names: Iterable[str]) -> list[str]:
    """These assumptions of a case as `name=value`."""
    told = assumptions(case)
    return [f"{name}={told[name]}" for name in names if name in told]


def _parts(group: Sequence[dict[str, str]], names: Sequence[str]) -> int:
    """Into how many these names part the cases of a group."""
    return len({tuple(told.get(name, "") for name in names) for told in group})


def _facts(parameter: Parameter, dtype: str) -> dict[str, str]:
    match parameter:
        case Array():
            return _array(parameter, dtype)
        case ScalarParameter():
            return {"kind": "scalar", "dtype": parameter.dtype}
        case Constant():
            return {"kind": "constant", "value": _text(parameter.value)}
        case ArrayList():
            further = {"elements_may_alias": _text(parameter.elements_may_alias)}
            groups = {"list_alias_groups": _text(parameter.alias_groups)}
            return {**_array(parameter.element, dtype), "kind": "list", **further, **groups}
    items = [(item.name.rpartition(".")[2], _facts(item, dtype)) for item in parameter.items]
    return {"kind": "tuple"} | {f"{at}.{key}": text for at, told in items for key, text in told.items()}


def _array(array: Array, dtype: str) -> dict[str, str]:
    told = {"kind": "array", "rank": str(array.rank)}
    if array.dtype != dtype:
        told["dtype"] = array.dtype
    told |= {name: _text(getattr(array, name)) for name in _PER_DIMENSION}
    rest = ("base_divisible_by", "alias_groups", "may_alias_internally", "index_dtype")
    return told | {name: _text(getattr(array, name)) for name in rest}


def _launch(run: RunSettings) -> dict[str, str]:
    told = {"grid": _text(run.grid)}
    for argument in run.arguments:
        for key in ("shape", "role", "values", "value"):
            told[f"{argument.name}.{key}"] = _text(getattr(argument, key))
    return told


def _text(value: object) -> str:
    """A value in few characters: one for all dimensions is said once."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "dynamic"
        case tuple():
            parts = list(map(_text, value))
            return parts[0] if len(set(parts)) == 1 else ",".join(parts)
    return str(value)
