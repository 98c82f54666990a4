"""Which toolchain a reduced kernel should stay good on, by what a run has found. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import InvalidVersion, Version

from harness.model import CellResult, Toolchain
from harness.oracle import Answer, Oracle


def nearest_good(results: Iterable[CellResult], bad: CellResult, oracle: Oracle) -> Toolchain | None:
    """The toolchain closest in version that the same case and architecture are good on, with the same
    frontend unless that is to blame. Of two as close the newer one.
    """
    blamed = bad.judgement.component == "cuda-tile"
    chains = {
        result.cell.toolchain: oracle.answer(result) is Answer.GOOD and result.verdict.is_good
        for result in results
        if result.cell.device is None
        and (result.cell.arch, result.cell.case) == (bad.cell.arch, bad.cell.case)
        and (blamed or result.cell.toolchain.cuda_tile == bad.cell.toolchain.cuda_tile)
    }
    mine = bad.cell.toolchain
    versions = sorted({_version(chain) for chain in (*chains, mine)})
    frontends = sorted({Version(chain.cuda_tile) for chain in (*chains, mine)})
    here = versions.index(_version(mine))

    def distance(chain: Toolchain) -> tuple[int, int, int, str]:
        steps = versions.index(_version(chain)) - here
        releases = frontends.index(Version(chain.cuda_tile)) - frontends.index(Version(mine.cuda_tile))
        return abs(steps), -steps, abs(releases), chain.name

    return min(
        (chain for chain, good in chains.items() if good and chain != mine), key=distance, default=None
    )


def _version(chain: Toolchain) -> Version:
    try:
        return Version(chain.cuda_toolkit)
    except InvalidVersion:
        return Version("0")
