"""Parameters of a reader's kernel as the lab's: from a recorded launch, from a comment, from an option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.kernels.arrays import ITEMSIZE, Placement, assume
from harness.matrix.words import DTYPE_ALIASES
from harness.model import ArrayList, Constant, Hints, Parameter, ScalarParameter, TupleParameter
from harness.triage.look import FoundKernel, FoundLaunch, Seen, TriageError, comments
from harness.triage.notation import parse
from harness.triage.usage import example, usages

_SCALARS = {"int": "int32", "float": "float32", "bool": "bool"}

AS_DECORATED = Hints(opt_level=None)
"""Every hint is what the kernel's decorator says."""


@dataclass(frozen=True)
class Signature:
    """A kernel's parameters, and how they are known: launch | told.

    `label` tells it from other launches of the same kernel. `hints` are those of the launch that the
    kernel's decorator does not have. `source` is the kernel as a matrix names it, once that is known.
    """

    kernel: FoundKernel
    parameters: tuple[Parameter, ...]
    known_by: str
    launch: FoundLaunch | None = None
    label: str = ""
    hints: Hints = AS_DECORATED
    source: str = ""

    @property
    def all_hints(self) -> Hints:
        """The hints of the launch, and of the decorator where the launch has none."""
        own = {name: value for name, value in vars(self.hints).items() if value is not None}
        return replace(AS_DECORATED, **{**dict(self.kernel.hints), **own})


def signatures(seen: Seen, told: str = "", names: Sequence[str] = ()) -> list[Signature]:
    """Signatures of the file's kernels, or of those in `names`, in the order of the file.

    `told` is the text of an option and counts more than comments, which count more than launches, parameter
    by parameter. Of a kernel's launches the distinct ones each give a signature. Raises TriageError that says
    what to write.
    """
    chosen = [kernel for kernel in seen.kernels if not names or kernel.name in names]
    unknown = sorted(set(names) - {kernel.name for kernel in seen.kernels})
    if unknown:
        have = ", ".join(kernel.name for kernel in seen.kernels)
        raise TriageError(f"{seen.path.name} has no kernel {unknown[0]!r}; its kernels are {have}")
    option = parse(told, "--parameters")
    _check_names(option, chosen)
    found: list[Signature] = []
    missing: list[str] = []
    for kernel in chosen:
        words = _comments_for(kernel, seen) | option
        if kernel.launches:
            launched = _labelled(kernel, _launched(kernel, words, seen))
            found += [one if one.known_by == "launch" else replace(one, launch=None) for one in launched]
            continue
        try:
            found.append(Signature(kernel, _told(kernel, words), "told", label=kernel.name))
        except KeyError as absent:
            missing.append(f"{kernel.name}: {absent.args[0]}")
    if found:
        return _distinct(found)
    raise TriageError(_ask(chosen, missing, seen))


def _distinct(found: Sequence[Signature]) -> list[Signature]:
    """Labels numbered where several kernels share one, as those that one factory made."""
    labels = [one.label for one in found]
    return [
        replace(one, label=f"{one.label}, {labels[:place].count(one.label) + 1}")
        if labels.count(one.label) > 1
        else one
        for place, one in enumerate(found)
    ]


def _check_names(option: Mapping[str, Parameter], kernels: Sequence[FoundKernel]) -> None:
    known = {p.name for kernel in kernels for p in kernel.parameters}
    stray = [name for name in option if name not in known]
    if stray:
        have = "; ".join(f"{k.name}({', '.join(p.name for p in k.parameters)})" for k in kernels)
        raise TriageError(f"--parameters: no kernel has a parameter {stray[0]!r}; there is {have}")


def _comments_for(kernel: FoundKernel, seen: Seen) -> dict[str, Parameter | str]:
    """What comments say: those of the file, then those at the kernel, which count more."""
    starts = sorted(other.line for other in seen.kernels)
    after = next((line for line in starts if line > kernel.line), len(seen.text) + 1)
    everywhere: dict[str, Any] = {}
    here: dict[str, Any] = {}
    for line, text in comments(seen.text):
        near = kernel.line - 2 <= line < after - 2
        (here if near else everywhere).update(parse(text, f"{seen.path.name}, line {line}"))
    return everywhere | here


def _launched(kernel: FoundKernel, words: Mapping[str, Any], seen: Seen) -> list[Signature]:
    found: dict[tuple[tuple[Parameter, ...], Hints], Signature] = {}
    known_by = "told" if any(p.name in words for p in kernel.parameters) else "launch"
    for launch in kernel.launches:
        parameters = _of_launch(kernel, launch, words, seen)
        hints = replace(AS_DECORATED, **dict(launch.hints))
        signature = Signature(kernel, parameters, known_by, launch, kernel.name, hints)
        found.setdefault((parameters, hints), signature)
    return list(found.values())


