"""What pydantic found wrong with a table, as sentences of ours."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from harness.matrix import parameters, schema
from harness.matrix.document import Document
from harness.matrix.locate import TomlPath
from harness.matrix.problems import Problem, listing, quote, show, suggestion
from harness.matrix.rules import OneOrMany

_ITEM_KINDS = ("array", "scalar", "constant")
_KINDS = (*_ITEM_KINDS, "list", "tuple")


def toml(value: Any) -> str:
    """A plain value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    # As it is, for TOML knows no surrogates; but DEL, which JSON lets stand, must be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _examples() -> Mapping[str, str]:
    models = [
        m
        for m in (*vars(parameters).values(), *vars(schema).values())
        if isinstance(m, type) and issubclass(m, BaseModel)
    ]
    fields = [item for model in models for item in model.model_fields.items()]
    return {key: f"{key} = {toml(field.examples[0])}" for key, field in fields if field.examples}


_EXAMPLES = _examples()


def example(key: str) -> str:
    """A line that could stand in the file: `arch = ["sm_90", "sm_120"]`."""
    return _EXAMPLES.get(key, f'{key} = "array"' if key == "kind" else key)


def _example(model: type[BaseModel], key: str) -> str:
    """The same, from the table itself where it knows one."""
    field = model.model_fields.get(key)
    return f"{key} = {toml(field.examples[0])}" if field is not None and field.examples else example(key)


def explain(
    document: Document, table: TomlPath, model: type[BaseModel], error: ValidationError
) -> Iterator[Problem]:
    """Turn the errors of one table, which stands at the path `table`, into problems, one by one."""
    raw: Any = document.data
    for step in table:
        raw = raw[step]
    for fault in error.errors(include_url=False, include_input=False):
        steps = tuple(fault["loc"])
        path, value = _follow(raw, steps, model)
        yield _problem(document, (*table, *path), value, steps, fault, model)


def _problem(
    document: Document, path: TomlPath, value: Any, steps: TomlPath, fault: Any, model: type[BaseModel]
) -> Problem:
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    context = fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return document.problem(
                path, f"is missing; add it, for example {_example(model, key)}", f"key {quote(key)}"
            )
        case "union_tag_not_found":
            choice = listing(map(quote, _KINDS if "items" not in steps else _ITEM_KINDS), "or")
            return document.problem(path, f"is missing; write one of {choice}", 'key "kind"')
        case "extra_forbidden":
            keys = _keys_at(model, steps[:-1])
            return document.problem(path, f"unknown key; {_suggest_key(key, keys)}")
        case "matrix_empty":
            return document.problem(
                path, f"the list is empty, so nothing would run; write {_example(model, key)}, say"
            )
        case "matrix_value":
            return document.problem(path, context["sentence"]())
        case "union_tag_invalid":
            kind, kinds = value.get("kind"), _KINDS if "items" not in steps else _ITEM_KINDS
            listed = f"known are {listing(map(quote, kinds))}"
            remedy = suggestion(kind, kinds, listed) if isinstance(kind, str) else listed
            return document.problem((*path, "kind"), f"unknown kind of parameter, {show(kind)}; {remedy}")
        case "matrix_type":
            expected = context["expected"]
        case "model_type" | "model_attributes_type" | "dict_type":
            expected = "a table, {…}"
        case "tuple_type":
            expected = "a list, […]"
        case "literal_error":
            expected = context["expected"].replace("'", '"')
        case _:
            expected = fault["msg"]
    return document.problem(
        path, f"expected {expected}, found {show(value)}; write {_example(model, key)}, say"
    )


def _suggest_key(key: str, keys: tuple[str, ...]) -> str:
    return suggestion(key, keys, f"known here are {listing(map(quote, keys))}")


def _follow(raw: Any, steps: TomlPath, model: type[BaseModel]) -> tuple[TomlPath, Any]:
    """Where pydantic's location is in the file, as far as it is there, and what stands there.

    pydantic counts an index for a value that stands alone in place of a list, and a step for the
    kind of a parameter; the file has neither.
    """
    path: list[str | int] = []
    value, kind_told, key = raw, False, ""
    for step in steps:
        if isinstance(value, dict) and step == value.get("kind") and not kind_told:
            kind_told = True
        elif isinstance(value, dict) and step in value:
            path.append(step)
            value, kind_told, key = value[step], False, str(step)
        elif isinstance(value, list) and isinstance(step, int) and not (key == "shape" and _alone(value)):
            path.append(step)
            value, kind_told, key = value[step], False, ""
        elif key == "shape":
            key = ""  # one shape alone: its index is not in the file, that of its extent is
    return tuple(path), value


def _alone(shape: list[Any]) -> bool:
    return OneOrMany(depth=1).unwrapped(shape)


def _keys_at(model: type[BaseModel], steps: TomlPath) -> tuple[str, ...]:
    """The keys of the table in which an unknown one stands."""
    current = model
    for position, step in enumerate(steps):
        if not isinstance(step, str) or step not in current.model_fields:
            continue
        choices = list(_models(current.model_fields[step]))
        kind = next((later for later in steps[position + 1 :] if later in _KINDS), None)
        for choice in choices:
            if len(choices) == 1 or kind in get_args(choice.model_fields["kind"].annotation):
                current = choice
                break
    return tuple(current.model_fields)


def _models(field: FieldInfo | Any) -> Iterator[type[BaseModel]]:
    """The models an annotation speaks of, however deep."""
    annotation = field.annotation if isinstance(field, FieldInfo) else field
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
