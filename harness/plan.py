"""From a matrix to its cells: in which order, which part of them, and which one a reader means.

Order: case by case, and for each case toolchain by toolchain, architecture by architecture. All
cells of a case share their text and, per frontend, their bytecode, so each trace and each compile is
wanted again while it is fresh, and a run that is cut short has answered some cases for every
toolchain, which can be compared, rather than all cases for the first toolchain only. Within a
[[case]] shapes and data vary fastest, so that cases of one specialisation are neighbours too.

A cell that runs on a device follows at once on the cell that compiles it, and is always in the same
shard: it needs that cubin.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from harness.assumptions import assumptions, shown, telling
from harness.matrix.value import Matrix
from harness.model import Cell

Shard = tuple[int, int]
"""Part i of n, i from 1."""


def plan(matrix: Matrix, shard: Shard | None = None) -> Iterator[Cell]:
    """The cells of a matrix, or of one shard of it, lazily and always in the same order.

    Generated cases must have been drawn: ValueError if the matrix still has generators.
    """
    if matrix.generators:
        raise ValueError("the matrix has cases still to be drawn; put them among its cases first")
    for case in matrix.cases:
        for toolchain in matrix.toolchains:
            for arch in matrix.archs:
                if not matrix.asks(case, toolchain, arch):
                    continue
                compiled = Cell(toolchain, arch, case)
                if shard is not None and not in_shard(compiled, shard):
                    continue
                yield compiled
                yield from (
                    replace(compiled, device=device) for device in matrix.devices if device.arch == arch
                )


def count(matrix: Matrix) -> int:
    """How many cells `plan` gives, without making them."""
    on = Counter(device.arch for device in matrix.devices)
    per_case = len(matrix.toolchains) * sum(1 + on[arch] for arch in matrix.archs)
    limited = [case for case in matrix.cases if case.digest in matrix.only]
    return (len(matrix.cases) - len(limited)) * per_case + sum(
        1 + on[arch]
        for case in limited
        for toolchain in matrix.toolchains
        for arch in matrix.archs
        if matrix.asks(case, toolchain, arch)
    )


def in_shard(cell: Cell, shard: Shard) -> bool:
    """Whether a cell is in part i of n: by a hash that is the same on every machine, so that shards
    are disjoint and together are everything. ValueError unless 1 <= i <= n."""
    index, parts = shard
    if not 1 <= index <= parts:
        raise ValueError(f"there is no shard {index} of {parts}; write i/n with 1 <= i <= n, such as 2/4")
    compiled = cell if cell.device is None else replace(cell, device=None)
    return int(compiled.id, 16) % parts == index - 1


class NoSuchCell(LookupError):
    """No cell, or more than one, is meant; str() is a sentence with candidates."""


_CANDIDATES = 8
_SHORTEST_ID = 4


def match(cells: Iterable[Cell], pattern: str) -> Cell:
    """The one cell that a reader means: by the start of its id, at least four digits, or by words.

    Words, in any order, are versions ("13.3" for any 13.3.x), architecture, kernel or its last part,
    dtype, shape ("16384x512"), device or toolchain name, or "key=value" for any setting
    ("occupancy=default", "allow_tma=false"), property ("cuda_tile=1.5.0", "device=none") or assumption of
    a parameter ("x.rank=2"). Where
    a compile and its runs on devices all fit, the compile is meant. Raises NoSuchCell.
    """
    every = list(cells)
    words = pattern.lower().split()
    if not words:
        raise NoSuchCell("no cell was named; give the start of its id, or words such as sm_90 occupancy=16")
    if len(words) == 1 and len(words[0]) >= _SHORTEST_ID:
        named = [cell for cell in every if cell.id.startswith(words[0])]
        if named:
            return _only(named, pattern)
    told = [(cell, _properties(cell)) for cell in every]
    for word in words:
        if not any(_fits(word, properties) for _, properties in told):
            raise NoSuchCell(_unknown(word, told))
    fitting = [cell for cell, properties in told if all(_fits(word, properties) for word in words)]
    if not fitting:
        best = sorted(told, key=lambda item: -sum(_fits(word, item[1]) for word in words))
        near = [cell for cell, _ in best[:3]]
        raise NoSuchCell(
            f'each word of "{pattern}" fits a cell, but none fits all; nearest are:{_list(near)}'
        )
    exact = [cell for cell in fitting if set(describe(cell).lower().split()) == set(words)]
    return _only(exact or [cell for cell in fitting if cell.device is None] or fitting, pattern)


def describe(cell: Cell) -> str:
    """A cell in words that `match` understands; what is as it is without being asked for is left out."""
    case = cell.case
    told = {key: value for key, value in case.settings.items() if value is not None or key == "occupancy"}
    told |= {"layout": case.layout, "values": case.values, "seed": case.seed}
    settings = [f"{key}={_word(value)}" for key, value in told.items() if (key, value) not in _UNSAID]
    where = [f"device={cell.device.name}"] if cell.device else []
    shape = [_shape(cell)] if case.shape else []
    return " ".join([cell.toolchain.name, cell.arch, case.kernel, *shape, case.dtype, *settings, *where])


_UNSAID = (("opt_level", 3), ("layout", "contiguous"), ("values", "normal"), ("seed", 0))


def _only(cells: list[Cell], pattern: str) -> Cell:
    if len(cells) == 1:
        return cells[0]
    raise NoSuchCell(f'"{pattern}" fits {len(cells)} cells; add words, or give the id of one:' + _list(cells))


def _list(cells: list[Cell]) -> str:
    apart = telling((cell.case for cell in cells), lambda case: (case.kernel, *case.settings.items()))
    named = [(cell.id, " ".join([describe(cell), *shown(cell.case, apart)])) for cell in cells[:_CANDIDATES]]
    lines = [f"\n  {name}  {words}" for name, words in named]
    more = len(cells) - len(lines)
    return "".join(lines) + (f"\n  and {more} more" if more > 0 else "")


def _properties(cell: Cell) -> dict[str, str]:
    case, chain = cell.case, cell.toolchain
    named = {
        "toolchain": chain.name,
        "cuda_tile": chain.cuda_tile,
        "cuda_toolkit": chain.cuda_toolkit,
        "tileiras": chain.tileiras,
        "nvvm": chain.nvvm,
        "ptxas": chain.ptxas,
        "arch": cell.arch,
        "kernel": case.kernel,
        "shape": _shape(cell),
        "dtype": case.dtype,
        "layout": case.layout,
        "values": case.values,
        "seed": case.seed,
        "device": cell.device.name if cell.device else "none",
    }
    return {
        key.lower(): _word(value).lower()
        for key, value in (named | assumptions(case) | case.settings).items()
    }


_BARE = ("toolchain", "cuda_tile", "cuda_toolkit", "arch", "kernel", "shape", "dtype", "layout", "device")
"""Properties whose value may stand without its key."""


def _fits(word: str, properties: dict[str, str]) -> bool:
    key, equals, value = word.partition("=")
    if equals:
        return key in properties and _same(key, value, properties[key])
    return any(_same(key, word, properties[key]) for key in _BARE)


def _same(key: str, asked: str, actual: str) -> bool:
    if asked == actual:
        return True
    if key in ("cuda_tile", "cuda_toolkit", "tileiras", "nvvm", "ptxas"):
        return bool(asked) and actual.startswith(asked + ".")
    if key == "kernel":
        return asked == actual.rpartition(":" if ":" in actual else ".")[2]
    return False


def _unknown(word: str, told: list[tuple[Cell, dict[str, str]]]) -> str:
    key = word.partition("=")[0]
    keyed = "=" in word
    vocabulary = {
        f"{name}={value}" if keyed else value
        for _, properties in told
        for name, value in properties.items()
        if keyed or name in _BARE
    }
    near = difflib.get_close_matches(word[:100], sorted(vocabulary), n=3, cutoff=0.55)
    if keyed and (same_key := sorted(known for known in vocabulary if known.partition("=")[0] == key)):
        near = same_key[:_CANDIDATES]
    remedy = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "words are versions, sm_90, occupancy=16 and the like"
    )
    return f'no cell fits "{word}"; {remedy}'


def _shape(cell: Cell) -> str:
    return "x".join(map(str, cell.case.shape))


def _word(value: object) -> str:
    match value:
        case None:
            return "default"
        case bool():
            return "true" if value else "false"
    return str(value)
