"""What the cubin of a good compile tells: resources, or the proof of a deadlock and who asked for it."""

from __future__ import annotations

import re
from typing import Any

from harness.model import Inspection, Judgement, PoolAnswer, PoolBooks, Verdict
from harness.signature import signature

_SETMAXNREG = re.compile(r"setmaxnreg\.(inc|dec)\S*\s+(\d+)")


def judge_cubin(inspection: Inspection) -> Judgement:
    """Judge a cubin by its books alone: it compiles, or it can never finish."""
    books = inspection.books
    if books is not None and books.answer is PoolAnswer.IMPOSSIBLE:
        return _deadlock(inspection, books)
    resources = f"{inspection.registers} registers × {inspection.threads} threads"
    text = f"Compiles: {resources}"
    if inspection.ctas_per_sm is not None:
        text += f", {inspection.ctas_per_sm} CTA{'s' * (inspection.ctas_per_sm != 1)} per SM"
    evidence: dict[str, Any] = {
        "registers": inspection.registers,
        "threads": inspection.threads,
        "register_pool": str(books.answer) if books is not None else "not used",
    }
    if books is not None and books.answer is PoolAnswer.UNKNOWN:
        text += "; whether the register pool can always pay could not be decided"
        evidence["proof"] = list(books.proof)
    return Judgement(Verdict.COMPILES, None, text + ".", evidence=evidence)


def _deadlock(inspection: Inspection, books: PoolBooks) -> Judgement:
    component, why = _who_asked(inspection, books)
    grown = sorted({site.registers for site in books.sites if site.kind == "alloc"})
    wanted = " or ".join(map(str, grown))
    start = f"it starts with {books.launch_registers} registers a thread and an empty pool"
    if books.freed_at_most == 0:
        pattern = "register pool: growth is never paid, no warp gives registers back"
        rest = f"and no warp gives any back ({books.needed} needed, 0 freed)"
    else:
        pattern = "register pool: growth is never paid in full, warps give back too little"
        amounts = f"{books.needed} needed, at most {books.freed_at_most} freed"
        rest = f"and the others give back too little ({amounts})"
    text = f"Can never finish on a GPU: {start}, warps wait to grow to {wanted}, {rest}."
    evidence: dict[str, Any] = {
        "launch_registers": books.launch_registers,
        "threads": books.threads,
        "sites": [site.to_json() for site in books.sites],
        "needed": books.needed,
        "freed_at_most": books.freed_at_most,
        "proof": list(books.proof),
        "blame": why,
        "ptx": list(inspection.ptx),
    }
    name = signature(Verdict.PREDICTED_DEADLOCK, component, pattern)
    return Judgement(Verdict.PREDICTED_DEADLOCK, name, text, component, evidence)


def _who_asked(inspection: Inspection, books: PoolBooks) -> tuple[str | None, str]:
    """The component that made the unpayable request, and the reason to think so.

    ptxas assembles what it is handed. If the embedded PTX asks for the growth and ptxas dropped no
    shrinking, the fault was there before ptxas ran: in tileiras or in the libnvvm inside it, which
    one cubin cannot tell apart. Otherwise ptxas made it.
    """
    if not inspection.ptx:
        return None, "the cubin holds no PTX, so it cannot be told who asked for the registers"
    asked = [match.groups() for line in inspection.ptx for match in _SETMAXNREG.finditer(line)]
    grows = {int(count) for way, count in asked if way == "inc"}
    shrinks = {int(count) for way, count in asked if way == "dec"}
    dropped = shrinks - {site.registers for site in books.sites if site.kind == "dealloc"}
    if not grows:
        return "ptxas", "the PTX handed to ptxas asks for no growth, the machine code does"
    if dropped:
        listed = ", ".join(map(str, sorted(dropped)))
        return "ptxas", f"the PTX handed to ptxas shrinks warps to {listed}, the machine code does not"
    listed = ", ".join(map(str, sorted(grows)))
    paid = "with too little shrinking to pay for it" if shrinks else "with no shrinking to pay for it"
    return "tileiras", f"the PTX handed to ptxas already asks to grow to {listed} {paid}"
