"""Faults in what a [[case]] says that a kernel of the reader's own computes, found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.expression import ExpressionError, parse
from harness.expression_shape import Known, Shape, shape_of
from harness.matrix import schema
from harness.matrix.document import Document
from harness.matrix.locate import TomlPath
from harness.matrix.parameters import ArrayParameter, ConstantParameter, Parameter, ScalarParameter
from harness.matrix.problems import Problem, listing, quote, suggestion


def reference(document: Document, here: TomlPath, table: schema.CaseTable) -> Iterator[Problem]:
    """Expressions that cannot be understood, name what is not there, do not fit, or are about nothing;
    and tolerances of nothing."""
    for key in ("reference", "tolerance"):
        if getattr(table, key) is not None and table.grid is None:
            yield document.problem((*here, key), 'is for kernels that run; add "grid", or remove it')
    parameters = {parameter.name: parameter for parameter in table.parameters or ()}
    outputs = [n for n, p in parameters.items() if isinstance(p, ArrayParameter) and p.role != "in"]
    yield from _expressions(document, here, table, parameters, outputs)
    for name in table.tolerance or {}:
        if name not in outputs or name not in (table.reference or {}):
            text = "has no reference to keep to; name an output that the reference names"
            yield document.problem((*here, "tolerance", name), text)
    wide = [n for n, p in parameters.items() if isinstance(p, ArrayParameter) and _is_wide(p, table)]
    for name in (table.reference or {}) if wide else ():
        if name in outputs and name not in (table.tolerance or {}):
            text = f"{quote(wide[0])} is float64, for which no error bound is worked out; add a tolerance"
            yield document.problem((*here, "reference", name), text)


def _expressions(
    document: Document,
    here: TomlPath,
    table: schema.CaseTable,
    parameters: Mapping[str, Parameter],
    outputs: list[str],
) -> Iterator[Problem]:
    known = {n: _known(p) for n, p in parameters.items() if not _is_only_written(p)}
    extents = {n: p.shape for n, p in parameters.items() if isinstance(p, ArrayParameter)}
    given = table.reference or {}
    read = _read_anywhere(given)
    for name, text in given.items():
        at: TomlPath = (*here, "reference", name)
        if name in parameters and name not in outputs:
            yield document.problem(at, "is no output of the kernel; name an array that is written")
        elif name not in outputs and name not in read:
            named = f"name {listing(map(quote, outputs), 'or')}" if outputs else "there is no output"
            remedy = suggestion(name, outputs, named)
            yield document.problem(at, f"is neither an output nor read by a later step; {remedy}")
        try:
            expression = parse(text)
            unknown = [word for word in expression.names if word not in known]
            for word in unknown:
                names = f"there are {listing(map(quote, known))}" if known else "it can only hold numbers"
                yield document.problem(at, f"knows no {quote(word)}; {suggestion(word, list(known), names)}")
            shape = None if unknown else shape_of(expression, known)
        except ExpressionError as error:
            yield document.problem(at, str(error))
            known[name] = Known(extents.get(name) or ())
            continue
        wanted = extents.get(name) if name in outputs else None
        if shape is not None and wanted is not None and not _fills(shape, wanted, bool(expression.names)):
            words = f"has shape {list(shape)}, but {quote(name)} is {list(wanted)}; correct one of them"
            yield document.problem(at, words)
        known[name] = Known(shape) if shape is not None else Known(wanted or ())
    if given and not any(name in outputs for name in given):
        listed = listing(map(quote, outputs)) if outputs else "none"
        text = f"says nothing of an array that is written ({listed}); name one"
        yield document.problem((*here, "reference"), text)


def _fills(shape: Shape, wanted: Shape, reads: bool) -> bool:
    """Whether this is the array's own shape; a plain number fills any array."""
    return shape == wanted or (not reads and shape == ())


def _read_anywhere(given: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    for text in given.values():
        try:
            found |= set(parse(text).names)
        except ExpressionError:
            continue
    return found


def _known(parameter: Parameter) -> Known:
    match parameter:
        case ArrayParameter(shape=shape):
            return Known(shape or ())
        case ConstantParameter(value=(int() as value,)) if not isinstance(value, bool):
            return Known((), value)
        case ScalarParameter(value=int() as value) if not isinstance(value, bool):
            return Known((), value)
    return Known()


def _is_only_written(parameter: Parameter) -> bool:
    return isinstance(parameter, ArrayParameter) and parameter.role == "out"


def _is_wide(parameter: ArrayParameter, table: schema.CaseTable) -> bool:
    dtypes = (table.dtype or ()) if parameter.dtype == "$dtype" else (parameter.dtype,)
    return "float64" in dtypes
