"""Faults of [[case]] tables that no single value shows: kernels and their files, keys that do not go
together, repetition.

`case_keys` looks at the raw table, whatever else is wrong with it, so that one reading of the
messages is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness import kernels
from harness.matrix import check_kernel, expand, schema
from harness.matrix.check import items
from harness.matrix.document import Document
from harness.matrix.explain import example
from harness.matrix.locate import TomlPath
from harness.matrix.parameters import ArrayItem, ArrayParameter, ListParameter, TupleParameter
from harness.matrix.problems import Problem, listing, quote, suggestion
from harness.matrix.rules import OneOrMany
from harness.matrix.words import DTYPE_ALIASES, KNOBS, TUPLE_CONVENTION, VECTOR_LAYOUTS
from harness.model import Case

MAX_CASES = 100_000
"""Cases a file may list in all. Each becomes a value in memory, and a cell per toolchain and architecture."""


def case_keys(
    document: Document, index: int, table: Mapping[str, Any], known: Mapping[str, frozenset[str]]
) -> Iterator[Problem]:
    """Kernels that do not exist, and keys that do not fit the table's kernels."""
    here: TomlPath = ("case", index)
    named = [
        (path, name) for path, name in items(table.get("kernel"), (*here, "kernel")) if isinstance(name, str)
    ]
    own = [name for _, name in named if expand.is_own(name)]
    shipped = [name for _, name in named if name in known]
    for path, name in named:
        if expand.is_own(name):
            yield from check_kernel.named(document, path, name)
        elif name not in known:
            listed = f'the lab ships {listing(map(quote, known))}; your own is "path/to/file.py:name"'
            yield document.problem(
                path, f"unknown kernel {quote(name)}; {suggestion(name, tuple(known), listed)}"
            )
    if own and len(own) < len(named):
        text = "mixes the lab's kernels with your own, which take other keys; give each a [[case]]"
        yield document.problem((*here, "kernel"), text)
    elif own:
        yield from _own_keys(document, here, table)
    elif shipped:
        yield from _shipped_keys(document, here, table, {name: known[name] for name in shipped})


def _own_keys(document: Document, here: TomlPath, table: Mapping[str, Any]) -> Iterator[Problem]:
    if "parameters" not in table:
        text = f"is missing; list your kernel's parameters in order, for example {example('parameters')}"
        yield document.problem(here, text, 'key "parameters"')
    if "engine" in table:
        yield document.problem((*here, "engine"), "is only for the lab's own kernels; remove it")
    for key in ("shape", "layout", "generate", *KNOBS):
        if key in table:
            what = 'write it as a constant in "parameters"' if key in KNOBS else 'describe it in "parameters"'
            yield document.problem((*here, key), f"is only for the lab's own kernels; remove it, or {what}")
    typed = [p for p in _tables_within(table.get("parameters")) if p.get("kind") in ("array", "scalar")]
    from_case = any(p.get("dtype", "$dtype" if p["kind"] == "array" else "") == "$dtype" for p in typed)
    if from_case and "dtype" not in table:
        text = f'is missing, and a parameter has dtype "$dtype"; add it, for example {example("dtype")}'
        yield document.problem(here, text, 'key "dtype"')
    if not from_case and "dtype" in table and "parameters" in table:
        text = 'no parameter takes it; remove it, or write dtype = "$dtype" in the parameters it is for'
        yield document.problem((*here, "dtype"), text)


def _tables_within(value: Any) -> Iterator[dict[str, Any]]:
    """All parameter tables, those inside lists and tuples included."""
    if isinstance(value, list):
        for item in value:
            yield from _tables_within(item)
    elif isinstance(value, dict):
        yield value
        yield from _tables_within(value.get("items"))
        yield from _tables_within(value.get("element"))


_BROUGHT = {
    "parameters": "parameters",
    "grid": "launch grid",
    "reference": "reference",
    "tolerance": "error bound",
}


