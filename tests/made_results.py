"""Made-up results for tests of judging, grouping, recording and reporting.

`lab_run` is the shape of a whole run: what the compilers answer to the persistent RMSNorm kernel, in
small. Nothing in it is measured; the real answers are tested with the real compilers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.judge import judge_compile, judge_infra
from harness.model import (
    Array,
    Case,
    Cell,
    CellResult,
    CompileOutcome,
    Device,
    Hints,
    Inspection,
    PoolAnswer,
    PoolBooks,
    PoolSite,
    Toolchain,
    TraceOutcome,
    WarpGroup,
)

TOOLKITS = {"13.2.2": "13.2.86", "13.3.1": "13.3.36", "13.4.3": "13.4.92", "13.5.0": "13.5.37"}
REFUSAL = "tileiras: for the --gpu-name option: Cannot find option named 'sm_90'!"


class Unreadable:
    """What no report can tell; nothing of ours makes it."""

    def __str__(self) -> str:
        raise RuntimeError("planted")

    __repr__ = __str__


def no_fault_of_a_version(make: Maker, kind: str) -> CellResult:
    """An "infra_error", a kernel's file that fails at its "import", text of a kernel that is refused
    at its "trace", or parameters that are, at the "signature"."""
    cell = make.cell(kernel="own/k.py:k")
    if kind == "import":
        trace = TraceOutcome("crash", error_type="exit code 7", stage="import")
        return CellResult(cell, judge_compile(cell, trace, None, None), trace=trace)
    if kind in ("trace", "signature"):
        return make.refused(cell, kind)
    return CellResult(cell, judge_infra("planted"))


class Maker:
    """Builds cells, outcomes and results; every argument has a plain default."""

    def cell(
        self,
        toolkit: str = "13.3.1",
        arch: str = "sm_90",
        occupancy: int | None = 16,
        allow_tma: bool = False,
        cuda_tile: str = "1.5.0",
        device: Device | None = None,
        shape: tuple[int, ...] = (16384, 512),
        kernel: str = "rmsnorm.static_persistent",
    ) -> Cell:
        case = Case(
            kernel,
            shape,
            "bfloat16",
            Hints(occupancy=occupancy),
            knobs=(("allow_tma", allow_tma), ("latency", 10)),
        )
        toolchain = Toolchain(f"tile{cuda_tile}-ctk{toolkit}", cuda_tile, toolkit)
        return Cell(toolchain, arch, case, device)

    def own_cell(self, rank: int) -> Cell:
        """Of a reader's own kernel, whose one array has this rank."""
        x = Array("x", "float32", (None,) * rank, (1,) * rank, (None,) * rank, (1,) * rank)
        cell = self.cell(kernel="own/k.py:k", shape=())
        return replace(cell, case=replace(cell.case, parameters=(x,)))

    def trace(self, **changes: object) -> TraceOutcome:
        good = TraceOutcome("ok", bytecode_sha256="b" * 64, bytecode_version="13.2", wall_seconds=0.08)
        return replace(good, **changes)

    def refused(self, cell: Cell, stage: str) -> CellResult:
        """What cuda.tile says of the reader's own mistake."""
        trace = TraceOutcome("error", error_type="TileTypeError", message="cannot add", stage=stage)
        return CellResult(cell, judge_compile(cell, trace, None, None), trace=trace)

    def compiled(self, **changes: object) -> CompileOutcome:
        good = CompileOutcome(
            "ok", exit_code=0, wall_seconds=0.5, cpu_seconds=0.45, deadline_seconds=60, cubin_sha256="c" * 64
        )
        return replace(good, **changes)

    def failed(self, exit_code: int | None = 5, stderr: str = "", **changes: object) -> CompileOutcome:
        return self.compiled(
            status="failed", exit_code=exit_code, stderr=stderr, cubin_sha256=None, **changes
        )

    def books(
        self, answer: PoolAnswer = PoolAnswer.IMPOSSIBLE, launch: int = 24, grow: int = 32
    ) -> PoolBooks:
        source = "rmsnorm.py:15"
        sites = (
            PoolSite("alloc", 0x8D80, grow, f"USETMAXREG.TRY_ALLOC.CTAPOOL UP0, {grow:#x} ;", source),
            PoolSite("alloc", 0x8FB0, grow, f"USETMAXREG.TRY_ALLOC.CTAPOOL UP0, {grow:#x} ;", source),
        )
        groups = (WarpGroup((4,), (0x8D80,), (0x8D80,)), WarpGroup((5, 6, 7), (0x8FB0,), (0x8FB0,)))
        proof = (
            f"The kernel starts with {launch} registers × 256 threads handed out and an empty pool.",
            f"Warps 4-7 wait until they hold {grow} registers a thread: 4 × {grow - launch} × 32 more.",
            "No warp gives registers back.",
        )
        return PoolBooks(answer, launch, 256, sites, groups, 4 * (grow - launch) * 32, 0, 0, proof)

    def inspection(self, registers: int = 255, ctas: int | None = 1, **changes: object) -> Inspection:
        plain = Inspection(
            "static_persistent",
            "sm_90",
            registers,
            256,
            0,
            6224,
            code_bytes=42368,
            ctas_per_sm=ctas,
            limited_by="registers",
        )
        return replace(plain, **changes)

    def deadlocked(self, **changes: object) -> Inspection:
        requests = (".maxnreg 16", *("setmaxnreg.inc.sync.aligned.u32 \t32;",) * 2)
        deadly = self.inspection(24, 8, limited_by="warps", books=self.books(), ptx=requests)
        return replace(deadly, **changes)

    def result(
        self,
        cell: Cell | None = None,
        inspection: Inspection | None = None,
        compile: CompileOutcome | None = None,
        trace: TraceOutcome | None = None,
        control: CompileOutcome | None = None,
    ) -> CellResult:
        cell = cell or self.cell()
        trace = trace or self.trace()
        compile = compile or self.compiled()
        if compile.status == "ok" and inspection is None:
            inspection = self.inspection()
        version = TOOLKITS.get(cell.toolchain.cuda_toolkit, cell.toolchain.cuda_toolkit)
        return CellResult(
            cell,
            judge_compile(cell, trace, compile, inspection, control=control),
            components={"tileiras": version, "nvvm": version, "ptxas": version},
            trace=trace,
            compile=compile,
            inspection=inspection,
        )

    def answer(self, cell: Cell) -> CellResult:
        """What a compiler of this version might say to this cell."""
        toolkit, occupancy = cell.toolchain.cuda_toolkit, cell.case.hints.occupancy
        if toolkit == "13.2.2" and cell.arch == "sm_90":
            return self.result(cell, compile=self.failed(1, REFUSAL))
        deadly = occupancy == 16 and cell.case.knob("allow_tma") is False
        if deadly and toolkit in ("13.2.2", "13.3.1"):
            return self.result(cell, self.deadlocked(arch=cell.arch))
        registers = {None: 255, 2: 128, 8: 32, 16: 255 if toolkit <= "13.3.1" else 32}[occupancy]
        ctas = 2048 // 256 if registers == 32 else 65536 // (-(-registers // 8) * 8) // 256
        limit = "warps" if registers == 32 else "registers"
        seconds = 8.4 if occupancy is None and toolkit == "13.3.1" else 0.5
        compile = self.compiled(wall_seconds=seconds, cpu_seconds=seconds)
        return self.result(cell, self.inspection(registers, ctas, arch=cell.arch, limited_by=limit), compile)

    def cells(self) -> Iterator[Cell]:
        for cuda_tile in ("1.5.0", "1.7.0"):
            for toolkit in TOOLKITS:
                for arch in ("sm_90", "sm_100", "sm_120"):
                    for occupancy in (None, 2, 8, 16):
                        for tma in (True, False):
                            yield self.cell(toolkit, arch, occupancy, tma, cuda_tile)
