"""What two sightings of one fault share, and what tells a repro's bad cells from good ones."""

from __future__ import annotations

import re
from pathlib import Path

from harness.model import Advice, CellResult
from harness.oracle import Oracle, recall_oracle
from harness.repro.spec import Repro, ReproError, load_all
from harness.signature import is_mute, normalise


def identity(result: CellResult, oracle: Oracle) -> str:
    """What two sightings of one fault share: the signature, or the wording of the remark without numbers.

    A signature that says nothing of the fault behind it is told with the kernel. A number that a reader
    chose to look at (registers, seconds) is told by the metric and the case.
    """
    kind = str(oracle)
    signature = result.judgement.signature
    if kind.startswith(("signature=", "verdict=")) and signature is not None:
        kernel = result.cell.case.kernel.rpartition(":")[2]
        return f"{signature} of {kernel}" if is_mute(signature) else signature
    remark = remark_of(result, oracle)
    if remark is not None:
        return f"{remark.kind}/{normalise(remark.text)}"
    metric = re.split(r"[<>=!]", kind, maxsplit=1)[0]
    case = result.cell.case
    size = "x".join(map(str, case.shape))
    told = " ".join(filter(None, [case.kernel.rpartition(":")[2], size, case.dtype]))
    return f"{metric}/{normalise(kind)} of {told}"


def remark_of(result: CellResult, oracle: Oracle) -> Advice | None:
    """The advice the oracle is about, if it is about advice."""
    _, equals, kind = str(oracle).partition("advice=")
    found = (remark for remark in result.judgement.advice if equals and remark.kind == kind)
    return next(found, None)


SHIPPED = Path(__file__).parents[2] / "repros"
"""The lab's own repros, where it runs from a checkout."""


def shipped(known: str) -> Repro | None:
    """The repro of this finding that the lab ships, if it does."""
    try:
        return duplicate(SHIPPED, known) if SHIPPED.is_dir() else None
    except ReproError:
        return None


def duplicate(repros: Path, known: str) -> Repro | None:
    """The repro that is about this finding already, if there is one."""
    return next((repro for repro in load_all(repros) if repro.identity == known), None)


def oracle_of(repro: Repro) -> Oracle:
    """What tells bad from good. Raises OracleError."""
    return recall_oracle(repro.oracle, repro.identity)
