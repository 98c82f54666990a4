"""What instructions write, against the live ranges that nvdisasm prints; and what is evaluated."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_cubins import recorded

from harness.inspect import Disassembler
from harness.inspect.cubin import read_cubin
from harness.inspect.effects import branch_condition, effect_of, names_in
from harness.inspect.lanes import State, Threads, Value
from harness.inspect.sass import Instruction

WARPS = Threads((0, 1, 2, 3), (128, 1, 1))
CLASSES = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}


def defined(listing: str) -> Iterator[tuple[int, str]]:
    """(pc, name) of every register that `nvdisasm -plr` marks as written: ^ or x in its column."""
    kinds: list[str] = []
    columns: list[tuple[str, int, int]] = []
    for row in listing.splitlines():
        if "// |" not in row:
            continue
        table = row.split("// |", 1)[1]
        if re.match(r"[ |]*(GPR|PRED|UGPR|UPRED)\b", table):
            kinds = [CLASSES[cell.strip()] for cell in table.split("|") if cell.strip() in CLASSES]
            continue
        if re.match(r"\s*#\s", table):
            columns, offset = [], 0
            for kind, cells in zip(kinds, table.split("|"), strict=False):
                columns += [
                    (f"{kind}{m[0]}", m.start() + offset, m.end() + offset)
                    for m in re.finditer(r"\d+", cells)
                ]
                offset += len(cells) + 1
            continue
        instruction = re.match(r"\s*/\*([0-9a-f]{4,})\*/", row)
        if instruction:
            for name, start, end in columns:
                if set(table[start:end]) & set("^x"):
                    yield int(instruction[1], 16), name


@pytest.mark.parametrize(
    "name",
    [
        "occupancy4-13.4.3-sm_100",
        pytest.param("deadlock-13.3.1-sm_90", marks=pytest.mark.toolchain),
        pytest.param("spilled-index-13.3.1-sm_90", marks=pytest.mark.toolchain),
        pytest.param("occupancy4-tma-13.4.3-sm_121", marks=pytest.mark.toolchain),
    ],
)
def test_no_written_register_is_overlooked(name: str, disassembler: Disassembler, tmp_path: Path) -> None:
    data = recorded(name)
    (tmp_path / "a.cubin").write_bytes(data)
    listing = disassembler.listing(read_cubin(data))
    names = names_in(listing)
    text = subprocess.run(
        [disassembler.tool, "-c", "-plr", tmp_path / "a.cubin"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    checked = 0
    for pc, register in defined(text):
        instruction = listing[pc // 16]
        if register in names and not instruction.opcode.startswith("CALL"):
            checked += 1
            assert register in effect_of(instruction, names).writes, (
                f"{pc:#x} {instruction} writes {register}"
            )
    assert checked > 1000


# --- values -----------------------------------------------------------------------------------


def parse(text: str) -> Instruction:
    predicate, _, rest = text.partition(" ") if text.startswith("@") else ("", "", text)
    opcode, _, operands = rest.partition(" ")
    return Instruction(0, predicate, opcode, tuple(operands.replace(" ", "").split(",")) if operands else ())


def run(*code: str, state: State | None = None, threads: Threads = WARPS) -> State:
    listing = [parse(text) for text in code]
    names = names_in(listing) | set(state or {})
    current = dict(state or {})
    for instruction in listing:
        effect_of(instruction, names).apply(current, threads)
    return current


def by_warp(value: Value) -> list[int | None]:
    return list(WARPS.per_warp(value).values())


def test_the_warp_index_as_compilers_make_it() -> None:
    state = run("S2R R0, SR_TID.X", "SHF.R.U32.HI R0, RZ, 0x5, R0", "R2UR UR5, R0")
    assert by_warp(state["UR5"]) == [0, 1, 2, 3]


def test_a_flat_cta_of_two_rows() -> None:
    rows = Threads((0, 1, 2, 3), (64, 2, 1))
    state = run("S2R R0, SR_TID.X", "S2R R1, SR_TID.Y", "SHF.R.U32.HI R0, RZ, 0x5, R0", threads=rows)
    assert [rows.per_warp(state[name])[warp] for name in ("R0", "R1") for warp in range(4)] == [
        *(0, 1, 0, 1),
        *(0, 0, 1, 1),
    ]


def test_one_warp_sees_plain_integers() -> None:
    third = Threads((3,), (128, 1, 1))
    state = run(
        "S2R R0, SR_TID.X",
        "SHF.R.U32.HI R0, RZ, 0x5, R0",
        "R2UR UR5, R0",
        "UIADD3 UR5, UPT, UPT, UR5, -0x1, URZ",
        "UISETP.GT.U32.AND UP0, UPT, UR5, 0x1, UPT",
        "PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0",
        threads=third,
    )
    assert (state["UR5"], state["UP0"], state["P0"]) == (2, 1, 1)


def test_a_lane_varying_word_does_not_become_uniform() -> None:
    assert "UR5" not in run("S2R R0, SR_TID.X", "R2UR UR5, R0", state={"UR5": 7})
    assert "R2" not in run("S2R R0, SR_TID.X", "SHFL.IDX PT, R2, R0, RZ, 0x1f", state={"R2": 7})
    assert "UP0" not in run("S2R R0, SR_TID.X", "ISETP.NE.U32.AND P0, PT, R0, RZ, PT", "VOTEU.ALL UP0, P0")


def test_spill_and_refill_keep_the_word() -> None:
    state = run("STL [R1+0x8], R2", "MOV R2, RZ", "LDL R3, [R1+0x8]", state={"R2": 5})
    assert (state["R2"], state["R3"]) == (0, 5)


@pytest.mark.parametrize(
    "between",
    [
        "STL [R1+0x8], R9",
        "STL.64 [R1+0x4], R8",
        "STL [R7], R9",
        "IADD3 R1, R1, 0x10, RZ",
        "STL.S16 [R1+0xa], R9",
        "ST.E [R6.64], R9",
        "ATOM.E.ADD PT, R9, [R6.64], R9",
    ],
)
def test_a_slot_that_may_have_changed_is_forgotten(between: str) -> None:
    state = run("STL [R1+0x8], R2", between, "LDL R3, [R1+0x8]", state={"R2": 5, "R3": 4})
    assert "R3" not in state


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("LDG.E.128 R4, desc[UR4][R2.64]", ["R4", "R5", "R6", "R7"]),
        ("IMAD.WIDE R4, R2, 0x4, R8", ["R4", "R5"]),
        ("HGMMA.64x256x16.F32.BF16 R4, gdesc[UR4], R4, gsb0", ["R4", "R5", "R9", "R40"]),
        ("FADD2 R4, R8.F32x2.HI_LO, RZ.F32", ["R4", "R5"]),
        ("LDCU.64 UR4, c[0x0][0x388]", ["UR4", "UR5"]),
        ("CS2R R4, SRZ", ["R4", "R5"]),
        ("F2I.S64.TRUNC R4, R2", ["R4", "R5"]),
        ("SHFL.BFLY P1, R4, R2, 0x1, 0x1f", ["P1", "R4"]),
        ("IADD3 R4, P1, R2, R8, RZ", ["R4", "P1"]),
        ("R2P PR, R2, 0x7f", ["P0", "P1", "UP0"]),
        ("ELECT P1, UR4, PT", ["P1", "UR4"]),
    ],
)
def test_destinations_are_given_up(text: str, lost: list[str]) -> None:
    names = ["R2", "R4", "R5", "R6", "R7", "R9", "R40", "UR4", "UR5", "P0", "P1", "UP0"]
    state = run(text, state=dict.fromkeys(names, 1))
    assert not set(lost) & set(state)
    assert "R2" in state


def test_stores_and_branches_write_nothing() -> None:
    for text in (
        "STG.E desc[UR4][R2.64], R4",
        "BRA.U UP0, 0x40",
        "@P0 BRA !P1, 0x40",
        "BAR.SYNC R4, R5",
        "EXIT",
    ):
        assert not effect_of(parse(text), {"R2", "R4", "R5", "UP0", "P0", "P1", "UR4"}).writes


def test_predication() -> None:
    assert run("@P0 MOV R2, 0x7", state={"P0": 0, "R2": 1})["R2"] == 1
    assert run("@!P0 MOV R2, 0x7", state={"P0": 0, "R2": 1})["R2"] == 7
    assert "R2" not in run("@P0 MOV R2, 0x7", state={"R2": 1})
    assert run("@P0 MOV R2, 0x1", state={"R2": 1})["R2"] == 1
    some = run("S2R R0, SR_TID.X", "ISETP.LT.AND P0, PT, R0, 0x20, PT", "@P0 MOV R2, 0x7", state={"R2": 1})
    assert by_warp(some["R2"]) == [7, 1, 1, 1]


words = st.integers(0, 0xFFFFFFFF)


def as_signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


@given(a=words, b=words, c=words, table=st.integers(0, 255))
def test_bitwise_functions(a: int, b: int, c: int, table: int) -> None:
    state = run(f"LOP3.LUT P0, R3, R0, R1, R2, {table:#x}, !PT", state={"R0": a, "R1": b, "R2": c})
    expected = sum(
        (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)
    )
    assert (state["R3"], state["P0"]) == (expected, int(expected != 0))


@given(a=words, b=words, p=st.sampled_from([0, 1, None]), q=st.booleans())
def test_comparisons(a: int, b: int, p: int | None, q: bool) -> None:
    signed = {"LT": as_signed(a) < as_signed(b), "GE": as_signed(a) >= as_signed(b), "NE": a != b}
    unsigned = {"LT": a < b, "GT": a > b, "EQ": a == b, "LE": a <= b}
    known: State = {"R0": a, "R1": b} | ({} if p is None else {"P2": p})
    condition = None if p is None else bool(p) != q
    for flavour, table in (("", signed), (".U32", unsigned)):
        for relation, holds in table.items():
            for name in ("AND", "OR", "XOR"):
                text = f"ISETP.{relation}{flavour}.{name} P0, P1, R0, R1, {'!' if q else ''}P2"
                state = run(text, state=known)
                for register, side in (("P0", holds), ("P1", not holds)):
                    assert state.get(register) == _combine(name, side, condition)


def _combine(name: str, a: bool, b: bool | None) -> int | None:
    if b is None:
        decided = {("AND", False): 0, ("OR", True): 1}
        return decided.get((name, a))
    return int({"AND": a and b, "OR": a or b, "XOR": a != b}[name])


@given(a=words, b=words, c=words, s=st.integers(0, 31))
def test_arithmetic(a: int, b: int, c: int, s: int) -> None:
    mask = 0xFFFFFFFF
    state = run(
        "IADD3 R4, PT, PT, R0, -R1, R2",
        "IMAD R5, R0, R1, R2",
        f"SHF.R.S32.HI R6, RZ, {s:#x}, R0",
        f"SHF.L.U32 R7, R0, {s:#x}, RZ",
        f"LEA R8, R0, R1, {s:#x}",
        "VIADD R9, R0, 0xfffffffe",
        "IMAD.MOV.U32 R10, RZ, RZ, R2",
        "SEL R11, R0, R1, P0",
        state={"R0": a, "R1": b, "R2": c, "P0": 0},
    )
    assert state["R4"] == (a - b + c) & mask
    assert state["R5"] == (a * b + c) & mask
    assert state["R6"] == as_signed(a) >> s & mask
    assert state["R7"] == a << s & mask
    assert state["R8"] == ((a << s) + b) & mask
    assert state["R9"] == (a - 2) & mask
    assert state["R10"] == c
    assert state["R11"] == b


@given(p=st.lists(st.sampled_from([0, 1, None]), min_size=3, max_size=3), table=st.integers(0, 255))
def test_functions_of_partly_known_predicates(p: list[int | None], table: int) -> None:
    known: State = {f"P{i + 2}": value for i, value in enumerate(p) if value is not None}
    state = run(f"PLOP3.LUT P0, P1, P2, P3, P4, {table:#x}, {table ^ 255:#x}", state=known)
    outcomes = {
        table >> (4 * a + 2 * b + c) & 1
        for a in (0, 1)
        for b in (0, 1)
        for c in (0, 1)
        if all(want in (None, bit) for want, bit in zip(p, (a, b, c), strict=True))
    }
    assert state.get("P0") == (outcomes.pop() if len(outcomes) == 1 else None)
    assert state.get("P1") == (None if state.get("P0") is None else 1 - int(str(state["P0"])))


def test_carries_and_wide_forms_are_not_evaluated() -> None:
    known: State = {"R0": 1, "R1": 2, "R2": 3, "R4": 9, "P0": 1}
    for text in (
        "IADD3.X R4, R0, R1, RZ, P0, !PT",
        "IMAD.HI.U32 R4, R0, R1, R2",
        "IADD.64 R4, R0, R2",
        "LEA.HI R4, R0, R1, RZ, 0x4",
        "SHF.R.U64 R4, R0, 0x4, R1",
        "MOV R4, c[0x0][0x28]",
    ):
        assert "R4" not in run(text, state=known)


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("BRA 0x40", ()),
        ("@!P0 BRA 0x40", (("P0", True),)),
        ("@P0 BRA !P2, 0x40", (("P0", False), ("P2", True))),
        ("BRA.U UP0, 0x40", (("UP0", False),)),
        ("BRA.U.ANY UP0, 0x40", (None,)),
        ("BRA.DIV UR4, 0x40", (None,)),
        ("@P1 EXIT", (("P1", False),)),
        ("@PT BRA 0x40", ()),
    ],
)
def test_branch_conditions(text: str, conditions: tuple[object, ...]) -> None:
    assert branch_condition(parse(text)) == conditions
