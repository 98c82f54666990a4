"""From a matrix file to a `Matrix`, or to all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from harness import kernels
from harness.matrix import check, check_cases, check_kernel, check_run, expand, schema
from harness.matrix.check import KnownVersions
from harness.matrix.document import Document, read_document
from harness.matrix.explain import example, explain
from harness.matrix.locate import TomlPath
from harness.matrix.problems import MatrixError, Problem, listing, quote, suggestion
from harness.matrix.value import GateRules, Matrix, Timeouts

MAX_PROBLEMS = 100
"""Problems told at once."""

_MANY: dict[str, type[BaseModel]] = {
    "toolchain": schema.ToolchainTable,
    "device": schema.DeviceTable,
    "case": schema.CaseTable,
}
_ONE: dict[str, type[BaseModel]] = {
    "target": schema.TargetTable,
    "timeouts": schema.TimeoutsTable,
    "run": schema.RunTable,
    "gate": schema.GateTable,
}
_NEEDED = {
    "toolchain": 'add [[toolchain]] with cuda_tile = "1.5.0" and cuda_toolkit = "13.3.1", say',
    "target": f"add [target] with {example('arch')}, say",
    "case": f"add [[case]] with {example('kernel')}, say",
}


def load_matrix(
    path: Path,
    known_versions: KnownVersions | None = None,
    known_kernels: Mapping[str, frozenset[str]] | None = None,
) -> Matrix:
    """Read and check a matrix file in full.

    `known_versions` lists the versions there are of a component, oldest first; without it any
    version will do. `known_kernels` maps shipped kernels to the settings they take. Raises
    MatrixError with every problem found, up to MAX_PROBLEMS.
    """
    document = read_document(path)
    if known_kernels is None:
        known_kernels = {name: kernels.knobs(name) for name in kernels.names()}
    tables = _Tables()
    found = _problems(document, tables, known_versions, known_kernels)
    problems = list(islice(found, MAX_PROBLEMS + 1))
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        if len(problems) > MAX_PROBLEMS:
            more = Problem(
                problems[0].file, None, "", f"and more than these {MAX_PROBLEMS} problems; correct them first"
            )
            problems = [*problems[:MAX_PROBLEMS], more]
        raise MatrixError(problems)
    devices = tuple(tables.device.values())
    notes = (n for i, case in tables.case.items() for n in check_run.notes(document, i, case, devices))
    return replace(tables.matrix(path), notes=tuple(map(str, islice(notes, MAX_PROBLEMS))))


class _Tables:
    """The tables without a fault of their own, by index."""

    def __init__(self) -> None:
        self.toolchain: dict[int, schema.ToolchainTable] = {}
        self.device: dict[int, schema.DeviceTable] = {}
        self.case: dict[int, schema.CaseTable] = {}
        self.target: schema.TargetTable | None = None
        self.timeouts = schema.TimeoutsTable()
        self.run = schema.RunTable()
        self.gate = schema.GateTable()

    def matrix(self, path: Path) -> Matrix:
        assert self.target is not None
        drawn = (expand.generator(table, index + 1) for index, table in self.case.items())
        return Matrix(
            path=path,
            toolchains=tuple(c for table in self.toolchain.values() for c in expand.toolchains(table)),
            archs=self.target.arch,
            devices=tuple(map(expand.device, self.device.values())),
            cases=tuple(case for table in self.case.values() for case in expand.cases(table)),
            generators=tuple(generator for generator in drawn if generator is not None),
            timeouts=Timeouts(**self.timeouts.model_dump()),
            jobs=self.run.jobs,
            only={
                case.digest: limit
                for table in self.case.values()
                if (limit := expand.only(table)) is not None
                for case in expand.cases(table)
            },
            gate=GateRules(**self.gate.model_dump()),
        )


def _problems(
    document: Document,
    tables: _Tables,
    known_versions: KnownVersions | None,
    known_kernels: Mapping[str, frozenset[str]],
) -> Iterator[Problem]:
    yield from _top_level(document)
    yield from _tables(document, tables)
    if known_versions is not None:
        yield from check.versions(document, known_versions)
    for index, raw in document.tables("case"):
        misfits = list(check_cases.case_keys(document, index, raw, known_kernels))
        if misfits:
            tables.case.pop(index, None)
        yield from misfits
    for index, toolchain in tables.toolchain.items():
        yield from check.toolchain_table(document, index, toolchain)
    yield from check.toolchain_names(document, tables.toolchain)
    yield from check.devices(document, tables.device, tables.target)
    yield from check.gate(document, tables.gate)
    for index, case in tables.case.items():
        yield from check_cases.shapes(document, index, case)
        yield from check_cases.fits(document, index, case)
        yield from check_cases.parameters(document, index, case)
        yield from check_kernel.parameters(document, index, case)
        yield from check_run.settings(document, index, case)
        yield from check_cases.limits(document, index, case, tables.toolchain, tables.target)
    yield from check_cases.repeated_cases(document, tables.case)


def _top_level(document: Document) -> Iterator[Problem]:
    names = tuple(schema.MatrixFile.model_fields)
    for key, value in document.data.items():
        if key not in names:
            listed = f"known are {listing(f'[{name}]' for name in names)}"
            kind = "table" if isinstance(value, dict | list) else "key"
            yield document.problem((key,), f"unknown {kind}; {suggestion(key, names, listed)}")
        elif key in _ONE and not isinstance(value, dict):
            yield document.problem((key,), f"must be one table; write [{key}]")
        elif key in _MANY and not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
            yield document.problem((key,), f"must be a list of tables; write [[{key}]], with two brackets")
    for name, remedy in _NEEDED.items():
        if document.data.get(name, []) == []:
            yield document.problem((), f"has no table {quote(name)}; {remedy}")


def _tables(document: Document, tables: _Tables) -> Iterator[Problem]:
    """Check each table by itself, and keep the faultless."""
    for name, model in _MANY.items():
        for index, table in document.tables(name):
            checked, problems = _table(document, (name, index), model, table)
            if checked is not None:
                getattr(tables, name)[index] = checked
            yield from problems
    for name, model in _ONE.items():
        if isinstance(document.data.get(name), dict):
            checked, problems = _table(document, (name,), model, document.data[name])
            if checked is not None:
                setattr(tables, name, checked)
            yield from problems


def _table(
    document: Document, here: TomlPath, model: type[BaseModel], table: dict[str, Any]
) -> tuple[BaseModel | None, Iterator[Problem]]:
    repeated = check.repeated_values(document, here, model, table)
    try:
        checked = model.model_validate(table)
    except ValidationError as error:
        return None, chain(explain(document, here, model, error), repeated)
    problems = list(repeated)
    return (None if problems else checked), iter(problems)
