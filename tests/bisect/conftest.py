"""Made-up compilers: what a version answers follows from its components by a rule a test gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from made_results import Maker

from harness.bisect.result import Probe
from harness.bisect.run import Bisection, Request, World
from harness.model import Cell, CellResult, Toolchain

TOOLKITS = {
    "13.1.0": "13.1.80 13.1.80 13.1.80",
    "13.2.0": "13.2.51 13.2.51 13.2.51",
    "13.2.2": "13.2.86 13.2.86 13.2.86",
    "13.3.0": "13.3.36 13.3.33 13.3.33",
    "13.3.1": "13.3.36 13.3.73 13.3.73",
    "13.4.1.0": "13.4.59 13.4.59 13.4.59",
    "13.4.2": "13.4.92 13.4.92 13.4.92",
    "13.4.3": "13.4.92 13.4.92 13.4.92",
    "13.5.0": "13.5.37 13.5.37 13.5.37",
}
NAMES = ("tileiras", "nvvm", "ptxas")
REFUSAL = "tileiras: for the --gpu-name option: Cannot find option named 'sm_90'!"

Rule = Callable[[dict[str, str], str], str]
"""(components, bytecode version) → bad | good | refused | other | broken."""


class Missing(Exception):
    """A toolchain that this world does not have."""


@dataclass
class MadeUp:
    """A world of made-up compilers, and what it was asked."""

    make: Maker
    rule: Rule
    asked: list[tuple[Toolchain, str | None]] = field(default_factory=list)
    heard: list[Probe] = field(default_factory=list)
    missing: frozenset[str] = frozenset()
    stop_after: int = 1000

    def components_of(self, toolchain: Toolchain) -> dict[str, str]:
        if toolchain.cuda_toolkit in self.missing:
            raise Missing(f"cuda-toolkit {toolchain.cuda_toolkit} is not in the store")
        own = dict(zip(NAMES, TOOLKITS[toolchain.cuda_toolkit].split(), strict=True))
        return {name: getattr(toolchain, name) or version for name, version in own.items()}

    def ask(self, cell: Cell, bytecode_version: str | None) -> CellResult:
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((cell.toolchain, bytecode_version))
        components = self.components_of(cell.toolchain)
        newest = min(".".join(components["tileiras"].split(".")[:2]), "13.4")
        version = bytecode_version or newest
        make = self.make
        match self.rule(components | {"cuda-tile": cell.toolchain.cuda_tile}, version):
            case "bad":
                result = make.result(cell, make.deadlocked())
            case "good":
                result = make.result(cell, make.inspection(32, 8))
            case "refused":
                result = make.result(cell, compile=make.failed(1, REFUSAL))
            case "broken":
                result = make.result(cell, compile=make.failed(), control=make.failed())
            case _:
                result = make.result(cell, compile=make.failed(1, "error: operand type mismatch"))
        trace = make.trace(bytecode_version=version, bytecode_sha256=version.replace(".", "") * 4)
        return replace(result, components=components, trace=trace)

    def bisection(
        self, toolkit: str = "13.3.1", original: CellResult | None = None, **request: object
    ) -> Bisection:
        world = World(
            self.ask,
            lambda over: TOOLKITS if over == "cuda-toolkit" else ("1.3.0", "1.4.0", "1.5.0", "1.6.0"),
            self.components_of,
            (Missing,),
        )
        cell = self.make.cell(toolkit)
        return Bisection(cell, original, Request(**request), world, self.heard.append)  # type: ignore[arg-type]


@pytest.fixture
def made_up(make: Maker) -> Callable[..., MadeUp]:
    return lambda rule, **settings: MadeUp(make, rule, **settings)
