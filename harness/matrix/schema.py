"""The tables of a matrix file, typed: what pydantic checks and what editors are told.

Checks that need more than one key (kernels and their settings, duplicates) are in `check.py`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from harness.expression import MAX_LENGTH
from harness.matrix import words
from harness.matrix.fields import (
    Arch,
    Axis,
    BytecodeVersion,
    Convention,
    Dtype,
    Extent,
    Identifier,
    KernelName,
    Label,
    Seconds,
    Seed,
    Table,
    Version,
)
from harness.matrix.parameters import Parameter
from harness.matrix.rules import DriverRange, Flag, Number, OneOrMany, OrWord, Text, Whole, Word
from harness.matrix.value import GateRules


class ExcludeTable(Table):
    """Combinations to leave out: those whose versions are all among the listed ones."""

    cuda_tile: Axis[Version] | None = Field(
        None, description="cuda-tile versions, as written in this table; left out: all.", examples=["1.5.0"]
    )
    cuda_toolkit: Axis[Version] | None = Field(
        None,
        description="cuda-toolkit versions, as written in this table; left out: all.",
        examples=["13.3.1"],
    )


class ToolchainTable(Table):
    """Compilers to test: every cuda-tile version with every cuda-toolkit version."""

    cuda_tile: Axis[Version] = Field(
        description='Frontend: versions of the package cuda-tile, in quotes. "1.5" is the newest 1.5.x.',
        examples=["1.5.0"],
    )
    cuda_toolkit: Axis[Version] = Field(
        description='Backend: versions of the package cuda-toolkit, in quotes. "13.3" is the newest 13.3.x.',
        examples=["13.3.1"],
    )
    exclude: tuple[ExcludeTable, ...] = Field(
        (),
        description="Combinations to leave out.",
        examples=[[{"cuda_tile": "1.5.0", "cuda_toolkit": "13.3.1"}]],
    )
    name: Label | None = Field(
        None,
        description="Name in reports. Where the table makes several toolchains, what their names start with.",
        examples=["stable"],
    )
    tileiras: Version | None = Field(
        None, description="Take the TileIR assembler of this version instead.", examples=["13.4.92"]
    )
    nvvm: Version | None = Field(
        None, description="Take libnvvm of this version instead.", examples=["13.4.92"]
    )
    ptxas: Version | None = Field(
        None, description="Take ptxas of this version instead.", examples=["13.4.92"]
    )


class TargetTable(Table):
    """What to compile for."""

    arch: Axis[Arch] = Field(
        description="GPU architectures. One a toolchain cannot do is reported as unsupported.",
        examples=["sm_90"],
    )


class DeviceTable(Table):
    """A GPU to run on: every case of its architecture is also executed there."""

    name: Label = Field(description="Name in reports.", examples=["h200"])
    gpu: Annotated[str, Text("a GPU name", r"[ -~]+", "printable ASCII characters")] = Field(
        description="Part of the GPU's name, as nvidia-smi prints it.", examples=["H200"]
    )
    arch: Arch = Field(description="Its architecture, one of [target] arch.", examples=["sm_90"])
    driver: Annotated[str, DriverRange()] = Field(
        "", description="Driver versions that will do; left out: any.", examples=[">=580"]
    )


class GenerateTable(Table):
    """Shapes, and every axis not spelled out, drawn at random instead of listed."""

    count: Annotated[int, Whole(1, 100_000)] = Field(description="How many cases.", examples=[200])
    seed: Seed = Field(0, description="The same seed draws the same cases.", examples=[1])
    max_elements: Annotated[int, Whole(1, 2**40)] = Field(
        2**24, description="Most elements an array may have.", examples=[16_777_216]
    )


class OnlyTable(Table):
    """Where a case is asked about: where all that is listed fits."""

    cuda_tile: Axis[Version] | None = Field(
        None,
        description="cuda-tile versions, as written in [[toolchain]]; left out: all.",
        examples=["1.5.0"],
    )
    cuda_toolkit: Axis[Version] | None = Field(
        None,
        description="cuda-toolkit versions, as written in [[toolchain]]; left out: all.",
        examples=["13.3.1"],
    )
    toolchain: Axis[Label] | None = Field(
        None, description="Names of toolchains; left out: all.", examples=["stable"]
    )
    arch: Axis[Arch] | None = Field(
        None, description="Some of [target] arch; left out: all.", examples=["sm_90"]
    )


Formula = Annotated[str, Text("an expression", r"[\s\S]+", "text", MAX_LENGTH)]


class ToleranceTable(Table):
    """How far an output may lie from its reference, in place of what float32 arithmetic may be off by."""

    relative: Annotated[float, Number(0, 1)] = Field(
        0.0, description="Share of the exact value.", examples=[1e-3]
    )
    absolute: Annotated[float, Number(0, 1e30)] = Field(
        0.0, description="Distance, as a number.", examples=[1e-6]
    )
    ulp: Annotated[int, Whole(0, 2**24)] = Field(
        0, description="Units in the last place of the output's type, on top.", examples=[2]
    )


class CaseTable(Table):
    """A kernel and how to call it: every combination of the listed values is a case.

    Where a key takes "default", it means as if the key were not written.
    """

    kernel: Axis[KernelName] = Field(
        description='A kernel of the lab, or your own as "path/to/file.py:name", relative to this file.',
        examples=["rmsnorm.static_persistent"],
    )
    shape: Annotated[tuple[tuple[Extent, ...], ...], OneOrMany(depth=1)] | None = Field(
        None, description="Problem sizes, [M, N] for RMSNorm: rows, columns.", examples=[[[16384, 512]]]
    )
    dtype: Axis[Dtype] | None = Field(None, description="Element types.", examples=["bfloat16"])
    occupancy: Axis[Annotated[int | None, OrWord(Whole(1, 32))]] | None = Field(
        None,
        description="Hint: thread blocks (CTAs) a multiprocessor should hold at once.",
        examples=[["default", 8]],
    )
    num_ctas: Axis[Annotated[int | None, OrWord(Whole(1, 16, power_of_two=True))]] | None = Field(
        None, description="Hint: thread blocks in a cluster.", examples=[2]
    )
    opt_level: Axis[Annotated[int | None, OrWord(Whole(0, 3))]] | None = Field(
        None,
        description="Optimisation level of tileiras; unless said, that of the kernel or 3.",
        examples=[3],
    )
    num_worker_warps: Axis[Annotated[int | None, OrWord(Whole(1, 32, power_of_two=True))]] | None = Field(
        None,
        description="Hint: warps that compute, in a thread block; cuda-tile 1.4 to 1.6 take 4 and 8.",
        examples=[8],
    )
    allow_tma: Axis[Annotated[bool | None, OrWord(Flag())]] | None = Field(
        None,
        description="Whether the kernel's main load may use the Tensor Memory Accelerator.",
        examples=[[True, False]],
    )
    bytecode_version: Axis[BytecodeVersion] | None = Field(
        None,
        description="TileIR bytecode to write; the newest that both sides know unless said.",
        examples=["13.2"],
    )
    calling_convention: Axis[Convention] | None = Field(
        None,
        description="How launch arguments are passed; cutile_python_v1 unless said, with tuples _v2.",
        examples=["cutile_python_v1"],
    )
    latency: Axis[Annotated[int | None, OrWord(Whole(1, 10))]] | None = Field(
        None, description="Hint of the kernel's main load: 1 light to 10 heavy memory traffic.", examples=[10]
    )
    tile_m: Axis[Annotated[int | None, OrWord(Whole(1, 2**20, power_of_two=True))]] | None = Field(
        None, description="Rows of a tile; the kernel chooses unless said.", examples=[16]
    )
    tile_n: Axis[Annotated[int | None, OrWord(Whole(1, 2**20, power_of_two=True))]] | None = Field(
        None, description="Columns of a tile; the kernel chooses unless said.", examples=[512]
    )
    tile_k: Axis[Annotated[int | None, OrWord(Whole(1, 2**20, power_of_two=True))]] | None = Field(
        None, description="Depth of a tile of a matrix product.", examples=[64]
    )
    offset: Axis[Annotated[float | None, OrWord(Number(-1e6, 1e6))]] | None = Field(
        None, description="Added to the weight: 0 for Llama, 1 for Gemma 3.", examples=[1.0]
    )
    eps: Axis[Annotated[float | None, OrWord(Number(0, 1e6))]] | None = Field(
        None, description="Added to the mean square.", examples=[1e-6]
    )
    layout: Axis[Annotated[str, Word("a layout", words.LAYOUT_WORDS)]] | None = Field(
        None,
        description="How the main input lies in memory; contiguous unless said.",
        examples=["contiguous"],
    )
    values: Axis[Annotated[str, Word("a kind of values", words.VALUES)]] | None = Field(
        None, description="What is in the inputs.", examples=["normal"]
    )
    seed: Axis[Seed] | None = Field(
        None, description="Seeds of the inputs' random numbers; 0 unless said.", examples=[0]
    )
    engine: Axis[Annotated[str, Word("an engine", words.ENGINES)]] | None = Field(
        None,
        description="Who launches on a GPU: the lab from the cubin, or cuda.tile itself (jit, needs torch).",
        examples=["jit"],
    )
    parameters: tuple[Parameter, ...] | None = Field(
        None,
        description="Of your own kernel: its parameters in order.",
        examples=[[{"name": "x", "kind": "array", "dtype": "float32", "rank": 1}]],
    )
    grid: Annotated[tuple[Annotated[int, Whole(1, 2**31 - 1)], ...], OneOrMany(unique=False)] | None = Field(
        None,
        description="To run your own kernel: its launch grid, in tile blocks; one to three numbers.",
        examples=[[132]],
    )
    reference: dict[Identifier, Annotated[str, Text("an expression", r"[\s\S]+", "text", 2000)]] | None = (
        Field(
            None,
            description="What your own kernel computes: NumPy expressions over its parameters, by output.",
            examples=[{"y": "x * 2"}],
        )
    )
    tolerance: dict[Identifier, ToleranceTable] | None = Field(
        None,
        description="How far outputs may lie from the reference; what float32 may be off by, unless said.",
        examples=[{"y": {"relative": 0.001}}],
    )
    only: OnlyTable | None = Field(
        None,
        description="Ask about this case only there.",
        examples=[{"arch": "sm_90", "cuda_toolkit": "13.3.1"}],
    )
    generate: GenerateTable | None = Field(
        None,
        description="Draw cases at random instead of listing shapes.",
        examples=[{"count": 200, "seed": 1}],
    )


class TimeoutsTable(Table):
    """Seconds each stage of a case may take."""

    start_up: Seconds = Field(60.0, description="A worker process getting ready.", examples=[60])
    trace: Seconds = Field(60.0, description="cuda.tile turning the kernel into bytecode.", examples=[60])
    compile: Seconds = Field(60.0, description="tileiras and its ptxas.", examples=[60])
    load: Seconds = Field(10.0, description="The driver loading the kernel.", examples=[10])
    launch: Seconds = Field(
        5.0, description="The kernel running, worker warm and kernel loaded.", examples=[5]
    )
    read_back: Seconds = Field(10.0, description="Copying results to the host.", examples=[10])
    compare: Seconds = Field(30.0, description="Computing and comparing the reference.", examples=[30])


class RunTable(Table):
    """How to run."""

    jobs: Annotated[int, Whole(1, 1024)] | None = Field(
        None, description="Compiles at once; left out: one a core.", examples=[2]
    )


class GateTable(Table):
    """What `harness gate` makes of differences between two toolchains."""

    fail: tuple[Annotated[str, Word("a difference", (*words.GATE_CHANGES, *words.GATE_MEASURES))], ...] = (
        Field(
            GateRules().fail,
            description="Differences that forbid the upgrade.",
            examples=[["regressed", "newly_bad", "newly_unsupported", "lost"]],
        )
    )
    warn: tuple[Annotated[str, Word("a difference", words.GATE_WORDS)], ...] = Field(
        GateRules().warn,
        description="Differences that are told, but forbid nothing.",
        examples=[["registers", "device_time"]],
    )
    registers: Annotated[int, Whole(0, 255)] = Field(
        0, description="Registers a thread more than before that are still accepted.", examples=[8]
    )
    spills: Annotated[int, Whole(0, 1_000_000)] = Field(
        0, description="Spill instructions more than before that are still accepted.", examples=[0]
    )
    shared_memory: Annotated[int, Whole(0, 1_000_000)] = Field(
        0, description="Bytes of shared memory a block more than before that are accepted.", examples=[1024]
    )
    compile_seconds: Annotated[float, Number(1, 1000)] = Field(
        1.5, description="How many times as long a compile may take.", examples=[1.5]
    )
    device_time: Annotated[float, Number(1, 1000)] = Field(
        1.1,
        description="How many times as long a kernel may take; counts only where it stands out of the noise.",
        examples=[1.1],
    )


class MatrixFile(Table):
    """Toolchains x targets x cases: what the lab should compile and run."""

    toolchain: tuple[ToolchainTable, ...] = Field(min_length=1, description="Compilers to test.")
    target: TargetTable = Field(description="What to compile for.")
    device: tuple[DeviceTable, ...] = Field((), description="GPUs to run on.")
    case: tuple[CaseTable, ...] = Field(min_length=1, description="Kernels and how to call them.")
    timeouts: TimeoutsTable = Field(TimeoutsTable(), description="Seconds each stage may take.")
    run: RunTable = Field(RunTable(), description="How to run.")
    gate: GateTable = Field(GateTable(), description="When an upgrade is refused.")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a matrix file, draft 7, which TOML editors such as Taplo read."""
    generated = MatrixFile.model_json_schema(ref_template="#/definitions/{model}")
    definitions = generated.pop("$defs")
    plain = _without_null({**generated, "title": "matrix.toml", "definitions": definitions})
    return {"$schema": "http://json-schema.org/draft-07/schema#", **plain}


def _without_null(schema: Any) -> Any:
    """Drop what TOML cannot say (null), and titles and tables of defaults, which only repeat the keys."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _without_null(value)
        for key, value in schema.items()
        if not (key == "default" and (value is None or isinstance(value, dict)))
        and not (key == "title" and value != "matrix.toml")
    }
    match kept:
        case {"anyOf": [dict() as only]}:
            return {**{key: value for key, value in kept.items() if key != "anyOf"}, **only}
    return kept
