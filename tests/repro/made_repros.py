"""Made-up repros for tests; nothing in them is measured."""

from __future__ import annotations

from pathlib import Path

from harness.model import Array, Case, Constant, Hints, Toolchain
from harness.repro.spec import Kind, Place, Repro, Status

BAD = Toolchain("tile1.5.0-ctk13.3.1", "1.5.0", "13.3.1")
GOOD = Toolchain("tile1.5.0-ctk13.4.3", "1.5.0", "13.4.3")
IDENTITY = "predicted_deadlock/tileiras/register pool: growth is never paid"


def made(folder: Path, **changes: object) -> Repro:
    x = Array("x", "bfloat16", (None, None), (16, 16), (None, 1), (8, 1))
    parameters = (x, Constant("TILE", 16))
    hints = Hints(occupancy=16)
    case = Case("repro.py:k", (), "bfloat16", hints, (("TILE", 16),), parameters=parameters)
    given = {
        "folder": folder,
        "kind": Kind.CELL,
        "title": "The kernel never ends",
        "status": Status.FIXED,
        "link": "",
        "summary": "Warps wait for registers that nobody gives back.",
        "expected": "It ends.",
        "identity": IDENTITY,
        "oracle": "signature",
        "verdict": "predicted_deadlock",
        "component": "tileiras",
        "origin": 'tile1.5.0-ctk13.3.1 sm_90 k "quoted"',
        "observed": "",
        "deadline": 60.0,
        "bytecode_version": "13.2",
        "case": case,
        "places": (
            Place(True, BAD, (), ("sm_90", "sm_120")),
            Place(False, GOOD, (), ("sm_90",)),
        ),
    }
    return Repro(**{**given, **changes})  # type: ignore[arg-type]