def _shipped_keys(
    document: Document, here: TomlPath, table: Mapping[str, Any], known: Mapping[str, frozenset[str]]
) -> Iterator[Problem]:
    for key, what in _BROUGHT.items():
        if key in table:
            text = f"{quote(next(iter(known)))} brings its own {what}; remove the key"
            yield document.problem((*here, key), text)
    if "generate" in table and "only" in table:
        yield document.problem((*here, "only"), 'cannot stand beside "generate"; remove one of them')
    if "generate" in table and "shape" in table:
        yield document.problem(
            (*here, "shape"), 'cannot stand beside "generate", which draws shapes; remove one of them'
        )
    for key in ("opt_level", *KNOBS) if "generate" in table else ():
        for path, value in items(table.get(key), (*here, key)):
            if value == "default":
                yield document.problem(
                    path, 'cannot be "default" beside "generate"; write the value that is meant'
                )
    for key in ("shape", "dtype"):
        if key not in table and "generate" not in table:
            yield document.problem(
                here, f"is missing; add it, for example {example(key)}", f"key {quote(key)}"
            )
    for knob in KNOBS:
        if knob not in table:
            continue
        for kernel, knobs in known.items():
            if knob not in knobs:
                rest = f"it takes {listing(map(quote, sorted(knobs)))}" if knobs else "it takes no settings"
                text = f"{quote(kernel)} has no such setting ({rest}); remove the key"
                yield document.problem((*here, knob), text)


def shapes(document: Document, index: int, table: schema.CaseTable) -> Iterator[Problem]:
    """Shapes that are not what the table's kernels take. Only a matrix may be empty, and only of rows."""
    alone = OneOrMany(depth=1).unwrapped(document.data["case"][index].get("shape"))
    for number, shape in enumerate(table.shape or ()):
        path: TomlPath = ("case", index, "shape") if alone else ("case", index, "shape", number)
        for dims in dict.fromkeys(_dims(name) for name in table.kernel):
            if len(shape) != len(dims):
                extents = f"{len(shape)} extent{'s' * (len(shape) != 1)}"
                words = "rows and columns, [M, N]" if dims == ("M", "N") else f"[{', '.join(dims)}]"
                yield document.problem(path, f"has {extents}; write {words}")
                break
            empty = [name for name, extent in zip(dims, shape, strict=True) if extent < 1]
            if empty == ["N"] and dims == ("M", "N"):
                yield document.problem(path, "has no columns; N must be at least 1 (M may be 0)")
            elif empty and not (empty == ["M"] and dims == ("M", "N")):
                yield document.problem(path, f"{' and '.join(empty)} must be at least 1; write a larger one")


def fits(document: Document, index: int, table: schema.CaseTable) -> Iterator[Problem]:
    """Element types and layouts that a shipped kernel of the table is not written for."""
    here: TomlPath = ("case", index)
    for name in table.kernel:
        if name not in kernels.names():
            continue
        kernel = kernels.get(name)
        for path, dtype in items(document.data["case"][index].get("dtype"), (*here, "dtype")):
            if kernel.dtypes and DTYPE_ALIASES.get(dtype, dtype) not in kernel.dtypes:
                text = (
                    f"{quote(name)} is not written for it; {listing(map(quote, kernel.dtypes), 'or')} will do"
                )
                yield document.problem(path, text)
        for path, layout in items(document.data["case"][index].get("layout"), (*here, "layout")):
            if len(kernel.dims) == 1 and layout not in VECTOR_LAYOUTS:
                text = f"{quote(name)} takes vectors; {listing(map(quote, VECTOR_LAYOUTS), 'or')} will do"
                yield document.problem(path, text)


def _dims(kernel: str) -> tuple[str, ...]:
    """What a shipped kernel's shape is made of."""
    return kernels.get(kernel).dims if kernel in kernels.names() else ("M", "N")


