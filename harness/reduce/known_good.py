"""Which toolchain a reduced kernel should stay good on, by what a run has found. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import InvalidVersion, Version

from harness.model import CellResult, Toolchain
from harness.oracle import Answer, Oracle


def nearest_good(results: Iterable[CellResult], bad: CellResult, oracle: Oracle) -> Toolchain | None:
    """The toolchain closest in version that the same case, architecture and frontend are good on.

    Of two as close the newer one.
    """
    chains = {
        result.cell.toolchain: oracle.answer(result) is Answer.GOOD and result.verdict.is_good
        for result in results
        if result.cell.device is None
        and (result.cell.arch, result.cell.case) == (bad.cell.arch, bad.cell.case)
        and result.cell.toolchain.cuda_tile == bad.cell.toolchain.cuda_tile
    }
    mine = bad.cell.toolchain
    versions = sorted({_version(chain) for chain in (*chains, mine)})
    here = versions.index(_version(mine))

    def distance(chain: Toolchain) -> tuple[int, int, str]:
        steps = versions.index(_version(chain)) - here
        return abs(steps), -steps, chain.name

    return min(
        (chain for chain, good in chains.items() if good and chain != mine), key=distance, default=None
    )


def _version(chain: Toolchain) -> Version:
    try:
        return Version(chain.cuda_toolkit)
    except InvalidVersion:
        return Version("0")
