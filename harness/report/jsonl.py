"""`results.jsonl`: one flat JSON object per cell, for scripts.

The fields are an interface: they are only ever added to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.legible import legible
from harness.model import (
    HINT_NAMES,
    Advice,
    Case,
    Cell,
    CellResult,
    CompileOutcome,
    Device,
    Hints,
    Inspection,
    Judgement,
    Toolchain,
    Verdict,
)
from harness.report.files import write_atomically
from harness.report.words import reported

FILE_NAME = "results.jsonl"


class ResultsError(Exception):
    """A results file cannot be read; the text names file, line and remedy."""


def row(result: CellResult) -> dict[str, Any]:
    """A result as a plain object. Registers and stack are per thread, shared memory per CTA."""
    cell, judgement = result.cell, result.judgement
    toolchain, case, inspection = cell.toolchain, cell.case, result.inspection
    pinned = {"tileiras": toolchain.tileiras, "nvvm": toolchain.nvvm, "ptxas": toolchain.ptxas}
    return {
        "id": cell.id,
        "kernel": case.kernel,
        "shape": list(case.shape),
        "dtype": case.dtype,
        "hints": case.settings,
        "layout": case.layout,
        "values": case.values,
        "seed": case.seed,
        "toolchain": toolchain.name,
        "cuda_tile": toolchain.cuda_tile,
        "cuda_toolkit": toolchain.cuda_toolkit,
        "cuda_tile_resolved": result.resolved.get("cuda_tile"),
        "cuda_toolkit_resolved": result.resolved.get("cuda_toolkit"),
        "components": {name: result.components.get(name) or version for name, version in pinned.items()},
        "arch": cell.arch,
        "device": cell.device.name if cell.device else None,
        "verdict": str(judgement.verdict),
        "signature": judgement.signature,
        "component": judgement.component,
        "summary": judgement.summary,
        "advice": [remark.to_json() for remark in judgement.advice],
        "resources": None
        if inspection is None
        else {
            "registers": inspection.registers,
            "threads": inspection.threads,
            "stack_bytes": inspection.stack_bytes,
            "shared_bytes": inspection.shared_bytes,
            "dynamic_shared_bytes": inspection.dynamic_shared_bytes,
            "ctas_per_sm": inspection.ctas_per_sm,
            "limited_by": inspection.limited_by,
            "tma": inspection.tma,
            "spill_instructions": inspection.spill_instructions,
        },
        "seconds": seconds(result),
        "kernel_sha256": result.kernel_sha256,
        "bytecode_sha256": result.trace.bytecode_sha256 if result.trace else None,
        "bytecode_version": result.trace.bytecode_version if result.trace else None,
        "cubin_sha256": result.compile.cubin_sha256 if result.compile else None,
        "evidence": judgement.evidence,
        "observation": result.observation,
    }


def seconds(result: CellResult) -> dict[str, float]:
    """Seconds by stage; a cached trace or compile keeps the time that the real one took."""
    known: dict[str, float] = {}
    if result.trace is not None:
        known["trace"] = result.trace.wall_seconds
    if result.compile is not None:
        known["compile"] = result.compile.wall_seconds
        known["compile_cpu"] = result.compile.cpu_seconds
    return {**known, **result.seconds}


def result_of(row: Mapping[str, Any], known: Mapping[str, Cell]) -> CellResult:
    """A result as far as a row tells it. `known` are cells by id; one that is not among them is put
    together from the row, which holds neither a kernel's own parameters nor what a device asks for, so
    it has another id. Raises KeyError, TypeError or ValueError for what is no row of ours."""
    cell = known.get(str(row["id"])) or _cell(row)
    resources, stages = row.get("resources"), dict(row.get("seconds") or {})
    compiled = None
    if row.get("cubin_sha256"):
        compiled = CompileOutcome(
            "ok",
            exit_code=0,
            wall_seconds=float(stages.get("compile", 0.0)),
            cpu_seconds=float(stages.get("compile_cpu", 0.0)),
            cubin_sha256=row["cubin_sha256"],
        )
    return CellResult(
        cell,
        Judgement(
            Verdict(row["verdict"]),
            row["signature"],
            str(row["summary"]),
            row.get("component"),
            dict(row.get("evidence") or {}),
            tuple(Advice.from_json(remark) for remark in row.get("advice") or ()),
        ),
        components={name: version for name, version in dict(row["components"]).items() if version},
        compile=compiled,
        inspection=None
        if resources is None
        else Inspection.from_json({"symbol": "", "arch": cell.arch, **resources}),
        observation=row.get("observation") or _abridged(row),
        seconds=stages,
        resolved={
            name: row[f"{name}_resolved"]
            for name in ("cuda_tile", "cuda_toolkit")
            if row.get(f"{name}_resolved")
        },
        kernel_sha256=row.get("kernel_sha256"),
    )


def _abridged(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """What rows that were cut down for keeping say of a run."""
    kept: dict[str, Any] = {"outputs": row.get("outputs")}
    if row.get("median_us"):
        kept["timing"] = {key: row.get(key) for key in ("median_us", "spread_us", "samples_us")}
        if row.get("warm_samples_us"):
            kept["timing"]["warm_samples_us"] = row["warm_samples_us"]
    return kept if any(kept.values()) else None


def _cell(row: Mapping[str, Any]) -> Cell:
    settings = dict(row["hints"])
    hints = Hints.from_json({name: settings.pop(name) for name in HINT_NAMES if name in settings})
    own = {
        name: settings.pop(name) for name in ("bytecode_version", "calling_convention") if name in settings
    }
    case = Case(
        str(row["kernel"]),
        tuple(row["shape"]),
        str(row["dtype"]),
        hints,
        tuple(sorted(settings.items())),
        str(row["layout"]),
        str(row["values"]),
        int(row["seed"]),
        **own,
    )
    toolchain = Toolchain(str(row["toolchain"]), str(row["cuda_tile"]), str(row["cuda_toolkit"]))
    arch, name = str(row["arch"]), row["device"]
    return Cell(toolchain, arch, case, Device(str(name), str(name), arch) if name else None)


def _strict(value: Any) -> Any:
    """What the strictest reader of JSON takes: NaN and infinities as text, all texts legible."""
    if isinstance(value, dict):
        return {legible(str(key)): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, str):
        return legible(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _line(result: CellResult) -> str:
    return json.dumps(_strict(row(result)), allow_nan=False)


def write_results(results: Iterable[CellResult], path: Path) -> None:
    """Write all rows or none: a reader never sees half a file."""
    lines = (reported(result, _line) for result in results)
    write_atomically(path, "".join(f"{line}\n" for line in lines))


def read_results(path: Path) -> list[dict[str, Any]]:
    """The rows of a results file. Raises ResultsError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(f"{path} cannot be read ({error}): name a file that a run wrote.") from error
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            raise ResultsError(f"{path}, line {number}: not JSON ({error}); run the matrix again.") from error
        if not isinstance(item, dict) or "id" not in item or "verdict" not in item:
            raise ResultsError(f"{path}, line {number}: not a result of a cell; run the matrix again.")
        rows.append(item)
    return rows
