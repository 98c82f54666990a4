"""The parts read cubins as the lab does; recorded ones stand in tests/inspect."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from harness.inspect.cubin import read_cubin
from harness.inspect.words import census
from harness.repro import parts

CUBINS = sorted((Path(__file__).parents[1] / "inspect" / "cubins").glob("*.cubin.xz"))
ONE_KERNEL = [path for path in CUBINS if "two-kernels" not in path.name]


@pytest.mark.parametrize("path", ONE_KERNEL, ids=lambda path: path.name)
def test_a_cubin_reads_as_the_lab_reads_it(path: Path) -> None:
    cubin = lzma.decompress(path.read_bytes())
    kernel = read_cubin(cubin)
    words = census(kernel.code, kernel.arch)
    assert parts.resources(cubin) == (kernel.registers, kernel.threads)
    assert parts.local_accesses(cubin) == words.local_accesses
    if kernel.arch >= 90:
        grow = [word.registers for word in words.pool if word.kind == "alloc"]
        shrink = [word.registers for word in words.pool if word.kind == "dealloc"]
        assert parts.pool_requests(cubin) == (grow, shrink)
        loads = {name: n for name, n in words.tma.items() if name.startswith("UTMALDG") and "1D" not in name}
        assert parts.tensor_loads(cubin) == sum(loads.values())


def test_the_deadlock_is_among_them() -> None:
    assert len(ONE_KERNEL) >= 8
    (path,) = (path for path in CUBINS if path.name.startswith("deadlock-13.3.1-sm_90"))
    assert parts.pool_requests(lzma.decompress(path.read_bytes())) == ([32, 32], [])


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", "no output"),
        ("one\ntwo\n", "two"),
        ("noise\nFAILED KeyError: 'a'\nand more\n", "KeyError: 'a' and more"),
    ],
)
def test_the_last_words_are_the_exception(output: str, words: str) -> None:
    assert parts.last_words(output) == words
