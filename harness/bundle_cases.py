"""What a bundle can run besides the cells it lists: any case whose specialisation it has a cubin for.

A cubin serves every shape, layout and content that the compiler could not tell apart. So on a host
without compilers a case can still be varied: shrunk to a smaller one, or asked for by hand.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from typing import Any

from harness.bundle import Bundle
from harness.kernels import get
from harness.kernels.arrays import LAYOUTS
from harness.model import Case, Cell, CellResult
from harness.plan import NoSuchCell, describe, match

_DATA = ("layout", "values", "seed")
"""Properties of a case, besides its shape, that may be changed without a compiler."""


class BundleCases:
    """Finds the compile that a case can stand on."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    @cached_property
    def listed(self) -> tuple[Cell, ...]:
        """The device cells the bundle lists."""
        return tuple(r.cell for r in self._bundle.results if r.cell.device is not None)

    @cached_property
    def _listed_compiles(self) -> dict[str, CellResult]:
        return {r.cell.id: r for r in self._bundle.results if r.cell.device is None}

    @cached_property
    def _compiled(self) -> dict[tuple[str, str, str], CellResult]:
        found: dict[tuple[str, str, str], CellResult] = {}
        for result in self._listed_compiles.values():
            key = _key(result.cell) if result.inspection else None
            if key is not None:
                found.setdefault(key, result)
        return found

    def static(self, cell: Cell) -> CellResult | None:
        """What compiling the cell comes to, as far as the bundle knows."""
        plain = replace(cell, device=None)
        if plain.id in self._listed_compiles:
            return self._listed_compiles[plain.id]
        key = _key(cell)
        known = self._compiled.get(key) if key is not None else None
        return None if known is None else replace(known, cell=plain)

    def only(self, cells: list[Cell]) -> Bundle:
        """The bundle with just these device cells, and the compiles they stand on."""
        results: dict[str, CellResult] = {}
        for cell in cells:
            static = self.static(cell)
            if static is None:
                raise NoSuchCell(
                    f"the bundle has no cubin for {describe(cell)}; compile a bundle that lists it"
                )
            results[static.cell.id] = static
            results[cell.id] = replace(static, cell=cell)
        return replace(self._bundle, results=tuple(results.values()))

    def resolve(self, text: str) -> list[Cell]:
        """The device cells that `--case TEXT` means. Raises NoSuchCell.

        A cell's id or words as `plan.match` takes them; words of which shape, layout, values and seed need
        not be listed, as long as there is a cubin; or a case as JSON, on all toolchains that have one.
        """
        if text.lstrip().startswith("{"):
            return self._of_json(text)
        try:
            return [match(self.listed, text)]
        except NoSuchCell:
            found = self._of_words(text.lower().split())
            if not found:
                raise
            return found

    def _of_words(self, words: list[str]) -> list[Cell]:
        """Cells like listed ones but for their data; only where the words leave one kernel and settings."""
        changes: dict[str, Any] = {}
        rest = []
        for word in words:
            key, equals, value = word.partition("=")
            if equals and key in _DATA:
                changes[key] = int(value) if key == "seed" and value.isdigit() else value
            elif "x" in word and word.replace("x", "").isdigit():
                changes["shape"] = tuple(int(extent) for extent in word.split("x") if extent)
            else:
                rest.append(word)
        if not changes or changes.get("layout", "contiguous") not in LAYOUTS:
            return []
        cells: dict[str, Cell] = {}
        for listed in self.listed:
            cell = replace(listed, case=replace(listed.case, **changes))
            if self.static(cell) is not None:
                cells.setdefault(cell.id, cell)
        try:
            return [match(cells.values(), " ".join(words))] if cells else []
        except NoSuchCell:
            return []

    def _of_json(self, text: str) -> list[Cell]:
        try:
            case = Case.from_json(json.loads(text))
            frames = {(c.toolchain, c.arch, c.device) for c in self.listed}
            cells = [Cell(toolchain, arch, case, device) for toolchain, arch, device in frames]
            found = [cell for cell in cells if self.static(cell) is not None]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise NoSuchCell(f"--case: this JSON is no case ({type(error).__name__}: {error})") from None
        if not found:
            raise NoSuchCell("--case: the bundle has no cubin for this case; compile a bundle that lists it")
        return sorted(found, key=lambda cell: cell.toolchain.name)


def spelled_out(cell: Cell) -> str:
    """A cell in words that mean it and no other: data that goes without saying is said too."""
    words = describe(cell).split()
    said = {word.partition("=")[0] for word in words}
    words += [f"{key}={getattr(cell.case, key)}" for key in _DATA if key not in said]
    return " ".join(words)


def _key(cell: Cell) -> tuple[str, str, str] | None:
    """What decides about the cubin; None for a case of which no specialisation can be made here."""
    try:
        specialization = get(cell.case.kernel).specialise(cell.case)
    except (KeyError, ValueError, OSError):
        return None
    return cell.toolchain.digest, cell.arch, specialization.digest
