"""What a cubin tells without a GPU: resources, occupancy, TMA, spills and the register pool's books."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model import Inspection, PoolAnswer, PoolBooks, PoolSite
from .code_graph import CodeGraph
from .cubin import Cubin, CubinError, read_cubin
from .lines import line_at
from .occupancy import occupancy
from .register_pool import books_without_requests, pool_books
from .sass import Disassembler, DisassemblyError, Undecodable
from .warp_flow import warp_routes
from .words import PoolWord, WordCensus, census

__all__ = ["CubinError", "Disassembler", "DisassemblyError", "inspect_cubin"]

_BOOKS_VERSION = 1
"""Part of the key under which books are remembered; to be raised when the analysis answers differently."""


def inspect_cubin(
    cubin: bytes,
    arch: str,
    disassembler: Disassembler,
    symbol: str | None = None,
    source_names: Mapping[str, str] | None = None,
) -> Inspection:
    """Read one kernel of a cubin for `arch`, e.g. "sm_90". `symbol` picks one where there are several.

    `source_names` maps the file names that the compiler was told to those that reports shall show.
    Takes some milliseconds, and a run of nvdisasm where the kernel asks the register pool for more. Raises
    `CubinError` and `DisassemblyError`.
    """
    kernel = read_cubin(cubin, symbol)
    if f"sm_{kernel.arch}" != arch:
        raise CubinError(f"this cubin is for sm_{kernel.arch}, not for {arch}")
    words = census(kernel.code, kernel.arch)
    room = occupancy(kernel.arch, kernel.registers, kernel.threads, kernel.shared_bytes, kernel.barriers)
    return Inspection(
        symbol=kernel.symbol,
        arch=arch,
        registers=kernel.registers,
        threads=kernel.threads,
        stack_bytes=kernel.stack_bytes,
        shared_bytes=kernel.shared_bytes,
        code_bytes=len(kernel.code),
        code_sha256=kernel.code_sha256,
        ctas_per_sm=room.ctas,
        limited_by=room.limited_by,
        tma=words.tma,
        spill_instructions=words.local_accesses,
        books=_books(kernel, words, disassembler, source_names or {}),
        ptx=kernel.ptx,
    )


def _books(
    kernel: Cubin, words: WordCensus, disassembler: Disassembler, names: Mapping[str, str]
) -> PoolBooks | None:
    if not words.pool:
        return None
    if all(word.kind == "dealloc" and word.registers is not None for word in words.pool):
        return books_without_requests(kernel.registers, kernel.threads, [_site(word) for word in words.pool])
    key = f"{_BOOKS_VERSION} {kernel.code_sha256} sm_{kernel.arch} {kernel.registers} × {kernel.block}"
    books = _remembered(disassembler, key)
    if books is None:
        try:
            books = _closed(kernel, words, disassembler)
        except Undecodable as refusal:
            return _unread(kernel, words, str(refusal))
        disassembler.cache.remember("pool_books", key, books.to_json())
    table = kernel.source_lines()
    return replace(
        books, sites=tuple(replace(site, source=line_at(table, site.pc, names)) for site in books.sites)
    )


def _remembered(disassembler: Disassembler, key: str) -> PoolBooks | None:
    """Books from the cache; None where there are none, or none that this version can read."""
    known = disassembler.cache.recall("pool_books", key)
    try:
        return PoolBooks.from_json(known) if known is not None else None
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _closed(kernel: Cubin, words: WordCensus, disassembler: Disassembler) -> PoolBooks:
    listing = disassembler.listing(kernel)
    graph = CodeGraph(listing, [word.pc for word in words.pool])
    sites = [replace(_site(word), text=str(listing[word.pc // 16])) for word in words.pool]
    return pool_books(kernel.registers, kernel.threads, sites, warp_routes(graph, kernel.block))


def _unread(kernel: Cubin, words: WordCensus, why: str) -> PoolBooks:
    """No books where no nvdisasm reads the code: the compiler's answer stands, the proof does not."""
    return PoolBooks(
        answer=PoolAnswer.UNKNOWN,
        launch_registers=kernel.registers,
        threads=kernel.threads,
        sites=tuple(_site(word) for word in words.pool),
        groups=(),
        needed=0,
        freed_at_most=0,
        freed_at_least=0,
        proof=(why,),
    )


def _site(word: PoolWord) -> PoolSite:
    return PoolSite(
        word.kind, word.pc, word.registers or 0, f"USETMAXREG.DEALLOC.CTAPOOL {word.registers:#x}"
    )
