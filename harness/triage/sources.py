"""Where the kernel of each signature is: in the reader's own file, or in a file with the kernel alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.report.files import write_atomically
from harness.triage.extract import extract, stands_alone
from harness.triage.lift import ExtractError
from harness.triage.look import FoundKernel, Seen, TriageError
from harness.triage.signatures import Signature


def with_sources(seen: Seen, asking: Sequence[Signature], folder: Path) -> tuple[list[Signature], list[str]]:
    """Signatures with the file of their kernel: the reader's own where a tracer can take it, else the kernel
    alone, written below `folder`; and why others cannot be looked into. Raises TriageError if none can.
    """
    sources: dict[int, str] = {}
    problems: dict[str, str] = {}
    for kernel in {id(signature.kernel): signature.kernel for signature in asking}.values():
        try:
            sources[id(kernel)] = _source(seen, kernel, folder, alone=len(seen.kernels) == 1)
        except ExtractError as error:
            problems[kernel.name] = f"{kernel.name} cannot be looked into: {error}"
    if not sources:
        raise TriageError("\n".join(problems.values()))
    found = [replace(one, source=sources[id(one.kernel)]) for one in asking if id(one.kernel) in sources]
    return found, list(problems.values())


def _source(seen: Seen, kernel: FoundKernel, folder: Path, *, alone: bool) -> str:
    """The kernel as a matrix names it. Raises ExtractError."""
    name = kernel.bound or kernel.function
    if kernel.module == "__main__" and kernel.bound and stands_alone(seen.text):
        return f"{seen.path}:{name}"
    if kernel.module not in seen.modules:
        raise ExtractError("its text cannot be found; define it in the script, or in a file that it imports")
    text = _extracted(seen, kernel, name)
    place = folder.absolute() if alone else folder.absolute() / _folder_name(seen, kernel)
    file = place / Path(seen.modules[kernel.module].file or seen.path).name
    write_atomically(file, text)
    return f"{file}:{name}"


def _folder_name(seen: Seen, kernel: FoundKernel) -> str:
    """The kernel's name, numbered where a factory made several."""
    same = [other for other in seen.kernels if other.name == kernel.name]
    number = f"-{same.index(kernel) + 1}" if len(same) > 1 else ""
    return kernel.name.replace(".", "-") + number


def _extracted(seen: Seen, kernel: FoundKernel, name: str) -> str:
    """By the name that the kernel is bound to, else out of the function that it is defined in."""
    assert kernel.module is not None
    try:
        if kernel.bound:
            return extract(kernel.module, name, seen.modules)
    except ExtractError:
        if kernel.nested is None:
            raise
    return extract(kernel.module, kernel.function, seen.modules, kernel.nested)
