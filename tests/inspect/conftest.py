"""Disassemblers: one that has seen all recorded cubins, and one that has to run nvdisasm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recorded_cubins import MemoryMemo, RecordedMemo

from harness.inspect import Disassembler
from harness.process import Supervisor


@pytest.fixture(scope="session")
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as running:
        yield running


@pytest.fixture(scope="session")
def disassembler(supervisor: Supervisor) -> Disassembler:
    return Disassembler(supervisor, RecordedMemo())


@pytest.fixture(scope="session")
def real_disassembler(supervisor: Supervisor) -> Disassembler:
    return Disassembler(supervisor, MemoryMemo())
