"""The whole inspection of recorded cubins."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from recorded_cubins import MemoryMemo, RecordedMemo, recorded

from harness.inspect import CubinError, Disassembler, DisassemblyError, inspect_cubin
from harness.model import Inspection, PoolAnswer, PoolBooks
from harness.process import Supervisor


def books_of(name: str, disassembler: Disassembler) -> PoolBooks:
    books = inspect_cubin(recorded(name), f"sm_{name.rpartition('sm_')[2]}", disassembler).books
    assert books is not None
    return books


@pytest.mark.parametrize(
    "name", ["deadlock-13.3.1-sm_90", "deadlock-13.2.2-sm_100", "deadlock-13.3.1-sm_120"]
)
def test_the_deadlock_is_proved(name: str, disassembler: Disassembler) -> None:
    books = books_of(name, disassembler)
    assert books.answer is PoolAnswer.IMPOSSIBLE
    assert [group.warps for group in books.groups] == [(0, 1, 2, 3), (4,), (5, 6, 7)]
    assert [len(group.must) for group in books.groups] == [0, 1, 1]
    assert (books.needed, books.freed_at_most) == (1024, 0)
    assert books.proof[-1] == "so warps 4-7 wait for ever"


def test_the_sites_of_the_deadlock_are_where_an_h200_stood(disassembler: Disassembler) -> None:
    """A core dump had warp 4 at +0x8d80 and warps 5 to 7 at +0x8fb0."""
    books = books_of("deadlock-13.3.1-sm_90", disassembler)
    assert [group.must for group in books.groups] == [(), (0x8D80,), (0x8FB0,)]
    first = books.sites[0]
    assert first.text == "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20"
    assert first.source == "k.py:4"


@pytest.mark.parametrize(
    ("name", "takers", "needed", "freed"),
    [
        ("occupancy2-13.3.1-sm_90", (0, 1, 2, 3), 4 * 96 * 32, 4 * 96 * 32),
        ("occupancy4-tma-13.4.3-sm_90", (0, 1, 2, 3), 4 * 32 * 32, 4 * 32 * 32),
        ("occupancy4-13.4.3-sm_100", (0, 1, 2, 3), 4 * 32 * 32, 4 * 32 * 32),
        ("occupancy4-tma-13.4.3-sm_107", (0, 1, 2, 3), 4 * 32 * 32, 4 * 32 * 32),
        ("default-13.4.3-sm_90", (0, 1, 2, 3), 8 * 64 * 32, 4 * 136 * 32),
        ("spilled-index-13.3.1-sm_90", (0, 1, 2, 3), 8 * 64 * 32, 4 * 136 * 32),
    ],
)
def test_healthy_kernels_are_balanced(
    name: str, takers: tuple[int, ...], needed: int, freed: int, disassembler: Disassembler
) -> None:
    books = books_of(name, disassembler)
    assert books.answer is PoolAnswer.BALANCED
    assert books.groups[0].warps == takers
    assert (books.needed, books.freed_at_least, books.freed_at_most) == (needed, freed, freed)
    assert sorted(warp for group in books.groups for warp in group.warps) == list(range(books.threads // 32))


def without_disassembler(supervisor: Supervisor, memo: MemoryMemo | None = None) -> Disassembler:
    return Disassembler(supervisor, memo or MemoryMemo(), Path("nowhere"))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("no-pool-13.5.0-sm_120", None),
        ("occupancy4-13.4.3-sm_80", None),
        ("only-dealloc-13.3.1-sm_100", PoolAnswer.BALANCED),
    ],
)
def test_nothing_is_disassembled_where_nothing_asks(
    name: str, answer: PoolAnswer | None, supervisor: Supervisor
) -> None:
    data, arch = recorded(name), f"sm_{name.rpartition('sm_')[2]}"
    blind = without_disassembler(supervisor)
    fastest = min(_cpu_seconds(data, arch, blind) for _ in range(10))
    books = inspect_cubin(data, arch, blind).books
    assert (None if books is None else books.answer) == answer
    assert fastest < 0.015


def _cpu_seconds(data: bytes, arch: str, disassembler: Disassembler) -> float:
    begin = time.thread_time()
    inspect_cubin(data, arch, disassembler)
    return time.thread_time() - begin


def test_a_request_without_a_disassembler_is_an_error(supervisor: Supervisor) -> None:
    with pytest.raises(DisassemblyError):
        inspect_cubin(recorded("deadlock-13.3.1-sm_90"), "sm_90", without_disassembler(supervisor))


def test_equal_code_is_analysed_once_whatever_surrounds_it(supervisor: Supervisor) -> None:
    memo = RecordedMemo()
    data = recorded("occupancy2-13.3.1-sm_90")
    other = data.replace(b"k.py", b"q.py")
    first = inspect_cubin(data, "sm_90", Disassembler(supervisor, memo))
    assert {kind for kind, _ in memo.kept} == {"pool_books"}
    blind = without_disassembler(supervisor, memo)
    assert inspect_cubin(data, "sm_90", blind) == first
    books = inspect_cubin(other, "sm_90", blind).books
    assert books is not None and first.books is not None
    assert books.sites[0].source == "q.py:4" and books.groups == first.books.groups


def test_the_rest_of_an_inspection(disassembler: Disassembler) -> None:
    found = inspect_cubin(recorded("occupancy4-tma-13.4.3-sm_90"), "sm_90", disassembler)
    assert (found.registers, found.threads, found.shared_bytes) == (64, 256, 51320)
    assert (found.ctas_per_sm, found.limited_by) == (4, "registers, shared memory")
    assert found.tma == {"UTMALDG.1D": 2, "UTMALDG.2D": 8}
    assert found.spill_instructions == 0
    assert found.code_bytes == 21504 and len(found.code_sha256) == 64
    assert Inspection.from_json(found.to_json()) == found


def test_source_names_replace_what_the_compiler_was_told(disassembler: Disassembler) -> None:
    data = recorded("deadlock-13.3.1-sm_90")
    told = {"/src/k/k.py": "rmsnorm/device.py", "k.py": "rmsnorm/device.py"}
    books = inspect_cubin(data, "sm_90", disassembler, source_names=told).books
    assert books is not None and books.sites[0].source == "rmsnorm/device.py:4"


def test_another_architecture_is_refused(disassembler: Disassembler) -> None:
    with pytest.raises(CubinError, match="this cubin is for sm_90, not for sm_100"):
        inspect_cubin(recorded("deadlock-13.3.1-sm_90"), "sm_100", disassembler)


@pytest.fixture(scope="module")
def closed(supervisor: Supervisor) -> RecordedMemo:
    """What is kept once the books of the deadlock were closed; not to be changed."""
    memo = RecordedMemo()
    books_of("deadlock-13.3.1-sm_90", Disassembler(supervisor, memo))
    assert [kind for kind, _ in memo.kept] == ["pool_books"]
    return memo


@pytest.mark.parametrize(
    "spoilt", [{"answer": "perhaps"}, {"sites": 7}, {"sites": [{"pb": 1}]}, {"groups": [3]}]
)
def test_books_that_cannot_be_read_are_closed_again(
    spoilt: dict[str, object], closed: RecordedMemo, supervisor: Supervisor
) -> None:
    books = books_of("deadlock-13.3.1-sm_90", Disassembler(supervisor, closed))
    memo = RecordedMemo()
    memo.kept = {key: {**kept, **spoilt} for key, kept in closed.kept.items()}
    assert books_of("deadlock-13.3.1-sm_90", Disassembler(supervisor, memo)) == books
