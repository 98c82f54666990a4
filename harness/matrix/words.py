"""The words a matrix may use, apart from kernels and versions, which others know."""

from __future__ import annotations

from harness.kernels.arrays import ITEMSIZE, LAYOUTS

DTYPES = tuple(ITEMSIZE)
"""Element types as cuda.tile spells them."""

DTYPE_ALIASES = {
    "bf16": "bfloat16",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "fp16": "float16",
    "half": "float16",
    "fp32": "float32",
    "float": "float32",
    "fp64": "float64",
    "double": "float64",
    "tf32": "tfloat32",
    "float8_e4m3": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "fp8_e8m0": "float8_e8m0fnu",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}
"""Other spellings that are common in the field."""

INDEX_DTYPES = ("int32", "uint32", "int64")
"""What an array's shape and strides may be counted in."""

ARCHS = (
    *("sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90"),
    *("sm_100", "sm_103", "sm_107", "sm_110", "sm_120", "sm_121"),
    *("sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110a", "sm_120a", "sm_121a"),
    *("sm_100f", "sm_103f", "sm_107f", "sm_110f", "sm_120f", "sm_121f"),
)
"""Architectures CUDA 13 compilers name. Whether a given tileiras can do one is for the run to find out."""

TUPLE_CONVENTION = "cutile_python_v2"
CALLING_CONVENTIONS = ("cutile_python_v1", TUPLE_CONVENTION)
"""Ways to pass launch arguments; the second is for tuples (cuda-tile 1.5 and newer)."""

LAYOUT_WORDS = tuple(LAYOUTS)
VECTOR_LAYOUTS = ("contiguous", "offset")
"""The layouts a vector can have."""

VALUES = ("normal", "ones", "tiny", "huge", "wide", "zero_rows", "nan", "inf")
"""What may be in the inputs."""

ENGINES = ("cubin", "jit")
"""Who launches: the lab, from a cubin, or `cuda.tile.launch` on torch tensors, as users do."""

KNOBS = ("allow_tma", "latency", "tile_m", "tile_n", "tile_k", "offset", "eps")
"""Keys of [[case]] that are settings of a shipped kernel."""

GATE_CHANGES = ("regressed", "newly_bad", "newly_unsupported", "lost", "still_bad", "unknown")
"""Ways in which a candidate may be no better than its baseline."""

GATE_MEASURES = ("registers", "spills", "shared_memory", "device_time", "output_bits")
"""Measured differences that a gate may fail for."""

GATE_WORDS = (*GATE_CHANGES, *GATE_MEASURES, "compile_seconds")
"""Differences a gate knows. Compile time only ever warns: one compile is one sample of a busy machine."""

COMPONENTS = {
    "cuda_tile": "cuda-tile",
    "cuda_toolkit": "cuda-toolkit",
    "tileiras": "nvidia-cuda-tileiras",
    "nvvm": "nvidia-nvvm",
    "ptxas": "nvidia-cuda-nvcc",
}
"""Version keys of [[toolchain]], and the packages that have these versions."""
