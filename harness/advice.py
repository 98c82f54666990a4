"""Remarks about a compiled cell that fail nothing by themselves.

Each is a plain sentence with the numbers it rests on. Pure.
"""

from __future__ import annotations

import re

from harness.model import Advice, Case, CompileOutcome, Inspection

KINDS = ("occupancy_missed", "hint_ignored", "spills", "slow_compile")

SLOW_COMPILE_SECONDS = 5.0

_RANK = re.compile(r"^UTMALDG\b.*?\.([2-5])D\b")


def advise(
    case: Case,
    compile: CompileOutcome | None,
    inspection: Inspection | None,
    slow_seconds: float = SLOW_COMPILE_SECONDS,
) -> tuple[Advice, ...]:
    """Every remark that applies; `slow_seconds` is the compile time above which one is slow."""
    found: list[Advice | None] = []
    if inspection is not None:
        found += [
            _occupancy_missed(case, inspection),
            _hint_ignored(case, inspection),
            _spills(inspection),
        ]
    if compile is not None and compile.status == "ok":
        found.append(_slow_compile(compile, slow_seconds))
    return tuple(remark for remark in found if remark is not None)


def _occupancy_missed(case: Case, inspection: Inspection) -> Advice | None:
    """What the compiler spent on registers or shared memory keeps an SM from the CTAs asked for.

    Where the thread count alone bounds an SM, no choice of registers could have done better.
    """
    asked, got = case.hints.occupancy, inspection.ctas_per_sm
    if asked is None or got is None or got >= asked:
        return None
    if {"warps", "CTAs"} & set(inspection.limited_by.split(", ")):
        return None
    return Advice(
        "occupancy_missed", f"asked for {asked} CTAs per SM, {_limit(inspection)} {got or 'not even one'}"
    )


def _limit(inspection: Inspection) -> str:
    """What bounds the CTAs of an SM, each resource with its amount, and a verb."""
    shared = inspection.shared_bytes + inspection.dynamic_shared_bytes
    amounts = {
        "registers": f"{inspection.registers} registers",
        "shared memory": f"{shared} bytes of shared memory",
        "warps": f"{inspection.threads} threads a CTA",
        "CTAs": "the architecture's own limit",
        "barriers": "barriers",
    }
    limits = [amounts.get(name, name) for name in inspection.limited_by.split(", ") if name]
    if not limits:
        return "the resources allow"
    alone = limits == [amounts["CTAs"]]
    return f"{' and '.join(limits)} allow{'s' * alone}"


def _hint_ignored(case: Case, inspection: Inspection) -> Advice | None:
    """Only tensor loads of rank 2 and more count against `allow_tma=False`.

    The knob speaks of a kernel's main tile load; one-dimensional loads (a weight vector) and stores
    have hints of their own, so their TMA instructions say nothing about it. The reverse is never
    reported: permission to use TMA is not a request.
    """
    if case.knob("allow_tma") is not False:
        return None
    loads = {opcode: count for opcode, count in sorted(inspection.tma.items()) if _RANK.match(opcode)}
    if not loads:
        return None
    listed = ", ".join(f"{count} {opcode}" for opcode, count in loads.items())
    return Advice("hint_ignored", f"allow_tma=False, yet the machine code loads tiles by TMA ({listed})")


def _spills(inspection: Inspection) -> Advice | None:
    spills, stack = inspection.spill_instructions or 0, inspection.stack_bytes
    if not spills and not stack:
        return None
    parts = [f"{spills} spill instructions"] if spills else []
    parts += [f"{stack} bytes of stack a thread"] if stack else []
    return Advice("spills", f"registers do not suffice: {' and '.join(parts)}")


def _slow_compile(compile: CompileOutcome, slow_seconds: float) -> Advice | None:
    """CPU seconds where they were measured: they do not grow with the load of the machine."""
    seconds = compile.cpu_seconds or compile.wall_seconds
    if seconds <= slow_seconds:
        return None
    shares = sorted(compile.usage, key=lambda usage: -usage.cpu_seconds)
    listed = ", ".join(f"{u.name} {u.cpu_seconds:.1f} s" for u in shares if u.cpu_seconds >= 0.1)
    return Advice("slow_compile", f"compiling took {seconds:.1f} s" + (f" ({listed})" if listed else ""))
