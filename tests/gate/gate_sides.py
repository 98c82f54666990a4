"""Made-up sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from made_results import Maker

from harness.gate import Decision, Pair, compare, decide
from harness.gate.compare import Side, question
from harness.gate.noise import Measured
from harness.matrix import GateRules
from harness.model import CellResult, Device, Judgement, Verdict

H200 = Device("h200", "H200", "sm_90", ">=580")


class Sides:
    """Builds results and compares them. Toolchains are paired by their cuda-tile."""

    def __init__(self, make: Maker) -> None:
        self.make = make

    def said(
        self, verdict: Verdict, toolkit: str, signature: str | None = None, **cell: object
    ) -> CellResult:
        """A result of which nothing but the verdict is known."""
        named = signature or (None if verdict.is_good or verdict.is_unknown else f"{verdict}/tileiras/x")
        return CellResult(self.make.cell(toolkit, **cell), Judgement(verdict, named, f"says {verdict}"))

    def ran(
        self,
        toolkit: str,
        median_us: float = 36.0,
        *,
        spread_us: float = 2.0,
        samples_us: Sequence[float] = (),
        bits: str = "0",
        cubin: str | None = None,
        driver: str = "580.1",
        **cell: object,
    ) -> CellResult:
        """A device cell that passed and was timed."""
        static = self.make.answer(self.make.cell(toolkit, **{"occupancy": None, **cell}))
        timing = {"median_us": median_us, "spread_us": spread_us, "samples_us": list(samples_us)}
        return replace(
            static,
            cell=replace(static.cell, device=H200),
            judgement=Judgement(Verdict.PASS, None, "y within 1 ULP (bound 2)"),
            compile=replace(static.compile, cubin_sha256=cubin or toolkit),
            observation={
                "timing": timing,
                "gpu": {"driver": driver},
                "outputs": [{"name": "y", "sha256": bits}],
            },
        )

    def side(self, results: Iterable[CellResult], timings: dict[str, list[Measured]] | None = None) -> Side:
        keyed = {question(r.cell, r.cell.toolchain.cuda_tile): r for r in results}
        named = {k: (timings or {}).get(r.cell.id, ()) for k, r in keyed.items()}
        return Side(keyed, named)

    def pairs(
        self, before: Iterable[CellResult], after: Iterable[CellResult], rules: GateRules | None = None
    ) -> tuple[Pair, ...]:
        return compare(self.side(before), self.side(after), rules or GateRules())

    def decide(
        self, before: Iterable[CellResult], after: Iterable[CellResult], rules: GateRules | None = None
    ) -> Decision:
        rules = rules or GateRules()
        return decide(
            self.pairs(before, after, rules),
            rules,
            "old",
            "new",
            explain=lambda result: f"python -m harness explain {result.cell.id}",
        )
