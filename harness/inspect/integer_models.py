"""The opcodes by which code finds out which warp it is, evaluated exactly for 32-bit integers and predicates.

A model gives, for the modifiers and operands of an instruction, the names it writes and a function from
known values to known results. A spelling that is not modelled in full gives nothing, and is treated like any
opcode that is not modelled at all.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping

from .lanes import WORD, Threads, Value, bitwise, chosen, combined, each, flipped, looked_up, signed

Evaluate = Callable[[Mapping[str, Value], Threads], dict[str, Value]]
Modelled = tuple[Collection[str] | None, Evaluate | None]
"""Names written and how to compute those that can be; (None, None) where the instruction is not modelled."""

_Model = Callable[[frozenset[str], tuple[str, ...]], Modelled]
_NOT_MODELLED: Modelled = (None, None)

REGISTER = re.compile(r"(U?R)(\d+|Z)$")
PREDICATE = re.compile(r"(U?P)(\d+|T)$")


def predicate_value(state: Mapping[str, Value], name: str) -> Value | None:
    return 1 if name in ("PT", "UPT") else state.get(name)


def condition(state: Mapping[str, Value], text: str) -> Value | None:
    return flipped(predicate_value(state, text.removeprefix("!")), text.startswith("!"))


def read(state: Mapping[str, Value], text: str) -> Value | None:
    """A 32-bit source operand; None for anything but a plain register or number."""
    text = text.removesuffix(".reuse")
    negative, text = text.startswith("-"), text.removeprefix("-")
    value: Value | None
    if REGISTER.match(text):
        value = 0 if text.endswith("Z") else state.get(text)
    else:
        try:
            value = int(text, 16) if text.startswith("0x") else int(text)
        except ValueError:
            return None
    return each(lambda word: (-word if negative else word) & WORD, value)


def modelled(base: str, modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """Destinations and evaluator of an opcode that is modelled; (None, None) for any other."""
    kind = base[1:] if base in _UNIFORM else base
    model = _MODELS.get(kind)
    return _NOT_MODELLED if model is None else model(modifiers, operands)


def _result(name: str, compute: Callable[[Mapping[str, Value], Threads], Value | None]) -> Evaluate:
    def evaluate(state: Mapping[str, Value], threads: Threads) -> dict[str, Value]:
        value = compute(state, threads)
        return {} if value is None else {name: value}

    return evaluate


_AXES = {"SR_TID.X": 0, "SR_TID.Y": 1, "SR_TID.Z": 2}


def _special(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """S2R: the thread's own index."""
    if modifiers or len(operands) != 2:
        return _NOT_MODELLED
    destination, source = operands

    def compute(_: Mapping[str, Value], threads: Threads) -> Value | None:
        return threads.index(_AXES[source]) if source in _AXES else None

    return {destination}, _result(destination, compute)


def _move(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    if modifiers - {"U32"} or len(operands) < 2:
        return _NOT_MODELLED
    return {operands[0]}, _result(operands[0], lambda state, _: read(state, operands[1]))


def _add(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """IADD, IADD3, VIADD: d, [carry-out predicates,] then two or three addends."""
    if modifiers:
        return _NOT_MODELLED
    carries = [text for text in operands[1:3] if PREDICATE.match(text)]
    addends = operands[1 + len(carries) :]
    if not 2 <= len(addends) <= 3:
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], _: Threads) -> Value | None:
        return each(lambda *words: sum(words) & WORD, *(read(state, text) for text in addends))

    return {operands[0], *carries}, _result(operands[0], compute)


def _multiply_add(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """IMAD and its MOV, SHL and IADD spellings: the low 32 bits of a × b + c."""
    if modifiers - {"MOV", "SHL", "IADD", "U32"} or len(operands) != 4:
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], _: Threads) -> Value | None:
        a, b, c = (read(state, text) for text in operands[1:])
        if 0 in (a, b):
            return c
        return each(lambda x, y, z: (x * y + z) & WORD, a, b, c)

    return {operands[0]}, _result(operands[0], compute)


def _scaled_add(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """LEA d, a, b, s: (a << s) + b."""
    if modifiers or len(operands) != 4 or PREDICATE.match(operands[1]):
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], _: Threads) -> Value | None:
        a, b, shift = (read(state, text) for text in operands[1:])
        return each(lambda x, y, s: ((x << s) + y) & WORD, a, b, shift if _within_word(shift) else None)

    return {operands[0]}, _result(operands[0], compute)


def _shift(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """SHF where one half of the funnel is zero: plain left, logical right and arithmetic right shifts."""
    if len(operands) != 4:
        return _NOT_MODELLED
    destination, low, amount, high = operands
    function: Callable[[int, int], int]
    if modifiers == {"L", "U32"} and high in ("RZ", "URZ"):
        source, function = low, _shift_left
    elif modifiers == {"R", "U32", "HI"} and low in ("RZ", "URZ"):
        source, function = high, operator.rshift
    elif modifiers == {"R", "S32", "HI"} and low in ("RZ", "URZ"):
        source, function = high, _shift_arithmetic
    else:
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], _: Threads) -> Value | None:
        shift = read(state, amount)
        return each(function, read(state, source), shift if _within_word(shift) else None)

    return {destination}, _result(destination, compute)


