"""What the ELF of a cubin says about its kernel: resources, code, lines and embedded PTX.

Layout: each kernel `f` has its code in `.text.f`, attributes in `.nv.info.f` and, where it has static shared
memory, a size in `.nv.shared.f`; counts that need a symbol (registers, stack) are in `.nv.info`.
Attributes are records of a format byte, an attribute byte and a 16-bit value or payload length;
`cuobjdump -elf` prints their names (EIATTR_*). All numbers agree with `cuobjdump --dump-resource-usage`.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

from .lines import SourceLine, source_lines

_MAX_THREADS = 0x05
_REQNTID = 0x10
_MIN_STACK_SIZE = 0x12
_REGCOUNT = 0x2F
_CTA_PER_CLUSTER = 0x3D
_NUM_BARRIERS = 0x4C
_WITH_PAYLOAD = 0x04

_ENTRY = 0x10
"""The bit of a symbol's st_other that marks a kernel (STO_CUDA_ENTRY)."""

_DIRECTIVES = (b".version", b".target", b".reqntid", b".maxntid", b".minnctapersm", b".maxnreg")


class CubinError(Exception):
    """Not a cubin this reader understands; the text says what is wrong in one sentence."""


@dataclass(frozen=True)
class Cubin:
    """One kernel of a cubin. Registers are per thread, stack bytes per thread, shared bytes per CTA.

    `block` is the shape of the CTA that the kernel insists on (REQNTID), or else the largest it allows.
    `cluster` is the CTAs per cluster it insists on, or None. `barriers` counts named barriers.
    """

    symbol: str
    arch: int
    code: bytes
    registers: int
    block: tuple[int, int, int]
    stack_bytes: int
    shared_bytes: int
    barriers: int
    cluster: tuple[int, int, int] | None
    ptx: tuple[str, ...]
    debug_line: bytes

    @property
    def threads(self) -> int:
        return prod(self.block)

    @cached_property
    def code_sha256(self) -> str:
        return hashlib.sha256(self.code).hexdigest()

    def source_lines(self) -> tuple[SourceLine, ...]:
        """The line table, by ascending PC; empty where there is none or it cannot be read."""
        try:
            return source_lines(self.debug_line)
        except (DWARFError, ELFError, ValueError, KeyError, IndexError, AttributeError, struct.error):
            return ()


def read_cubin(data: bytes, symbol: str | None = None) -> Cubin:
    """The cubin's one kernel, or the one named `symbol`. Raises `CubinError`."""
    if data[:4] != b"\x7fELF":
        raise CubinError(f"not a cubin: {_what(data)}, where an ELF file starts with 7f 45 4c 46")
    try:
        return _read(ELFFile(io.BytesIO(data)), symbol)
    except CubinError:
        raise
    except Exception as error:  # a parser on bytes of any kind fails in any way
        raise CubinError(
            f"damaged cubin of {len(data):,} bytes: {str(error) or type(error).__name__}"
        ) from error


def _read(elf: ELFFile, wanted: str | None) -> Cubin:
    if elf["e_machine"] != "EM_CUDA":
        raise CubinError(f"not a cubin: an ELF file for {elf['e_machine']}, not for CUDA")
    sections = {section.name: section for section in elf.iter_sections()}
    kernels = _kernels(sections.get(".symtab"))
    symbol = _chosen(kernels, wanted)
    index, section_index = kernels[symbol]
    text = elf.get_section(section_index)
    info = dict(_attributes(_bytes(sections.get(f".nv.info.{symbol}"))))
    counts = _counts(_bytes(sections.get(".nv.info")), index)
    code = text.data()
    if len(code) != text["sh_size"] or len(code) % 16:
        raise CubinError(
            f"damaged cubin: {text.name} holds {len(code):,} bytes where its header says "
            f"{text['sh_size']:,}, and instructions take 16 each"
        )
    shared = sections.get(f".nv.shared.{symbol}")
    block = _dimensions(info.get(_REQNTID)) or _dimensions(info.get(_MAX_THREADS)) or (0, 0, 0)
    return Cubin(
        symbol=symbol,
        arch=_arch(elf),
        code=code,
        registers=counts.get(_REGCOUNT, text["sh_info"] >> 24),
        block=block,
        stack_bytes=counts.get(_MIN_STACK_SIZE, 0),
        shared_bytes=0 if shared is None else shared["sh_size"],
        barriers=_byte(info.get(_NUM_BARRIERS)),
        cluster=_dimensions(info.get(_CTA_PER_CLUSTER)),
        ptx=_ptx(_bytes(sections.get(".nv_debug_ptx_txt"))),
        debug_line=_bytes(sections.get(".debug_line")),
    )


