"""What an instruction changes of what is known: registers, predicates and spill slots.

Few opcodes are evaluated, those that compilers use to find out which warp they are in; every other one makes
its destinations unknown. Where the spelling does not say how many registers are written, all from
the first destination up are given up: a stale constant is never kept, a live one may be lost.

Registers that all threads of a warp share (UR, UP) are treated as if every path through the code had its own.
That is what ptxas has to guarantee for single-thread semantics wherever paths may diverge; a wrong register
allocation is not a thing this can find.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .integer_models import PREDICATE, REGISTER, Evaluate, Modelled, modelled, predicate_value, read
from .lanes import State, Threads, Value, chosen, combined, flipped
from .sass import Instruction

_NAME = re.compile(r"(?<![A-Za-z_])(?:UR|UP|R|P)\d+(?![A-Za-z0-9_])")
_FRAME_SLOT = re.compile(r"\[R1(?:\+(-?0x[0-9a-f]+))?\]$")


@dataclass(frozen=True)
class Effect:
    """What one instruction writes and reads; `evaluate` gives those of its results that are known."""

    writes: frozenset[str]
    reads: frozenset[str]
    guard: tuple[str, bool] | None
    evaluate: Evaluate | None

    def apply(self, state: State, threads: Threads) -> None:
        """Change the state as the instruction would, predication included."""
        runs: Value | None = 1
        if self.guard is not None:
            runs = flipped(predicate_value(state, self.guard[0]), self.guard[1])
        if runs == 0:
            return
        results = {} if self.evaluate is None else self.evaluate(state, threads)
        for name in self.writes:
            new, old = results.get(name), state.get(name)
            if runs != 1:
                new = chosen(runs, new, old)
            if new is None:
                state.pop(name, None)
            else:
                state[name] = new


def _guard_of(instruction: Instruction) -> tuple[str, bool] | None:
    """("P0", inverted) for "@!P0"; None where nothing guards it."""
    text = instruction.predicate.removeprefix("@")
    if not text or text in ("PT", "UPT"):
        return None
    return text.removeprefix("!"), text.startswith("!")


def branch_condition(instruction: Instruction) -> tuple[tuple[str, bool] | None, ...]:
    """All that must hold for a branch or exit to be taken; None is a condition that cannot be known."""
    conditions: list[tuple[str, bool] | None] = []
    guard = _guard_of(instruction)
    if guard is not None:
        conditions.append(guard)
    base, *modifiers = instruction.opcode.split(".")
    named = instruction.operands[:-1] if base in ("BRA", "JMP") else ()
    for text in named:
        plain = PREDICATE.match(text.removeprefix("!")) and not set(modifiers) - {"U"}
        conditions.append((text.removeprefix("!"), text.startswith("!")) if plain else None)
    return tuple(conditions)


def truth(state: Mapping[str, Value], guard: tuple[str, bool] | None) -> Value | None:
    """The value of a guard or branch condition; 1 where there is none."""
    return 1 if guard is None else flipped(predicate_value(state, guard[0]), guard[1])


def both(a: Value | None, b: Value | None) -> Value | None:
    """Logical and of two predicate values."""
    return combined(operator.and_, a, b)


def names_in(listing: Iterable[Instruction]) -> frozenset[str]:
    """Every register, predicate and spill slot that appears."""
    names: set[str] = set()
    for instruction in listing:
        names.update(_NAME.findall(f"{instruction.predicate} {' '.join(instruction.operands)}"))
        if instruction.opcode.startswith(("STL", "LDL")):
            names.update(slot for operand in instruction.operands for slot in _slots(operand, 16))
    return frozenset(names)


def effect_of(instruction: Instruction, names: Collection[str]) -> Effect:
    """The effect on `names`, which is every name of the code."""
    base, *rest = instruction.opcode.split(".")
    modifiers, operands = frozenset(rest), instruction.operands
    found, evaluate = _local(base, modifiers, operands) or modelled(base, modifiers, operands)
    writes = _given_up(base, modifiers, operands, names) if found is None else frozenset(found)
    if "R1" in writes:
        writes |= _all_slots(names)
    guard = _guard_of(instruction)
    reads = frozenset[str]() if guard is None else frozenset({guard[0]})
    if evaluate is not None:
        reads |= {name for operand in operands for name in (*_NAME.findall(operand), *_slots(operand, 4))}
    return Effect(writes - {"RZ", "URZ", "PT", "UPT"}, reads, guard, evaluate)


# --- spill slots ------------------------------------------------------------------------------

_STORES_ANYWHERE = frozenset({"STL", "ST", "ATOM", "RED"})


def _local(base: str, modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled | None:
    """STL [address], register and LDL register, [address]; None for anything else.

    A slot is a word of the thread's frame, named by its offset from R1.
    """
    if base not in ("STL", "LDL") or len(operands) != 2:
        return None
    place, register = operands if base == "STL" else reversed(operands)
    slots = tuple(_slots(place, _local_bytes(modifiers)))
    if len(slots) != 1 or modifiers - {"LU"}:
        return (slots or None) if base == "STL" else None, None
    slot = slots[0]

    def store(state: Mapping[str, Value], _: Threads) -> dict[str, Value]:
        value = read(state, register)
        return {} if value is None else {slot: value}

    def load(state: Mapping[str, Value], _: Threads) -> dict[str, Value]:
        value = state.get(slot)
        return {} if value is None else {register: value}

    return ({slot}, store) if base == "STL" else ({register}, load)


def _slots(place: str, size: int) -> Iterator[str]:
    """The words that `size` bytes at a frame address touch; none where the address is another."""
    found = _FRAME_SLOT.match(place)
    if found:
        offset = int(found[1] or "0", 16)
        yield from (f"[{word}]" for word in range(offset // 4 * 4, offset + size, 4))


def _all_slots(names: Collection[str]) -> set[str]:
    return {name for name in names if name.startswith("[")}


def _local_bytes(modifiers: frozenset[str]) -> int:
    return 4 * max((_WIDTHS[modifier] for modifier in modifiers if modifier in _WIDTHS), default=1)


# --- what is given up for an opcode that is not modelled --------------------------------------

_NO_DESTINATION = frozenset(
    [
        "BAR",
        "WARPSYNC",
        "NANOSLEEP",
        "BSSY",
        "BSYNC",
        "BREAK",
        "USETMAXREG",
        "BRA",
        "JMP",
        "CALL",
        "RET",
        "EXIT",
    ]
)
_PREDICATES_ONLY = frozenset({"FSETP", "DSETP", "HSETP2", "UFSETP", "FCHK", "VOTE", "VOTEU"})
_ONE_REGISTER_OPCODES = """
S2R S2UR R2UR MOV UMOV SEL USEL FSEL UFSEL PRMT UPRMT SHF USHF LOP3 ULOP3 LEA ULEA IADD IADD3 UIADD3 VIADD
UVIADD IMAD UIMAD IABS UIABS IMNMX UIMNMX VIMNMX UVIMNMX SHFL P2R UP2UR FADD FMUL FFMA FMNMX UFADD UFMUL
UFFMA UFMNMX MUFU I2FP UI2FP F2FP HADD2 HMUL2 HFMA2 I2F F2I UF2I LDC LDG LDS LDL LDCU ULDC POPC UPOPC FLO
UFLO BREV UBREV SGXT USGXT BMSK UBMSK REDUX VOTE VOTEU
"""
_ONE_REGISTER = frozenset(_ONE_REGISTER_OPCODES.split())
_WIDTHS = {"32": 1, "U8": 1, "S8": 1, "U16": 1, "S16": 1, "64": 2, "128": 4, "256": 8, "WIDE": 2}
_WIDE_WORDS = frozenset({"F64", "U64", "S64"})


def _given_up(
    base: str, modifiers: frozenset[str], operands: tuple[str, ...], names: Collection[str]
) -> frozenset[str]:
    """Every name it may write: leading predicates, one register or more, predicates behind it."""
    if base in _NO_DESTINATION:
        return frozenset({operands[0]} if base == "USETMAXREG" and len(operands) == 2 else ())
    if base in ("R2P", "UR2UP"):
        return frozenset(name for name in names if "P" in name)
    written = _all_slots(names) if base in _STORES_ANYWHERE else set()
    seen_register = False
    for position, text in enumerate(operands):
        register = REGISTER.match(text.removesuffix(".reuse"))
        if PREDICATE.match(text):
            written.add(text)
        elif register and not seen_register:
            seen_register = True
            if base not in _PREDICATES_ONLY or position == 0:
                written.update(_registers_from(register, _width(base, modifiers), names))
        elif register and "256" in modifiers:
            written.update(_registers_from(register, 8, names))
        else:
            break
    return frozenset(written)


def _width(base: str, modifiers: frozenset[str]) -> int | None:
    """Registers written, or None where the spelling does not tell."""
    widths = [_WIDTHS[modifier] for modifier in modifiers if modifier in _WIDTHS]
    if modifiers & _WIDE_WORDS:
        widths.append(2)
    if base == "CS2R":
        return 1 if "32" in modifiers else 2
    if base not in _ONE_REGISTER:
        return max(widths) if widths and base.startswith(("LD", "ULD")) else None
    return max(widths, default=1)


def _registers_from(register: re.Match[str], width: int | None, names: Collection[str]) -> Iterator[str]:
    kind, number = register[1], register[2]
    if number == "Z":
        return
    first = int(number)
    if width is not None:
        yield from (f"{kind}{first + offset}" for offset in range(width))
        return
    for name in names:
        match = REGISTER.match(name)
        if match and match[1] == kind and int(match[2]) >= first:
            yield name