def _logic(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """LOP3.LUT [p,] d, a, b, c, table, q: any bitwise function of three words; p is (d ≠ 0) or q."""
    flags = operands[:1] if operands and PREDICATE.match(operands[0]) else ()
    rest = operands[len(flags) :]
    if modifiers - {"LUT"} or len(rest) != 6 or not rest[4].startswith("0x"):
        return _NOT_MODELLED
    table = int(rest[4], 16)

    def evaluate(state: Mapping[str, Value], _: Threads) -> dict[str, Value]:
        word = bitwise(table, [read(state, text) for text in rest[1:4]])
        found = {rest[0]: word}
        for flag in flags:
            found[flag] = combined(operator.or_, each(lambda x: int(x != 0), word), condition(state, rest[5]))
        return {name: value for name, value in found.items() if value is not None}

    return {rest[0], *flags}, evaluate


def _select(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    if modifiers or len(operands) != 4:
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], _: Threads) -> Value | None:
        yes, no = read(state, operands[1]), read(state, operands[2])
        return chosen(condition(state, operands[3]), yes, no)

    return {operands[0]}, _result(operands[0], compute)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "F": lambda a, b: False,
    "LT": operator.lt,
    "EQ": operator.eq,
    "LE": operator.le,
    "GT": operator.gt,
    "NE": operator.ne,
    "GE": operator.ge,
    "T": lambda a, b: True,
}
_CONNECTIVES: dict[str, Callable[[int, int], int]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
}


def _compare(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """ISETP p, q, a, b, r: p = (a ~ b) ∘ r and q = not (a ~ b) ∘ r."""
    if len(operands) < 2:
        return _NOT_MODELLED
    comparison, connective = modifiers & set(_COMPARISONS), modifiers & set(_CONNECTIVES)
    known = comparison | connective | {"U32"}
    modelled = len(operands) == 5 and len(comparison) == len(connective) == 1 and not modifiers - known
    if not modelled:
        return set(operands[:2]), None
    relation, combine = _COMPARISONS[min(comparison)], _CONNECTIVES[min(connective)]
    as_number = signed if "U32" not in modifiers else _unsigned

    def evaluate(state: Mapping[str, Value], _: Threads) -> dict[str, Value]:
        a, b = read(state, operands[2]), read(state, operands[3])
        holds = each(lambda x, y: int(relation(as_number(x), as_number(y))), a, b)
        other = condition(state, operands[4])
        answers = {
            operands[0]: combined(combine, holds, other),
            operands[1]: combined(combine, flipped(holds, True), other),
        }
        return {name: value for name, value in answers.items() if value is not None}

    return set(operands[:2]), evaluate


def _predicate_logic(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """PLOP3.LUT p, q, a, b, c, table, table: two functions of three predicates."""
    if modifiers != {"LUT"} or len(operands) != 7:
        return set(operands[:2]), None
    tables = [int(text, 16) for text in operands[5:]]

    def evaluate(state: Mapping[str, Value], _: Threads) -> dict[str, Value]:
        inputs = [condition(state, text) for text in operands[2:5]]
        found = {}
        for name, table in zip(operands[:2], tables, strict=True):
            value = looked_up(table, inputs)
            if value is not None:
                found[name] = value
        return found

    return set(operands[:2]), evaluate


def _to_uniform(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """R2UR: one thread's word for the warp, so known where the warp's threads agree."""
    if modifiers - {"BROADCAST"} or len(operands) != 2:
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], threads: Threads) -> Value | None:
        return threads.agreed(read(state, operands[1]))

    return {operands[0]}, _result(operands[0], compute)


def _shuffle(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """SHFL.IDX p, d, a, lane, clamp: another thread's word, so known where the warp's threads agree."""
    if modifiers != {"IDX"} or len(operands) != 5:
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], threads: Threads) -> Value | None:
        return threads.agreed(read(state, operands[2]))

    return set(operands[:2]), _result(operands[1], compute)


def _vote(modifiers: frozenset[str], operands: tuple[str, ...]) -> Modelled:
    """VOTE.ALL or .ANY p, q. Which threads take part is unknown, so known where the warp's threads agree."""
    if modifiers not in ({"ALL"}, {"ANY"}) or len(operands) != 2 or not PREDICATE.match(operands[0]):
        return _NOT_MODELLED

    def compute(state: Mapping[str, Value], threads: Threads) -> Value | None:
        return threads.agreed(condition(state, operands[1]))

    return {operands[0]}, _result(operands[0], compute)


_MODELS: dict[str, _Model] = {
    "S2R": _special,
    "MOV": _move,
    "IADD": _add,
    "IADD3": _add,
    "VIADD": _add,
    "IMAD": _multiply_add,
    "LEA": _scaled_add,
    "SHF": _shift,
    "LOP3": _logic,
    "SEL": _select,
    "ISETP": _compare,
    "PLOP3": _predicate_logic,
    "R2UR": _to_uniform,
    "SHFL": _shuffle,
    "VOTE": _vote,
    "VOTEU": _vote,
}
_UNIFORM = frozenset(
    {"UMOV", "UIADD3", "UIMAD", "ULEA", "USHF", "ULOP3", "USEL", "UISETP", "UPLOP3", "UVIADD"}
)


def _unsigned(word: int) -> int:
    return word


def _within_word(shift: Value | None) -> bool:
    return isinstance(shift, int) and shift < 32


def _shift_left(word: int, amount: int) -> int:
    return word << amount & WORD


def _shift_arithmetic(word: int, amount: int) -> int:
    return signed(word) >> amount & WORD