def _arch(elf: ELFFile) -> int:
    """90 for sm_90. ABI version 8 moved the number up by a byte."""
    shift = 8 if elf["e_ident"]["EI_ABIVERSION"] >= 8 else 0
    return int(elf["e_flags"] >> shift & 0xFF)


def _kernels(table: Section | None) -> dict[str, tuple[int, int]]:
    """Name to (symbol index, section index) of every entry point."""
    if not isinstance(table, SymbolTableSection):
        raise CubinError("damaged cubin: it has no symbol table")
    others = table.data()[5 :: table["sh_entsize"]]  # st_other; pyelftools hides the bit that matters
    return {
        entry.name: (index, entry["st_shndx"])
        for index, entry in enumerate(table.iter_symbols())
        if entry["st_info"]["type"] == "STT_FUNC" and others[index] & _ENTRY
    }


def _chosen(kernels: dict[str, tuple[int, int]], wanted: str | None) -> str:
    names = ", ".join(sorted(kernels))
    if wanted is not None:
        if wanted not in kernels:
            raise CubinError(f"no kernel named {wanted} in this cubin; it has {names or 'none'}")
        return wanted
    if not kernels:
        raise CubinError("no kernel in this cubin")
    if len(kernels) > 1:
        raise CubinError(f"{len(kernels)} kernels in this cubin, name one of them: {names}")
    return next(iter(kernels))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _WITH_PAYLOAD:
            yield attribute, struct.pack("<H", value)
            continue
        if at + value > len(data):
            raise CubinError("damaged cubin: an attribute of .nv.info runs past its end")
        yield attribute, data[at : at + value]
        at += value


def _counts(data: bytes, symbol_index: int) -> dict[int, int]:
    """Attributes of `.nv.info` that pair a symbol with a number, for one symbol."""
    found = {}
    for attribute, payload in _attributes(data):
        if len(payload) == 8:
            index, number = struct.unpack("<II", payload)
            if index == symbol_index:
                found[attribute] = number
    return found


def _dimensions(payload: bytes | None) -> tuple[int, int, int] | None:
    return struct.unpack("<III", payload) if payload is not None and len(payload) == 12 else None


def _byte(payload: bytes | None) -> int:
    return payload[0] if payload else 0


def _bytes(section: Section | None) -> bytes:
    return b"" if section is None or section["sh_type"] == "SHT_NOBITS" else section.data()


def _ptx(text: bytes) -> tuple[str, ...]:
    """Directives and register-pool instructions of the PTX that --lineinfo embeds, NUL-separated lines.

    A line that comes several times is said once, with its count.
    """
    found: dict[int, str] = {}
    for token in (*_DIRECTIVES, b"setmaxnreg."):
        at = text.find(token)
        while at >= 0:
            start, end = text.rfind(b"\0", 0, at) + 1, text.find(b"\0", at)
            line = b" ".join(text[start : end if end >= 0 else None].split())
            if token == b"setmaxnreg." or line.startswith(token):
                found[start] = line.decode("utf-8", "replace")
            at = text.find(token, at + 1)
    counted = Counter(found[start] for start in sorted(found))
    return tuple(line if count == 1 else f"{line} × {count}" for line, count in counted.items())


def _what(data: bytes) -> str:
    return f"{len(data):,} bytes that start with {data[:4].hex(' ')}" if data else "an empty file"
