"""Instruction words against the disassembler."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from recorded_cubins import recorded

from harness.inspect import Disassembler
from harness.inspect.cubin import read_cubin
from harness.inspect.words import census

NAMES = ["occupancy4-tma-13.4.3-sm_90", "deadlock-13.3.1-sm_120", "occupancy4-tma-13.4.3-sm_107"]


@pytest.mark.parametrize("name", NAMES)
def test_words_say_what_nvdisasm_says(name: str, disassembler: Disassembler) -> None:
    cubin = read_cubin(recorded(name))
    listing = disassembler.listing(cubin)
    found = census(cubin.code, cubin.arch)
    tma = Counter(
        ".".join(i.opcode.split(".")[:2]) for i in listing if i.opcode.startswith(("UTMALDG", "UTMASTG"))
    )
    assert found.tma == tma
    assert found.local_accesses == sum(i.opcode.split(".")[0] in ("STL", "LDL") for i in listing)
    pool = [i for i in listing if i.opcode.startswith("USETMAXREG")]
    assert [word.pc for word in found.pool] == [i.pc for i in pool]
    for word, instruction in zip(found.pool, pool, strict=True):
        assert ("TRY_ALLOC" in instruction.opcode) == (word.kind == "alloc")
        assert word.registers == int(instruction.operands[-1], 16)


def code(*words: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", *pair) for pair in words)


@pytest.mark.parametrize(
    ("first", "second", "opcode"),
    [  # as ptxas 13.5 encodes them for sm_90 to sm_120
        (0x5B4, 0x0, "UTMALDG.1D"),
        (0x5B4, 0x9000, "UTMALDG.2D"),
        (0x5B4, 0x20000, "UTMALDG.5D"),
        (0x3B4, 0x8804, "UTMALDG.2D"),
        (0x3B5, 0x0, "UTMASTG.1D"),
        (0x3B5, 0x18000, "UTMASTG.4D"),
        (0x3B6, 0x8000, "UTMAREDG.2D"),
        (0x3BA, 0x404, "UBLKCP"),
    ],
)
def test_tma_ranks(first: int, second: int, opcode: str) -> None:
    assert census(code((first, second)), 100).tma == {opcode: 1}


def test_pool_forms() -> None:
    found = census(
        code(
            (0x20_0000_79C8, 0xE240008000600),
            (0x18_0000_79C8, 0xE0000080E0500),
            (0x20_0000_79C8, 0xE240008000200),
            (0x73C8, 0xE240008000600),
        ),
        90,
    )
    assert [(w.kind, w.pc, w.registers) for w in found.pool] == [
        ("alloc", 0, 32),
        ("dealloc", 16, 24),
        ("other", 32, 32),
        ("alloc", 48, None),
    ]


def test_older_architectures_have_neither_tma_nor_pool() -> None:
    found = census(code((0x79C8, 0x600), (0x5B4, 0), (0x387, 0)), 89)
    assert (found.tma, found.pool, found.local_accesses) == ({}, (), 1)
