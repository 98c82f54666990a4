from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.matrix.locate import TomlPath, find_lines, line_of

DOCUMENT = '''\
# a comment [[with]] "signs"
top = 1
"quoted key" = 'it''s not'
a.b.c = [
  1, # one
  [2, "]"],
  { x = 1, y.z = "#" },
]

[[case]]
text = """
[not a header]
key = \\"""still text\\"""
"""
raw = \'\'\'
# no comment
''\'\'\'
date = 1979-05-27 07:32:00
last = true

[case.inner]
deep = 1

[[case]]
dates = [1979-05-27 07:32:00, 1979-05-28]

[[case.inner]]
deep = [[], [3]]

[x.y]
z = {}
[x]
w = 2
'''.replace("'it''s not'", "'its not'")


def test_every_kind_of_value_is_found_on_its_line() -> None:
    assert tomllib.loads(DOCUMENT)
    lines = find_lines(DOCUMENT)
    assert {
        ("top",): 2,
        ("quoted key",): 3,
        ("a", "b", "c", 0): 5,
        ("a", "b", "c", 1, 1): 6,
        ("a", "b", "c", 2, "y", "z"): 7,
        ("case",): 10,
        ("case", 0): 10,
        ("case", 0, "text"): 11,
        ("case", 0, "raw"): 15,
        ("case", 0, "date"): 18,
        ("case", 0, "last"): 19,
        ("case", 0, "inner", "deep"): 22,
        ("case", 1): 24,
        ("case", 1, "dates", 1): 25,
        ("case", 1, "inner", 0, "deep", 1, 0): 28,
        ("x",): 32,
        ("x", "y", "z"): 31,
        ("x", "w"): 33,
    }.items() <= lines.items()


def test_windows_line_ends_count_once() -> None:
    assert find_lines("a = 1\r\nb = 2\r\n") == {("a",): 1, ("b",): 2}


def test_what_is_not_there_is_found_at_what_contains_it() -> None:
    lines = find_lines("[t]\na = [1]\n")
    assert line_of(lines, ("t", "a", 7)) == 2
    assert line_of(lines, ("t", "missing")) == 1
    assert line_of(lines, ("nowhere",)) is None


keys = st.text("abz_-09", min_size=1, max_size=4) | st.text(max_size=4)
scalars = st.one_of(
    st.integers(-9, 9),
    st.booleans(),
    st.text(max_size=8),
    st.just('"""'),
    st.just("'''"),
    st.just("#]}=,\n"),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
tables = st.dictionaries(keys, values, max_size=3)


def write(value: Any, blank: str) -> str:
    """A value as TOML, lists broken over lines where `blank` breaks lines."""
    if isinstance(value, list):
        return "[" + blank + ("," + blank).join(write(item, blank) for item in value) + blank + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)} = {write(v, '')}" for k, v in value.items()) + "}"
    return text(value) if isinstance(value, str) else json.dumps(value)


def text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def paths(value: Any, path: TomlPath = ()) -> set[TomlPath]:
    here = {path} if path else set()
    if isinstance(value, dict):
        return here.union(*(paths(item, (*path, key)) for key, item in value.items()))
    if isinstance(value, list):
        return here.union(*(paths(item, (*path, index)) for index, item in enumerate(value)))
    return here


@given(
    tables,
    st.dictionaries(keys, tables | st.lists(tables, min_size=1, max_size=3), max_size=3),
    st.sampled_from(["", " ", "\n", " # ]\n"]),
)
def test_exactly_the_paths_of_the_document_are_found(
    top: dict[str, Any], headed: dict[str, Any], blank: str
) -> None:
    lines = [f"{text(key)} = {write(value, blank)}" for key, value in top.items()]
    for name, group in headed.items():
        for table in group if isinstance(group, list) else [group]:
            header = f"[[{text(name)}]]" if isinstance(group, list) else f"[ {text(name)} ]"
            lines += [header, *(f"{text(k)} = {write(v, blank)}" for k, v in table.items())]
    if set(top) & set(headed):
        return
    document = "\n".join(lines) + "\n"
    parsed = tomllib.loads(document)
    found = find_lines(document)
    assert set(found) == paths(parsed)
    assert all(1 <= line <= document.count("\n") for line in found.values())
