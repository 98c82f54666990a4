"""A kernel's code as basic blocks, cut down to what decides which pool sites a warp meets.

Only blocks from which a site can be reached are kept in full. In those, only instructions matter that
write something a branch condition depends on, directly or through other instructions; the rest, nearly all of
it, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from .effects import Effect, branch_condition, effect_of, names_in
from .sass import Instruction
from .words import BYTES_PER_INSTRUCTION

_EXITS = frozenset({"EXIT", "KILL"})
_BRANCHES = frozenset({"BRA", "JMP"})
_INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})


@dataclass(frozen=True)
class Block:
    """Instructions from `start` up to, not including, `end`; control can only leave behind the last.

    `kind` says how: "plain" (on to `end`), "branch", "exit", "return", "call", "site", "fork" (to the
    target as well as on) or "anywhere" (the target is in a register).
    """

    start: int
    end: int
    last: Instruction
    kind: str
    targets: tuple[int, ...]

    @property
    def successors(self) -> tuple[int, ...]:
        on = self.kind in ("plain", "call", "site", "fork") or bool(branch_condition(self.last))
        return (*self.targets, self.end) if on else self.targets


class CodeGraph:
    """Blocks by start, and which of them lie before which pool sites.

    `sites` are the PCs of the pool instructions to be met. `answers` has, for each, the predicate that tells
    whether a request was paid, or None where nothing is asked.
    """

    def __init__(self, listing: Sequence[Instruction], sites: Iterable[int]) -> None:
        self._listing = listing
        self.sites = frozenset(sites)
        self.answers = {pc: self._answer(pc) for pc in sorted(self.sites)}
        self.blocks = {block.start: block for block in self._cut()}
        self.before_sites = self._ancestors({b.start for b in self.blocks.values() if b.kind == "site"})
        self._decoded: dict[int, tuple[Effect, ...]] = {}
        self._clobbers: dict[int, frozenset[str]] = {}

    def effects(self, block: Block) -> tuple[Effect, ...]:
        """What the block does to names that matter, in order."""
        return self._relevant.get(block.start, ())

    def written_by_call(self, block: Block) -> frozenset[str]:
        """Names that a call may change, whatever it calls in turn."""
        if block.start not in self._clobbers:
            effects = (effect for start in self._callee(block) for effect in self._all_effects(start))
            self._clobbers[block.start] = frozenset(name for effect in effects for name in effect.writes)
        return self._clobbers[block.start]

    def call_may_exit(self, block: Block) -> bool:
        """Whether the called code can end the thread instead of returning."""
        return any(self.blocks[start].kind == "exit" for start in self._callee(block))

    def _callee(self, block: Block) -> frozenset[int]:
        def following(start: int) -> tuple[int, ...]:
            return tuple(target for target in self.blocks[start].successors if target in self.blocks)

        return _closure(block.targets, following)

    # --- blocks -------------------------------------------------------------------------------

    def _answer(self, pc: int) -> str | None:
        operands = self._listing[pc // BYTES_PER_INSTRUCTION].operands
        return operands[0] if len(operands) == 2 else None

    def _cut(self) -> list[Block]:
        forks = self._late_reconvergence()
        ends, leaders = {}, {0}
        for instruction in self._listing:
            kind, targets = self._leaving(instruction, forks)
            if kind != "plain":
                ends[instruction.pc] = kind, targets
                leaders.update(targets, (instruction.pc + BYTES_PER_INSTRUCTION,))
        leaders |= self.sites
        size = len(self._listing) * BYTES_PER_INSTRUCTION
        starts = sorted(leader for leader in leaders if 0 <= leader < size)
        blocks = []
        for start, end in zip(starts, [*starts[1:], size], strict=True):
            last = self._listing[end // BYTES_PER_INSTRUCTION - 1]
            kind, targets = ends.get(last.pc, ("plain", ()))
            inside = tuple(starts) if kind == "anywhere" else tuple(t for t in targets if 0 <= t < size)
            blocks.append(Block(start, end, last, kind if end < size or kind != "plain" else "exit", inside))
        return blocks

    def _leaving(
        self, instruction: Instruction, forks: Mapping[str, set[int]]
    ) -> tuple[str, tuple[int, ...]]:
        base, *modifiers = instruction.opcode.split(".")
        if instruction.pc in self.sites:
            return "site", ()
        if base in _EXITS:
            return "exit", ()
        if base == "RET":
            return "return", ()
        target = _address(instruction.operands[-1]) if instruction.operands else None
        if base in _BRANCHES or base == "CALL":
            if target is None:
                return "anywhere", ()
            return "call" if base == "CALL" else "branch", (target,)
        if base in _INDIRECT:
            return "anywhere", ()
        if base == "WARPSYNC" and "COLLECTIVE" in modifiers and target is not None:
            return "fork", (target,)
        if base == "BSYNC" and forks.get(instruction.operands[-1]):
            return "fork", tuple(sorted(forks[instruction.operands[-1]]))
        return "plain", ()

    def _late_reconvergence(self) -> dict[str, set[int]]:
        """By barrier, the targets of BSSY that do not simply lie behind a BSYNC of the same barrier.

        BSYNC goes on where its BSSY said. Compilers put that right behind it; where not, both follow.
        """
        found: dict[str, set[int]] = {}
        for instruction in self._listing:
            if not instruction.opcode.startswith("BSSY"):
                continue
            barrier, target = instruction.operands[0], _address(instruction.operands[-1])
            if target is not None and not self._is_behind_sync(target, barrier):
                found.setdefault(barrier, set()).add(target)
        return found

    def _is_behind_sync(self, target: int, barrier: str) -> bool:
        index = target // BYTES_PER_INSTRUCTION - 1
        if not 0 <= index < len(self._listing):
            return False
        before = self._listing[index]
        return before.opcode.startswith("BSYNC") and before.operands == (barrier,)

    def _ancestors(self, starts: set[int]) -> frozenset[int]:
        predecessors: dict[int, list[int]] = {}
        for block in self.blocks.values():
            for successor in block.successors:
                predecessors.setdefault(successor, []).append(block.start)
        return _closure(starts, lambda start: predecessors.get(start, ()))

    # --- effects ------------------------------------------------------------------------------

    @cached_property
    def _names(self) -> frozenset[str]:
        return names_in(self._listing)

    def _all_effects(self, start: int) -> tuple[Effect, ...]:
        if start not in self._decoded:
            first, end = start // BYTES_PER_INSTRUCTION, self.blocks[start].end // BYTES_PER_INSTRUCTION
            effects = (effect_of(instruction, self._names) for instruction in self._listing[first:end])
            self._decoded[start] = tuple(effect for effect in effects if effect.writes)
        return self._decoded[start]

    @cached_property
    def _relevant(self) -> dict[int, tuple[Effect, ...]]:
        kept = sorted(self.before_sites)
        writers: dict[str, list[Effect]] = {}
        for start in kept:
            for effect in self._all_effects(start):
                for name in effect.writes:
                    writers.setdefault(name, []).append(effect)
        conditions = (c for start in kept for c in branch_condition(self.blocks[start].last) if c is not None)
        needed = _closure(
            {name for name, _ in conditions},
            lambda name: (
                read for effect in writers.get(name, ()) if effect.evaluate for read in effect.reads
            ),
        )
        return {
            start: tuple(effect for effect in self._all_effects(start) if effect.writes & needed)
            for start in kept
        }


_Node = TypeVar("_Node")


def _closure(starts: Iterable[_Node], following: Callable[[_Node], Iterable[_Node]]) -> frozenset[_Node]:
    found = set(starts)
    todo = list(found)
    while todo:
        for node in following(todo.pop()):
            if node not in found:
                found.add(node)
                todo.append(node)
    return frozenset(found)


def _address(text: str) -> int | None:
    return int(text, 16) if text.startswith("0x") else None
