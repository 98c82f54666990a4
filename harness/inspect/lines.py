"""Program counter to source line, from a cubin's `.debug_line`.

`--lineinfo` leaves line programs without any compile unit that points to them, so they are read here
one after the other. They are not relocated: every sequence counts from the start of its code section,
which is right for a cubin with one kernel.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from elftools.common.utils import struct_parse
from elftools.dwarf.lineprogram import LineProgram
from elftools.dwarf.structs import DWARFStructs


@dataclass(frozen=True, order=True)
class SourceLine:
    """Code from byte `pc` on, up to the next entry, comes from this line; line 0 says from no line."""

    pc: int
    file: str
    line: int


def source_lines(section: bytes) -> tuple[SourceLine, ...]:
    """The line table by ascending PC. Raises what pyelftools raises where the section is damaged."""
    found: dict[int, SourceLine] = {}
    for program in _programs(section):
        files = program["file_entry"]
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            name = (
                "" if state.end_sequence or not 0 < state.file <= len(files) else files[state.file - 1].name
            )
            line = 0 if state.end_sequence else state.line
            found[state.address] = SourceLine(state.address, _text(name), line)
    return tuple(sorted(found.values()))


def line_at(table: Sequence[SourceLine], pc: int, names: Mapping[str, str]) -> str | None:
    """ "file.py:12" for the code at `pc`. `names` translates what the compiler was told a file is called."""
    at = bisect_right(table, pc, key=lambda entry: entry.pc) - 1
    if at < 0 or not table[at].line or not table[at].file:
        return None
    file = table[at].file
    return f"{names.get(file, PurePosixPath(file).name)}:{table[at].line}"


def _programs(section: bytes) -> Iterator[LineProgram]:
    stream = io.BytesIO(section)
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    offset = 0
    while offset < len(section):
        header = struct_parse(structs.Dwarf_lineprog_header, stream, offset)
        end = offset + header["unit_length"] + structs.initial_length_field_size()
        yield LineProgram(header, stream, structs, stream.tell(), end)
        offset = end


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
