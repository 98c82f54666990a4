"""Cubins kept with the tests, what others say of them, and a cache in memory.

`cubins/*.cubin.xz` are real: the persistent RMSNorm kernel, bf16, compiled by the named toolkit for the named
architecture (`spilled-index` has tile 2×16384, `two-kernels` is hand-written PTX). Paths inside are made
neutral. `pool_kernels.zip` holds hand-written kernels, PTX and cubin (ptxas 13.4.92, sm_90a), each
asking one question of the register pool. `pool_kernels.csv` says what an H200 (driver 580.159.04) answered:
whether the kernel ended within 2.5 s, and which warps wrote their mark at the end. One CTA was launched, or
2,000 where the name says so. `listings.json.xz` is what nvdisasm 13.5.37 made of them all; run this file
to make it again.
"""

from __future__ import annotations

import csv
import json
import lzma
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.inspect import Disassembler
from harness.inspect.cubin import read_cubin
from harness.process import Supervisor

HERE = Path(__file__).parent


def recorded(name: str) -> bytes:
    return lzma.decompress((HERE / "cubins" / f"{name}.cubin.xz").read_bytes())


@dataclass(frozen=True)
class Measured:
    """`outcome` is "ends", "hang" or "illegal instruction"."""

    kernel: str
    threads: int
    outcome: str
    ended: tuple[int, ...]

    @property
    def cubin(self) -> bytes:
        with zipfile.ZipFile(HERE / "pool_kernels.zip") as archive:
            return archive.read(f"{self.kernel}.cubin")


def measured() -> list[Measured]:
    with open(HERE / "pool_kernels.csv", newline="") as file:
        return [
            Measured(
                row["kernel"],
                int(row["threads"]),
                row["outcome"],
                tuple(map(int, row["warps_that_ended"].split())),
            )
            for row in csv.DictReader(file)
        ]


class MemoryMemo:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}

    def recall(self, kind: str, key: str) -> dict[str, Any] | None:
        return self.kept.get((kind, key))

    def remember(self, kind: str, key: str, value: dict[str, Any]) -> None:
        self.kept[kind, key] = value


class RecordedMemo(MemoryMemo):
    """Knows all listings from the start, whichever nvdisasm is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.listings: dict[str, dict[str, Any]] = json.loads(lzma.decompress(LISTINGS.read_bytes()))

    def recall(self, kind: str, key: str) -> dict[str, Any] | None:
        known = self.listings.get(key.rpartition(" ")[0]) if kind == "sass" else None
        return known or super().recall(kind, key)


LISTINGS = HERE / "listings.json.xz"


def record_listings() -> None:
    """Ask the installed nvdisasm about every cubin here that holds one kernel."""
    names = sorted(path.name.removesuffix(".cubin.xz") for path in (HERE / "cubins").glob("*.xz"))
    cubins = [recorded(name) for name in names if not name.startswith("two-kernels")]
    memo = MemoryMemo()
    with Supervisor() as supervisor:
        disassembler = Disassembler(supervisor, memo)
        for data in (*cubins, *(case.cubin for case in measured())):
            disassembler.listing(read_cubin(data))
    kept = {key.rpartition(" ")[0]: value for (_, key), value in memo.kept.items()}
    text = json.dumps(kept, separators=(",", ":")).encode()
    LISTINGS.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    record_listings()
