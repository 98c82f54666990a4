"""The JSON Schema that editors read."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from harness.kernels import names
from harness.matrix import json_schema, parameters, schema
from harness.matrix.explain import toml

SCHEMA = json_schema()


def tables() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "MatrixFile", SCHEMA
    yield from SCHEMA["definitions"].items()


def test_every_table_and_key_is_described() -> None:
    for name, table in tables():
        assert table["description"], name
        assert table["additionalProperties"] is False, name
        for key, described in table["properties"].items():
            definition = SCHEMA["definitions"].get(described.get("$ref", "").rpartition("/")[2], {})
            said = described.get("description") or definition.get("description", "")
            assert said.endswith("."), (name, key)


def test_it_is_draft_7_with_local_references_that_lead_somewhere() -> None:
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(SCHEMA)))
    assert references <= {f"#/definitions/{name}" for name in SCHEMA["definitions"]}
    assert not re.search(r'"(prefixItems|\$defs|unevaluatedProperties)"', json.dumps(SCHEMA))


def test_nothing_in_it_is_null_which_toml_cannot_say() -> None:
    assert "null" not in json.dumps(SCHEMA)


def test_kernels_are_offered() -> None:
    one, many = SCHEMA["definitions"]["CaseTable"]["properties"]["kernel"]["anyOf"]
    assert one["anyOf"][0]["enum"] == list(names())
    assert many["items"] == one


def test_its_top_level_is_that_of_the_shipped_matrix() -> None:
    shipped = tomllib.loads((Path(__file__).parents[2] / "matrix.toml").read_text())
    assert shipped.keys() <= SCHEMA["properties"].keys()
    assert set(SCHEMA["required"]) == {"toolchain", "target", "case"}


MODELS = [
    m
    for m in (*vars(parameters).values(), *vars(schema).values())
    if isinstance(m, type) and issubclass(m, BaseModel)
]
FIELDS = [(model, key) for model in MODELS for key in model.model_fields]


@pytest.mark.parametrize(("model", "key"), FIELDS, ids=lambda part: getattr(part, "__name__", part))
def test_the_examples_that_messages_give_are_right(model: type[BaseModel], key: str) -> None:
    for example in model.model_fields[key].examples or ():
        value = tomllib.loads(f"key = {toml(example)}")["key"]
        model.__pydantic_validator__.validate_assignment(model.model_construct(), key, value)
