"""Parameters of a reader's kernel as the lab's: from a recorded launch, from a comment, from an option.

    # harness: a = array(float32, 3); out = array(float16, 2, strides=dynamic); n = scalar(int32)

An array is contiguous, base and rows aligned to 16 bytes, unless said; `shape=(4096, 512)` makes it what
a JIT launch would assume of that array. `strides=dynamic` assumes nothing of its strides, `divisible=16`
that 16 divides its extents, `base=1` nothing of its address. `T = const(32)` is baked in.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.kernels.arrays import ITEMSIZE, Placement, aligned, assume, contiguous
from harness.matrix.words import DTYPE_ALIASES
from harness.model import Array, ArrayList, Constant, Parameter, ScalarParameter, TupleParameter
from harness.triage.look import FoundKernel, FoundLaunch, Seen, TriageError, comments

_SCALARS = {"int": "int32", "float": "float32", "bool": "bool"}
_CALLS = ("array", "scalar", "const")


@dataclass(frozen=True)
class Signature:
    """A kernel's parameters, and how they are known: launch | told."""

    kernel: FoundKernel
    parameters: tuple[Parameter, ...]
    known_by: str
    grid: tuple[int, ...] = ()


def signatures(seen: Seen, told: str = "", names: Sequence[str] = ()) -> list[Signature]:
    """Signatures of the file's kernels, or of those in `names`.

    `told` is the text of an option and counts more than comments, which count more than launches. Of a
    kernel's launches the distinct ones each give a signature. Raises TriageError that says what to write.
    """
    chosen = [kernel for kernel in seen.kernels if not names or kernel.name in names]
    unknown = sorted(set(names) - {kernel.name for kernel in seen.kernels})
    if unknown:
        have = ", ".join(kernel.name for kernel in seen.kernels)
        raise TriageError(f"{seen.path.name} has no kernel {unknown[0]!r}; its kernels are {have}")
    option = parse(told, "--parameters")
    found: list[Signature] = []
    missing: list[str] = []
    for kernel in chosen:
        words = _comments_for(kernel, seen) | option
        known = {p.name for p in kernel.parameters if p.name in words}
        if kernel.launches and not known:
            found += _launched(kernel)
            continue
        try:
            found.append(Signature(kernel, _told(kernel, words), "told"))
        except KeyError as absent:
            missing.append(f"{kernel.name}: {absent.args[0]}")
    if found:
        return found
    raise TriageError(_ask(chosen, missing, seen))


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


def _launched(kernel: FoundKernel) -> list[Signature]:
    found: dict[tuple[Parameter, ...], Signature] = {}
    for launch in kernel.launches:
        parameters = _of_launch(kernel, launch)
        found.setdefault(parameters, Signature(kernel, parameters, "launch", launch.grid))
    return list(found.values())


def _of_launch(kernel: FoundKernel, launch: FoundLaunch) -> tuple[Parameter, ...]:
    if len(launch.arguments) != len(kernel.parameters):
        raise TriageError(
            f"{kernel.name} is launched with {len(launch.arguments)} arguments, but takes "
            f"{len(kernel.parameters)}"
        )
    return tuple(
        _argument(parameter.name, said, constant=parameter.said == "constant")
        for parameter, said in zip(kernel.parameters, launch.arguments, strict=True)
    )


def _argument(name: str, said: Mapping[str, Any], constant: bool = False) -> Any:
    match said["kind"]:
        case "scalar" if constant:
            return Constant(name, said["value"])
        case "scalar":
            return ScalarParameter(name, said["dtype"])
        case "array":
            dtype = DTYPE_ALIASES.get(said["dtype"], said["dtype"])
            if dtype not in ITEMSIZE:
                raise TriageError(f"argument {name!r} has dtype {said['dtype']!r}, which cuda.tile has not")
            placement = Placement(name, dtype, tuple(said["shape"]), tuple(said["strides"]), said["offset"])
            return assume(placement)
        case "list" if said["items"] and all(item["kind"] == "array" for item in said["items"]):
            return ArrayList(name, _argument(name, said["items"][0]))
        case "tuple":
            items = tuple(_argument(f"{name}.{i}", item) for i, item in enumerate(said["items"]))
            return TupleParameter(name, items)
    raise TriageError(
        f"argument {name!r} is {said.get('text', said['kind'])}, of which no shape and dtype is known; "
        f'describe it, for example --parameters "{name} = array(float32, 2)"'
    )


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


