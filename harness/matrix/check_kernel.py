"""Faults that only the file of a reader's own kernel shows: no such kernel, or one with other parameters.

The file is read, never imported, so what its text does not tell for certain is left to the frontend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from harness.matrix import expand, schema
from harness.matrix.document import Document
from harness.matrix.kernel_text import Function, KernelText
from harness.matrix.locate import TomlPath
from harness.matrix.parameters import ConstantParameter, Parameter, TupleParameter
from harness.matrix.problems import Problem, listing, quote, suggestion

MAX_KERNEL_BYTES = 1_000_000
"""Largest part of a kernel's file that is looked at."""


def named(document: Document, path: TomlPath, kernel: str) -> Iterator[Problem]:
    """Files that cannot be read, and names in them that are no kernel."""
    file, _, name = kernel.rpartition(":")
    if not file:
        yield document.problem(path, f'{quote(kernel)} names no function; write "file.py:name"')
        return
    if not name.isidentifier():
        yield document.problem(path, f'{quote(name)} is not a function\'s name; write "file.py:name"')
        return
    try:
        text = _text(document.path.parent / file)
    except (OSError, ValueError):
        words = f"no kernel file {quote(file)} can be read; give its path from the folder of the matrix file"
        yield document.problem(path, words)
        return
    bound = text.names()
    if bound and name not in bound:
        remedy = suggestion(name, sorted(bound), "check the name")
        yield document.problem(path, f"{quote(file)} has no function {quote(name)}; {remedy}")
    function = text.function(name)
    if function is not None and not function.is_kernel:
        at = f"{file}:{function.line}"
        words = f"the function {quote(name)} ({at}) is no kernel; decorate it with @ct.kernel"
        yield document.problem(path, words)


def parameters(document: Document, index: int, table: schema.CaseTable) -> Iterator[Problem]:
    """Parameters that are not the kernel's: too few, too many, in another order, of other names or kinds."""
    given = table.parameters or ()
    if len({parameter.name for parameter in given}) < len(given):
        return  # which is told elsewhere
    for kernel in filter(expand.is_own, table.kernel):
        file, _, name = kernel.rpartition(":")
        try:
            function = _text(document.path.parent / file).function(name)
        except (OSError, ValueError):
            continue
        if function is not None and function.is_kernel:
            yield from _against(document, ("case", index, "parameters"), given, function, file)


def _against(
    document: Document, here: TomlPath, given: tuple[Parameter, ...], kernel: Function, file: str
) -> Iterator[Problem]:
    names, at = kernel.parameters, f"{file}:{kernel.line}"
    takes = ", ".join(names) or "none"
    if len(given) != len(names):
        text = f"lists {len(given)}, but the kernel ({at}) takes {len(names)}: {takes}"
        yield document.problem(here, f"{text}; {_remedy([p.name for p in given], names)}")
        return
    for position, (parameter, name) in enumerate(zip(given, names, strict=True)):
        path = (*here, position)
        if parameter.name in names and parameter.name != name:
            number = names.index(parameter.name) + 1
            text = f"{quote(parameter.name)} is number {number} of the kernel's ({at}: {takes})"
            yield document.problem((*path, "name"), f"{text}; list them in its order")
        elif parameter.name != name:
            text = (
                f"the kernel ({at}) takes no {quote(parameter.name)}; write {quote(name)}, which stands here"
            )
            yield document.problem((*path, "name"), text)
        elif name in kernel.constants and not isinstance(parameter, ConstantParameter | TupleParameter):
            text = f'is a ct.Constant in the kernel ({at}); write kind = "constant" and its value'
            yield document.problem((*path, "kind"), text)
        elif isinstance(parameter, ConstantParameter):
            wanted = kernel.constants.get(name, "")
            wrong = [value for value in parameter.value if not _is_of(value, wanted)]
            if wrong:
                text = (
                    f"is a ct.Constant[{wanted}] in the kernel ({at}), not {wrong[0]}; write {_WORDS[wanted]}"
                )
                yield document.problem((*path, "value"), text)


_WORDS = {"int": "a whole number", "bool": "true or false", "float": "a number"}


def _is_of(value: bool | int | float, wanted: str) -> bool:
    """Whether a constant is what the kernel says it is; where Python would take it, it is."""
    match wanted:
        case "int":
            return isinstance(value, int)
        case "bool":
            return isinstance(value, bool)
        case "float":
            return not isinstance(value, bool)
    return True


def _remedy(given: Sequence[str], names: Sequence[str]) -> str:
    """What to do about a wrong number of parameters."""
    missing = listing(quote(name) for name in names if name not in given)
    further = listing(quote(name) for name in given if name not in names)
    steps = [f"add {missing}" if missing else "", f"remove {further}" if further else ""]
    return " and ".join(filter(None, steps))


def _text(path: Path) -> KernelText:
    """Raises OSError, and ValueError for a path that is none."""
    if not path.is_file():
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return _parsed(file.read(MAX_KERNEL_BYTES).decode("utf-8", errors="replace"))


_parsed = lru_cache(maxsize=32)(KernelText)
"""Many cases ask about one file."""
