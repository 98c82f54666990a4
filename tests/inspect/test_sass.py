"""Running, finding and remembering nvdisasm."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recorded_cubins import MemoryMemo, recorded

from harness.inspect import Disassembler, DisassemblyError, inspect_cubin, sass
from harness.inspect.cubin import read_cubin
from harness.inspect.lines import line_at
from harness.model import PoolAnswer
from harness.process import Supervisor

DEADLOCK = recorded("deadlock-13.3.1-sm_90")
CUBIN = read_cubin(DEADLOCK)
SMALL = read_cubin(recorded("two-kernels-sm_90"), "first")


def tool(path: Path, script: str, mode: int = 0o755) -> Path:
    """A fake nvdisasm, for faults only."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return path


def test_listing_has_every_instruction(real_disassembler: Disassembler, disassembler: Disassembler) -> None:
    listing = real_disassembler.listing(CUBIN)
    assert listing == disassembler.listing(CUBIN)
    assert len(listing) * 16 == len(CUBIN.code)
    assert [i.pc for i in listing[:3]] == [0, 16, 32]
    assert str(listing[0x8D80 // 16]) == "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20"
    assert str(listing[0x8DA0 // 16]) == "@!P0 BRA 0x8d70"


@pytest.fixture(scope="module")
def remembered(supervisor: Supervisor) -> MemoryMemo:
    """What is kept after the small kernel was disassembled once; not to be changed."""
    memo = MemoryMemo()
    Disassembler(supervisor, memo).listing(SMALL)
    return memo


def test_equal_code_is_disassembled_once(
    remembered: MemoryMemo, supervisor: Supervisor, tmp_path: Path
) -> None:
    assert [kind for kind, _ in remembered.kept] == ["sass"]
    again = Disassembler(supervisor, remembered)
    again.__dict__["tool"] = tool(tmp_path / "nvdisasm", "exit 9")
    again.__dict__["identity"] = Disassembler(supervisor, remembered).identity
    assert len(again.listing(SMALL)) * 16 == len(SMALL.code)


@pytest.mark.parametrize("kept", [{}, {"instructions": 7}, {"instructions": [["", "NOP"]]}])
def test_a_listing_that_cannot_be_read_is_made_again(
    remembered: MemoryMemo, supervisor: Supervisor, kept: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    memo = MemoryMemo()
    memo.kept.update(dict.fromkeys(remembered.kept, kept))
    first = Disassembler(supervisor, remembered).listing(SMALL)
    (good,) = remembered.kept.values()
    monkeypatch.setattr(Disassembler, "_disassemble", lambda self, cubin: good["instructions"])
    assert Disassembler(supervisor, memo).listing(SMALL) == first
    assert memo.kept == remembered.kept


def test_context_marks_the_instruction_and_names_lines(disassembler: Disassembler) -> None:
    lines = disassembler.context(DEADLOCK, 0x8D80, before=2, after=2, source_names={"": "x"})
    assert lines == (
        "  k.py:4",
        "  0x08d60  @P0 BRA 0x8f60",
        "  0x08d70  NOP",
        "> 0x08d80  USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20",
        "  0x08d90  PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0",
        "  0x08da0  @!P0 BRA 0x8d70",
    )


def test_source_lines_are_those_of_nvdisasm(disassembler: Disassembler, tmp_path: Path) -> None:
    cubin = tmp_path / "deadlock.cubin"
    cubin.write_bytes(DEADLOCK)
    text = subprocess.run(
        [disassembler.tool, "-g", "-c", cubin], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    table, line, compared = CUBIN.source_lines(), None, 0
    for row in text.splitlines():
        marker = re.search(r'//## File "[^"]*/([^"/]+)", line (\d+)', row)
        instruction = re.match(r"\s+/\*([0-9a-f]{4,})\*/", row)
        if marker:
            line = f"{marker[1]}:{marker[2]}"
        elif instruction and line is not None:
            compared += 1
            assert line_at(table, int(instruction[1], 16), {}) == line
    assert compared > 2000


def test_source_names_translate_what_the_compiler_was_told() -> None:
    table = CUBIN.source_lines()
    told = next(entry.file for entry in table if entry.file.endswith("k.py"))
    assert line_at(table, 0x8D80, {told: "kernels/rmsnorm.py"}) == "kernels/rmsnorm.py:4"
    assert line_at((), 0x8D80, {}) is None


def test_a_damaged_line_table_is_no_line_table() -> None:
    damaged = read_cubin(DEADLOCK)
    object.__setattr__(damaged, "debug_line", damaged.debug_line[:50])
    assert damaged.source_lines() == ()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "echo 'nvdisasm fatal : bad' >&2; exit 3",
            "nvdisasm ended in 3 on the code of sm_90: nvdisasm fatal",
        ),
        ("exit 4", "nvdisasm ended in 4 on the code of sm_90: it said nothing"),
        ("echo nonsense", "nvdisasm wrote something other than its JSON"),
        ("echo '[]'", "nvdisasm wrote something other than its JSON"),
        ('echo \'[{},[{"sass-instructions":[{"opcode":"NOP"}]}]]\'', "nvdisasm listed 1 instructions where"),
    ],
)
def test_faults_of_the_tool(script: str, words: str, supervisor: Supervisor, tmp_path: Path) -> None:
    broken = Disassembler(supervisor, MemoryMemo(), tool(tmp_path / "nvdisasm", script))
    with pytest.raises(DisassemblyError) as caught:
        broken.listing(CUBIN)
    assert str(caught.value).startswith(words)


def test_a_tool_that_hangs_is_ended(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sass, "_DEADLINE_SECONDS", 0.3)
    hanging = Disassembler(supervisor, MemoryMemo(), tool(tmp_path / "nvdisasm", "sleep 60"))
    with pytest.raises(DisassemblyError, match="took longer than"):
        hanging.listing(CUBIN)


def test_a_missing_tool_says_what_to_install(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DisassemblyError, match=r"no nvdisasm at .*nowhere; name another"):
        Disassembler(supervisor, MemoryMemo(), tmp_path / "nowhere").listing(CUBIN)
    monkeypatch.setattr(sass, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        DisassemblyError, match="install the package nvidia-cuda-nvdisasm or put nvdisasm on PATH"
    ):
        Disassembler(supervisor, MemoryMemo()).listing(CUBIN)


def test_path_is_the_second_choice(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sass, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    expected = tool(tmp_path / "nvdisasm", "exit 0")
    assert Disassembler(supervisor, MemoryMemo()).tool == expected


def test_a_lost_executable_bit_is_restored(supervisor: Supervisor, tmp_path: Path) -> None:
    plain = tool(tmp_path / "nvdisasm", "exit 0", mode=0o644)
    assert os.access(Disassembler(supervisor, MemoryMemo(), plain).tool, os.X_OK)


def test_a_read_only_place_gets_a_copy(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tool(tmp_path / "nvdisasm", "exit 0", mode=0o644)
    real = Path.chmod

    def refuse(self: Path, mode: int) -> None:
        if self == plain:
            raise PermissionError("read-only file system")
        real(self, mode)

    monkeypatch.setattr(Path, "chmod", refuse)
    found = Disassembler(supervisor, MemoryMemo(), plain)
    assert found.tool != plain and os.access(found.tool, os.X_OK)
    assert found.tool.read_bytes() == plain.read_bytes()


def test_what_is_remembered_is_plain(remembered: MemoryMemo) -> None:
    json.dumps(list(remembered.kept.values()))


def test_code_that_no_nvdisasm_reads_has_no_books_but_all_else(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    script = "echo \"nvdisasm error   : Opclass 'nop_', undefined value 0x10\" >&2; exit 1"
    refusing = Disassembler(supervisor, MemoryMemo(), tool(tmp_path / "nvdisasm", script))
    seen = inspect_cubin(DEADLOCK, "sm_90", refusing)
    assert (seen.registers, seen.threads) == (24, 256)
    assert seen.books is not None
    assert seen.books.answer is PoolAnswer.UNKNOWN
    assert "Opclass 'nop_'" in seen.books.proof[0]