def limits(
    document: Document,
    index: int,
    table: schema.CaseTable,
    toolchains: Mapping[int, schema.ToolchainTable],
    target: schema.TargetTable | None,
) -> Iterator[Problem]:
    """Values of "only" that no toolchain and no target has, and limits that leave nothing."""
    only = expand.only(table)
    if only is None or target is None:
        return
    here: TomlPath = ("case", index, "only")
    chains = [chain for one in toolchains.values() for chain in expand.toolchains(one)]
    known = {
        "cuda_tile": [chain.cuda_tile for chain in chains],
        "cuda_toolkit": [chain.cuda_toolkit for chain in chains],
        "toolchain": [chain.name for chain in chains],
        "arch": list(target.arch),
    }
    faults = 0
    for key, values in known.items():
        raw = document.data["case"][index]["only"].get(key)
        for path, value in items(raw, (*here, key)):
            if value not in values:
                faults += 1
                where = "[target] arch" if key == "arch" else "any [[toolchain]]"
                remedy = suggestion(str(value), tuple(dict.fromkeys(values)))
                yield document.problem(path, f"{quote(str(value))} is not in {where}; {remedy}")
    if not faults and chains and not any(only.allows(c, arch) for c in chains for arch in target.arch):
        yield document.problem(here, "leaves nothing to ask; allow more, or remove the case")


def parameters(document: Document, index: int, table: schema.CaseTable) -> Iterator[Problem]:
    """Repeated names, and assumptions that are not one for each dimension."""
    here: TomlPath = ("case", index, "parameters")
    seen: set[str] = set()
    for number, parameter in enumerate(table.parameters or ()):
        at = (*here, number)
        if parameter.name in seen:
            yield document.problem(
                (*at, "name"), f"{quote(parameter.name)} is taken; give every parameter its own name"
            )
        seen.add(parameter.name)
        match parameter:
            case ArrayParameter():
                yield from _dimensions(document, at, parameter)
            case ListParameter():
                yield from _dimensions(document, (*at, "element"), parameter.element)
            case TupleParameter():
                if table.calling_convention not in (None, (TUPLE_CONVENTION,)):
                    text = f"tuples need {quote(TUPLE_CONVENTION)}; write that, or leave the key out"
                    yield document.problem(("case", index, "calling_convention"), text)
                for position, item in enumerate(parameter.items):
                    if isinstance(item, ArrayItem):
                        yield from _dimensions(document, (*at, "items", position), item)


def _dimensions(document: Document, at: TomlPath, array: ArrayItem) -> Iterator[Problem]:
    for key in ("shape_divisible_by", "shape_constant", "stride_divisible_by", "stride_constant"):
        given = getattr(array, key)
        if given is not None and len(given) not in (1, array.rank):
            text = f"has {len(given)} entries for rank {array.rank}; write one a dimension, or one for all"
            yield document.problem((*at, key), text)


def repeated_cases(document: Document, tables: Mapping[int, schema.CaseTable]) -> Iterator[Problem]:
    """Too many cases, and cases asked for twice: by two tables, or by "default" beside what it means."""
    total = 0
    for index, table in tables.items():
        total += expand.count(table)
        if total > MAX_CASES:
            text = f"makes {total:,} cases so far, more than {MAX_CASES:,}; list less, or split the matrix"
            yield document.problem(("case", index), text)
            return
    seen: dict[tuple[Any, ...], int] = {}
    for index, table in tables.items():
        for case in expand.cases(table):
            # The text tells the constants 1, 1.0 and true apart, which Python takes for equal.
            identity = (case, repr(case.knobs))
            if identity in seen:
                text = f"asks again for a case of #{seen[identity] + 1} ({_words(case)}); ask for it once"
                yield document.problem(("case", index), text)
                break
            seen[identity] = index


def _words(case: Case) -> str:
    settings = [f"{key}={str(value).lower()}" for key, value in case.settings.items() if value is not None]
    return " ".join([case.kernel, "x".join(map(str, case.shape)), case.dtype, *settings]).replace("  ", " ")
