"""What can be read off the instruction words alone, in milliseconds and without a disassembler.

An instruction of sm_80 to sm_121 is 128 bits, two little-endian words; the low 12 bits of the
first are the opcode with its operand form. The encodings below are checked against nvdisasm 13.5 for sm_90 to
sm_121: USETMAXREG in full, TMA for ranks 1 to 5, local memory on recorded kernels.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass

BYTES_PER_INSTRUCTION = 16

_OPCODE = 0xFFF
_USETMAXREG_IMMEDIATE = 0x9C8
_USETMAXREG_REGISTER = 0x3C8
_LOCAL_MEMORY = frozenset({0x387, 0x983})
"""STL and LDL."""
_TMA = {
    0x3B4: "UTMALDG",
    0x5B4: "UTMALDG",
    0x3B5: "UTMASTG",
    0x3B6: "UTMAREDG",
    0x3BA: "UBLKCP",
}
_RANKED = ("UTMALDG", "UTMASTG", "UTMAREDG")


@dataclass(frozen=True)
class PoolWord:
    """A USETMAXREG: "alloc", "dealloc" or "other", at byte `pc`; None where a register holds the count."""

    kind: str
    pc: int
    registers: int | None


@dataclass(frozen=True)
class WordCensus:
    """Counts over a whole code section: TMA by opcode and rank, local-memory accesses, pool instructions.

    Local memory holds spilled registers, but also arrays indexed at run time.
    """

    tma: dict[str, int]
    local_accesses: int
    pool: tuple[PoolWord, ...]


def census(code: bytes, arch: int) -> WordCensus:
    """Go over the code of one kernel once. `arch` is 90 for sm_90; older ones have neither TMA nor a pool."""
    words = struct.unpack(f"<{len(code) // 8}Q", code)
    opcodes = [word & _OPCODE for word in words[::2]]
    counts = Counter(opcodes)
    local = sum(counts[opcode] for opcode in _LOCAL_MEMORY)
    if arch < 90:
        return WordCensus({}, local, ())
    tma: Counter[str] = Counter()
    pool = []
    wanted = {opcode for opcode in counts if opcode in _TMA or opcode in _POOL}
    for index, opcode in enumerate(opcodes) if wanted else ():
        if opcode not in wanted:
            continue
        first, second = words[2 * index], words[2 * index + 1]
        if opcode in _POOL:
            pool.append(_pool_word(index * BYTES_PER_INSTRUCTION, first, second))
        else:
            name = _TMA[opcode]
            tma[f"{name}.{(second >> 15 & 7) + 1}D" if name in _RANKED else name] += 1
    return WordCensus(dict(sorted(tma.items())), local, tuple(pool))


_POOL = frozenset({_USETMAXREG_IMMEDIATE, _USETMAXREG_REGISTER})
_CTA_POOL_KINDS = {5: "dealloc", 6: "alloc"}
"""Three bits from bit 8 of the second word: DEALLOC.CTAPOOL and TRY_ALLOC.CTAPOOL."""


def _pool_word(pc: int, first: int, second: int) -> PoolWord:
    immediate = first & _OPCODE == _USETMAXREG_IMMEDIATE
    kind = _CTA_POOL_KINDS.get(second >> 8 & 7, "other")
    return PoolWord(kind, pc, first >> 32 if immediate else None)