def _ask(kernels: Sequence[FoundKernel], missing: Sequence[str], seen: Seen) -> str:
    """What to write where parameters are not known."""
    wanted: dict[str, str] = {}
    for kernel in kernels:
        for parameter in kernel.parameters:
            if parameter.said not in _SCALARS:
                kind = "const(128)" if parameter.said == "constant" else "array(float32, 2)"
                wanted.setdefault(parameter.name, f"{parameter.name} = {kind}")
    line = "; ".join(wanted.values())
    told = f" Running it raised {seen.error}." if seen.error else ""
    return (
        f"nothing tells the parameters of {'; '.join(missing)}.{told} Put a line such as this into "
        f"{seen.path.name}, or pass it with --parameters, with the element types, ranks and values of the "
        f"report:\n  # harness: {line}"
    )


# --- the notation -----------------------------------------------------------------------------


def parse(text: str, where: str) -> dict[str, Parameter]:
    """`a = array(float32, 3); T = const(32)` as parameters. Raises TriageError with the place."""
    found: dict[str, Parameter] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        try:
            statement = ast.parse(part).body[0]
        except (SyntaxError, ValueError, IndexError):
            raise _misread(part, where) from None
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=call)) as value):
                pass
            case _:
                raise _misread(part, where)
        if call not in _CALLS:
            raise TriageError(f"{where}: {call!r} is no kind of parameter; write array, scalar or const")
        try:
            positional = [_value(argument) for argument in value.args]
            named = {word.arg: _value(word.value) for word in value.keywords if word.arg}
            found[name] = _made(name, call, positional, named)
        except (ValueError, TypeError, IndexError) as error:
            raise TriageError(f"{where}: {part!r}: {error}") from None
    return found


def _misread(part: str, where: str) -> TriageError:
    return TriageError(f"{where}: cannot read {part!r}; write it like a = array(float32, 3); T = const(32)")


def _value(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def _made(name: str, call: str, positional: list[Any], named: dict[str, Any]) -> Parameter:
    if call == "const":
        (value,) = positional
        words: dict[Any, Any] = {"true": True, "false": False}
        return Constant(name, words.get(value, value))
    dtype = DTYPE_ALIASES.get(positional[0], positional[0])
    if dtype not in ITEMSIZE:
        raise ValueError(f"unknown dtype {positional[0]}; known are {', '.join(ITEMSIZE)}")
    if call == "scalar":
        return ScalarParameter(name, dtype)
    shape = named.pop("shape", None)
    rank = len(shape) if shape is not None else int(positional[1])
    array = aligned(name, dtype, rank) if shape is None else _with_shape(name, dtype, tuple(shape))
    return _varied(array, named)


def _with_shape(name: str, dtype: str, shape: tuple[int, ...]) -> Array:
    return assume(Placement(name, dtype, shape, contiguous(shape)))


def _varied(array: Array, named: dict[str, Any]) -> Array:
    strides, divisible, base = (named.pop(key, None) for key in ("strides", "divisible", "base"))
    if named:
        raise ValueError(f"unknown word {next(iter(named))!r}; known are shape, strides, divisible, base")
    if strides is not None:
        if strides != "dynamic":
            raise ValueError("write strides=dynamic, or leave it out")
        array = replace(array, stride_constant=(None,) * array.rank, stride_divisible_by=(1,) * array.rank)
    if divisible is not None:
        array = replace(array, shape_divisible_by=(int(divisible),) * array.rank)
    return array if base is None else replace(array, base_divisible_by=int(base))
