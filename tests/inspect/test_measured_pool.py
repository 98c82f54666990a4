"""The books against what an H200 did with kernels made for the question."""

from __future__ import annotations

import pytest
from recorded_cubins import Measured, measured

from harness.inspect import Disassembler, inspect_cubin
from harness.model import PoolAnswer

LEFT_OPEN = {
    "race-for-a-second-step": "two warps race, and may both finish",
    "warp-0-cannot-pay-warp-5": "one pool for the CTA could pay",
    "warp-0-cannot-pay-warp-1": "one pool for the CTA could pay",
}


@pytest.mark.parametrize("case", measured(), ids=lambda case: case.kernel)
def test_books_agree_with_the_device(case: Measured, disassembler: Disassembler) -> None:
    inspection = inspect_cubin(case.cubin, "sm_90", disassembler)
    assert inspection.threads == case.threads and inspection.books is not None
    if case.outcome == "illegal instruction" or case.kernel in LEFT_OPEN:
        assert inspection.books.answer is PoolAnswer.UNKNOWN
    else:
        expected = PoolAnswer.BALANCED if case.outcome == "ends" else PoolAnswer.IMPOSSIBLE
        assert inspection.books.answer is expected


@pytest.mark.parametrize("case", [c for c in measured() if c.outcome == "hang"], ids=lambda case: case.kernel)
def test_warps_that_never_ended_are_those_that_ask(case: Measured, disassembler: Disassembler) -> None:
    """Whoever hung stood before a TRY_ALLOC it may or must pass."""
    books = inspect_cubin(case.cubin, "sm_90", disassembler).books
    assert books is not None
    asks = {s.pc for s in books.sites if s.kind == "alloc"}
    askers = {warp for group in books.groups if asks & set(group.may) for warp in group.warps}
    assert set(range(case.threads // 32)) - set(case.ended) <= askers