def _labelled(kernel: FoundKernel, found: Sequence[Signature]) -> list[Signature]:
    """With labels that say in what the launches differ, where there are several."""
    if len(found) == 1:
        return list(found)
    told = [_words(one) for one in found]
    common = set.intersection(*map(set, told))
    places = [f"line {one.launch.line}" if one.launch and one.launch.line else "" for one in found]
    differs = [[word for word in words if word not in common] for words in told]
    for count in range(max(map(len, differs)) + 1):
        labels = [
            ": ".join(filter(None, [place, ", ".join(words[:count])]))
            for place, words in zip(places, differs, strict=True)
        ]
        if count and len(set(labels)) == len(labels):
            break
    else:
        labels = [f"launch {number}, {label}" for number, label in enumerate(labels, 1)]
    return [replace(one, label=f"{kernel.name} ({label})") for one, label in zip(found, labels, strict=True)]


def _words(one: Signature) -> list[str]:
    """A launch, argument by argument."""
    assert one.launch is not None
    words = [
        f"{parameter.name} {_word(said)}"
        for parameter, said in zip(one.kernel.parameters, one.launch.arguments, strict=True)
    ]
    return [*words, *(f"{name}={value}" for name, value in one.launch.hints)]


def _word(said: Mapping[str, Any]) -> str:
    match said["kind"]:
        case "array":
            return f"{said['dtype']}[{', '.join(map(str, said['shape']))}]"
        case "scalar":
            return f"= {said['value']}"
        case "list" | "tuple":
            return f"({', '.join(map(_word, said['items']))})"
    return str(said.get("text", said["kind"]))


class _Untold(ValueError):
    """What an argument is of which no parameter can be made."""


def _of_launch(
    kernel: FoundKernel, launch: FoundLaunch, words: Mapping[str, Any], seen: Seen
) -> tuple[Parameter, ...]:
    """The arguments of a launch as parameters, but for those that words describe."""
    where = f"{Path(launch.file).name if launch.file else seen.path.name}, line {launch.line}"
    if len(launch.arguments) != len(kernel.parameters):
        raise TriageError(
            f"{where}: {kernel.name} is launched with {len(launch.arguments)} arguments, but takes "
            f"{len(kernel.parameters)}"
        )
    found: list[Parameter] = []
    untold: dict[str, str] = {}
    for parameter, said in zip(kernel.parameters, launch.arguments, strict=True):
        try:
            given = words.get(parameter.name)
            found.append(given or _argument(parameter.name, said, constant=parameter.said == "constant"))
        except _Untold as reason:
            untold[parameter.name] = str(reason)
    if untold:
        reasons = "; ".join(f"argument {name!r} {reason}" for name, reason in untold.items())
        line = "; ".join(_examples(kernel, seen, list(untold)).values())
        raise TriageError(
            f"{where}: {kernel.name} is launched, but {reasons}. Say what the kernel takes there, with the "
            f'element types, ranks and values of the report:\n  --parameters "{line}"'
        )
    return tuple(found)


def _argument(name: str, said: Mapping[str, Any], constant: bool = False) -> Any:
    match said["kind"]:
        case "scalar" if constant:
            return Constant(name, said["value"])
        case "scalar":
            return ScalarParameter(name, said["dtype"])
        case "array":
            dtype = DTYPE_ALIASES.get(said["dtype"], said["dtype"])
            if dtype not in ITEMSIZE:
                raise _Untold(f"has dtype {said['dtype']!r}, which cuda.tile has not")
            placement = Placement(name, dtype, tuple(said["shape"]), tuple(said["strides"]), said["offset"])
            return assume(placement)
        case "list" if said["items"] and all(item["kind"] == "array" for item in said["items"]):
            return ArrayList(name, _argument(name, said["items"][0]))
        case "tuple":
            items = tuple(_argument(f"{name}.{i}", item) for i, item in enumerate(said["items"]))
            return TupleParameter(name, items)
    raise _Untold(f"is {said.get('text', said['kind'])}, of which no shape and dtype is known")


def _told(kernel: FoundKernel, words: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """KeyError names the parameters that nothing is known of."""
    absent = [p.name for p in kernel.parameters if p.name not in words and p.said not in _SCALARS]
    if absent:
        raise KeyError(", ".join(absent))
    found: list[Parameter] = []
    for parameter in kernel.parameters:
        given = words.get(parameter.name)
        if given is None:
            given = ScalarParameter(parameter.name, _SCALARS[parameter.said])
        found.append(given)
    return tuple(found)


def _examples(kernel: FoundKernel, seen: Seen, names: Sequence[str]) -> dict[str, str]:
    """What to write of these parameters, by name."""
    module = seen.modules.get(kernel.module or "")
    used = usages(module.text, kernel.function, kernel.line) if module is not None else {}
    return {
        parameter.name: f"{parameter.name} = {example(parameter, used.get(parameter.name))}"
        for parameter in kernel.parameters
        if parameter.name in names
    }


def _ask(kernels: Sequence[FoundKernel], missing: Sequence[str], seen: Seen) -> str:
    """What to write where parameters are not known: a line that can be used as it stands."""
    wanted: dict[str, str] = {}
    for kernel in kernels:
        names = [parameter.name for parameter in kernel.parameters if parameter.said not in _SCALARS]
        wanted = _examples(kernel, seen, names) | wanted
    line = "; ".join(wanted.values())
    told = f"{seen.cut_short}\n" if seen.cut_short else ""
    return (
        f"nothing tells the parameters of {'; '.join(missing)}. {told}Put a line such as this into "
        f"{seen.path.name}, or pass it with --parameters, with the element types, ranks and values of the "
        f"report:\n  # harness: {line}"
    )
