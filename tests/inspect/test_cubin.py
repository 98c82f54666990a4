"""Numbers as `cuobjdump --dump-resource-usage` (13.5) gave them; damage is one sentence."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_cubins import recorded

from harness.inspect.cubin import CubinError, read_cubin

#        name                          arch reg thr stack shared
CUOBJDUMP = [
    ("deadlock-13.3.1-sm_90", 90, 24, 256, 376, 6224),
    ("deadlock-13.2.2-sm_100", 100, 24, 256, 408, 6236),
    ("deadlock-13.3.1-sm_120", 120, 24, 256, 408, 6236),
    ("occupancy2-13.3.1-sm_90", 90, 128, 256, 0, 34888),
    ("occupancy4-tma-13.4.3-sm_90", 90, 64, 256, 0, 51320),
    ("occupancy4-13.4.3-sm_100", 100, 64, 256, 0, 2132),
    ("default-13.4.3-sm_90", 90, 168, 384, 368, 2248),
    ("spilled-index-13.3.1-sm_90", 90, 168, 384, 8, 202040),
    ("no-pool-13.5.0-sm_120", 120, 32, 256, 104, 2132),
    ("only-dealloc-13.3.1-sm_100", 100, 255, 256, 0, 34900),
    ("occupancy4-tma-13.4.3-sm_103", 103, 64, 256, 0, 51332),
    ("occupancy4-tma-13.4.3-sm_107", 107, 64, 256, 0, 67732),
    ("occupancy4-tma-13.4.3-sm_121", 121, 64, 256, 0, 18532),
    ("occupancy4-13.4.3-sm_80", 80, 128, 128, 0, 2048),
]


@pytest.mark.parametrize(("name", "arch", "registers", "threads", "stack", "shared"), CUOBJDUMP)
def test_resources_agree_with_cuobjdump(
    name: str, arch: int, registers: int, threads: int, stack: int, shared: int
) -> None:
    cubin = read_cubin(recorded(name))
    assert (cubin.arch, cubin.registers, cubin.threads) == (arch, registers, threads)
    assert (cubin.stack_bytes, cubin.shared_bytes) == (stack, shared)
    assert cubin.symbol.startswith("static_persistent")


def test_several_kernels_are_told_apart_by_name() -> None:
    data = recorded("two-kernels-sm_90")
    first, second = read_cubin(data, "first"), read_cubin(data, "second")
    assert (first.threads, first.shared_bytes, first.registers) == (128, 0, 8)
    assert (second.threads, second.shared_bytes, second.registers) == (96, 1064, 8)
    with pytest.raises(CubinError, match="2 kernels in this cubin, name one of them: first, second"):
        read_cubin(data)
    with pytest.raises(CubinError, match="no kernel named third in this cubin; it has first, second"):
        read_cubin(data, "third")


def test_ptx_tells_that_ptxas_only_translated() -> None:
    ptx = read_cubin(recorded("deadlock-13.3.1-sm_90")).ptx
    assert ".maxnreg 16" in ptx
    assert "setmaxnreg.inc.sync.aligned.u32 32; × 2" in ptx
    assert not any("setmaxnreg.dec" in line for line in ptx)
    assert ".target sm_90a" in ptx and ".reqntid 256" in ptx


def test_ptx_of_a_healthy_kernel_has_both_directions() -> None:
    ptx = read_cubin(recorded("occupancy4-tma-13.4.3-sm_90")).ptx
    assert "setmaxnreg.inc.sync.aligned.u32 96;" in ptx
    assert "setmaxnreg.dec.sync.aligned.u32 32; × 2" in ptx


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a cubin: an empty file, where an ELF file starts with 7f 45 4c 46"),
        (b"MZ\x90\x00rest", "not a cubin: 8 bytes that start with 4d 5a 90 00"),
        (b"\x7fELF", "damaged cubin of 4 bytes"),
    ],
)
def test_what_is_no_cubin(data: bytes, words: str) -> None:
    with pytest.raises(CubinError) as caught:
        read_cubin(data)
    assert words in str(caught.value)


def test_an_elf_file_of_another_machine() -> None:
    data = bytearray(recorded("two-kernels-sm_90"))
    data[18:20] = (62).to_bytes(2, "little")
    with pytest.raises(CubinError, match="an ELF file for EM_X86_64, not for CUDA"):
        read_cubin(bytes(data), "first")


def test_a_truncated_cubin_is_one_sentence_or_whole() -> None:
    data = recorded("two-kernels-sm_90")
    for length in range(0, len(data), 37):
        try:
            read_cubin(data[:length], "second")
        except CubinError as error:
            assert "\n" not in str(error)


@given(seed=st.integers(0, 2**32), hits=st.integers(1, 40))
def test_garbled_cubins_never_fail_otherwise(seed: int, hits: int) -> None:
    dice = random.Random(seed)
    data = bytearray(_TWO)
    for _ in range(hits):
        data[dice.randrange(4, len(data))] = dice.randrange(256)
    try:
        cubin = read_cubin(bytes(data), "second")
    except CubinError:
        return
    cubin.source_lines()


_TWO = recorded("two-kernels-sm_90")
