"""Execution as a stage: compiled device cells in, judged device cells out.

A device cell stands on the compile of the same case, toolchain and architecture. Where that gave
no cubin, its verdict is the device cell's too; where no GPU here fits, the cell is skipped and says
which GPU or driver is missing.

Device time means something only where nothing else runs on the GPU. So where it is asked for, everything
runs untimed first, and what passed is measured afterwards, alone: one process, no spares starting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.execute import Gpu, Launch, Observation, PoolOptions, execute, judge_run
from harness.execute.device import NoDevice, find
from harness.execute.jit import JitTrees, NoJit, jit_options, no_trees
from harness.execute.launches import launch_of, nothing_to_launch
from harness.execute.match import pick
from harness.execute.protocol import Outcome, Stage
from harness.execute.protocol import Timeouts as StageTimeouts
from harness.inspect import CubinError, Disassembler, DisassemblyError
from harness.inspect.cubin import read_cubin
from harness.inspect.lines import line_at
from harness.judge import judge_skipped
from harness.kernels import get
from harness.matrix.value import Timeouts
from harness.model import Cell, CellResult, Device, Inspection, Judgement, Toolchain, Verdict
from harness.process import Supervisor

Report = Callable[[CellResult], None]
Ready = tuple[Cell, CellResult, Path]
"""A device cell, what compiling it came to, and its cubin."""


def static_key(cell: Cell) -> str:
    """The id of the compile that a device cell stands on."""
    return replace(cell, device=None).id


def run_on_devices(
    supervisor: Supervisor,
    cells: Sequence[Cell],
    static: Mapping[str, CellResult],
    cubins: Callable[[str], Path | None],
    report: Report,
    *,
    timeouts: Timeouts,
    options: PoolOptions,
    timed: bool = False,
    base: Path | None = None,
    disassembler: Disassembler | None = None,
    jit: JitTrees = no_trees,
) -> None:
    """Run every device cell and report each exactly once.

    `static` maps `static_key` to what compiling came to, `cubins` a SHA-256 to the file; `jit` finds the
    toolchains of cases that cuda.tile launches. After Ctrl-C everything unfinished is reported
    before KeyboardInterrupt goes on.
    """
    try:
        gpus, absent = find(), None
    except NoDevice as reason:
        gpus, absent = (), str(reason)
    by_device: dict[Device, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.device is not None:
            by_device[cell.device].append(cell)
    for device, members in by_device.items():
        fitting, mismatch = pick(device, gpus) if gpus else ((), absent)
        ready: list[Ready] = []
        for cell in members:
            known = static.get(static_key(cell))
            sha256 = known.compile.cubin_sha256 if known and known.compile else None
            path = cubins(sha256) if sha256 else None
            if known is None:
                report(CellResult(cell, judge_skipped(cell, "it was not compiled")))
            elif path is None or known.inspection is None:
                report(replace(known, cell=cell))
            elif why := nothing_to_launch(cell.case, get(cell.case.kernel, base), _multiprocessors(fitting)):
                report(replace(known, cell=cell, judgement=judge_skipped(cell, why)))
            elif not fitting:
                report(replace(known, cell=cell, judgement=judge_skipped(cell, _absent(device, mismatch))))
            else:
                ready.append((cell, known, path))
        for toolchain, group in _by_engine(ready).items():
            try:
                chosen = options if toolchain is None else jit_options(options, jit(toolchain))
            except NoJit as why:
                for cell, known, _ in group:
                    report(replace(known, cell=cell, judgement=judge_skipped(cell, str(why))))
                continue
            stage = _Stage(group, fitting, timeouts, timed, base, disassembler, report)
            try:
                execute(supervisor, stage.launches(), fitting, stage.observed, chosen)
                if timed:
                    alone = replace(chosen, workers=1, waiting=0, spares=0, isolation="worker", confirm=False)
                    execute(supervisor, stage.timed_launches(), fitting, stage.measured, alone)
            finally:
                stage.report_untimed()


def _by_engine(ready: Sequence[Ready]) -> dict[Toolchain | None, list[Ready]]:
    """Cells that one kind of process can run: all cubins (None), and what each toolchain launches itself."""
    groups: dict[Toolchain | None, list[Ready]] = defaultdict(list)
    for one in ready:
        cell = one[0]
        groups[cell.toolchain if cell.case.engine == "jit" else None].append(one)
    return groups


def _multiprocessors(gpus: Sequence[Gpu]) -> int | None:
    """Of the first, which is like the others; None without any."""
    return gpus[0].sm_count if gpus else None


def _absent(device: Device, mismatch: str | None) -> str:
    wanted = device.gpu + (f" with driver {device.driver}" if device.driver else "")
    return f"{mismatch or 'no GPU here fits'}; device {device.name} needs {wanted}"


def _with_prediction(judgement: Judgement, static: CellResult) -> Judgement:
    """A hang that the machine code foretold is laid at the door of the component the proof names, and
    its evidence leads to the prediction: cell, signature and why that component."""
    foretold = static.judgement
    if judgement.verdict is not Verdict.HANG or foretold.verdict is not Verdict.PREDICTED_DEADLOCK:
        return judgement
    prediction = {
        "verdict": str(foretold.verdict),
        "signature": foretold.signature,
        "cell": static.cell.id,
        "component": foretold.component,
        "blame": foretold.evidence.get("blame"),
    }
    books = judgement.evidence.get("static", {})
    return replace(
        judgement,
        component=foretold.component,
        summary=f"{judgement.summary}; foretold from its machine code ({foretold.verdict})",
        evidence={**judgement.evidence, "static": {**books, **prediction}},
    )


class _Stage:
    """The launches of one device, and what becomes of their observations."""

    def __init__(
        self,
        ready: Sequence[Ready],
        gpus: tuple[Gpu, ...],
        timeouts: Timeouts,
        timed: bool,
        base: Path | None,
        disassembler: Disassembler | None,
        report: Report,
    ) -> None:
        self._ready = ready
        self._known = {cell.id: (cell, known, path) for cell, known, path in ready}
        self._sm_count = gpus[0].sm_count
        self._timeouts = StageTimeouts(
            load=timeouts.load,
            launch=timeouts.launch,
            read_back=timeouts.read_back,
            compare=timeouts.compare,
        )
        self._timed = timed
        self._base = base
        self._disassembler = disassembler
        self._report = report
        self._to_time: dict[str, tuple[Launch, Observation]] = {}

    def launches(self) -> Iterator[Launch]:
        for cell, known, path in self._ready:
            assert known.compile is not None and known.compile.cubin_sha256 and known.inspection
            kernel = get(cell.case.kernel, self._base)
            yield launch_of(
                cell,
                kernel,
                known.inspection,
                path,
                known.compile.cubin_sha256,
                self._sm_count,
                self._timeouts,
            )

    def observed(self, launch: Launch, observation: Observation) -> None:
        """Report what a case came to, unless it is still to be timed."""
        if self._timed and observation.outcome is Outcome.DONE and not observation.looks_bad:
            self._to_time[launch.case] = (launch, observation)
        else:
            self._judge(launch, observation)

    def timed_launches(self) -> Iterator[Launch]:
        """What passed, once more: its answers are known to be right, so only its time is wanted."""
        for launch, _ in list(self._to_time.values()):
            yield replace(launch, timed=True, repeats=1, reference=None, relations=())

    def measured(self, launch: Launch, timed: Observation) -> None:
        """Lend the time to the observation that passed. A kernel that fails only now is flaky."""
        original, passed = self._to_time.pop(launch.case)
        if timed.looks_bad:
            self._judge(original, replace(timed, attempts=(passed.to_json(),)))
        elif timed.outcome is Outcome.DONE:
            seconds = {**passed.seconds, Stage.TIMING.value: timed.seconds.get(Stage.TIMING.value, 0.0)}
            self._judge(original, replace(passed, timing=timed.timing, seconds=seconds))
        else:
            self._judge(original, passed)

    def report_untimed(self) -> None:
        """What an interrupt left unmeasured is right all the same."""
        for launch, passed in self._to_time.values():
            self._judge(launch, passed)
        self._to_time.clear()

    def _judge(self, launch: Launch, observation: Observation) -> None:
        cell, known, path = self._known[launch.case]
        judgement = judge_run(
            observation, known.inspection, self._machine_code(path, known.inspection, observation)
        )
        judgement = _with_prediction(judgement, known)
        self._report(
            replace(
                known,
                cell=cell,
                judgement=replace(judgement, advice=(*known.judgement.advice, *judgement.advice)),
                observation=observation.to_json(),
                seconds={**known.seconds, **observation.seconds},
            )
        )

    def _machine_code(
        self, path: Path, inspection: Inspection | None, observation: Observation
    ) -> dict[int, tuple[str, str | None]] | None:
        """Instructions by byte offset, where warps were seen standing at some."""
        attempts = [observation, *(Observation.from_json(a) for a in observation.attempts)]
        if self._disassembler is None or inspection is None:
            return None
        if not any(a.evidence and a.evidence.warps for a in attempts):
            return None
        try:
            cubin = read_cubin(path.read_bytes(), inspection.symbol)
            listing, lines = self._disassembler.listing(cubin), cubin.source_lines()
        except (CubinError, DisassemblyError, OSError):
            return None
        return {i.pc: (str(i), line_at(lines, i.pc, {})) for i in listing}
