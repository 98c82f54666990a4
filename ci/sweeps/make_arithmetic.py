"""Writes arithmetic.toml: kernels/arithmetic.py over dtypes, levels and array edges, to be run on a GPU."""

from pathlib import Path

HEAD = """\
# Written by make_arithmetic.py: arithmetic over dtypes, levels and edges, on a GPU,
# against exact integers and float64.

[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = ["13.3.1", "13.4.3", "13.5.0"]

[target]
arch = ["sm_90"]

[[device]]
name = "h200"
gpu = "H200"
arch = "sm_90"

"""
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint32"]
FLOATS = ["float16", "bfloat16", "float32"]
BOTH = [*INTEGERS, *FLOATS]
COUNTED = [*INTEGERS, "float32"]
WHOLE, PART = (16, 32), (13, 21)

# Kernel: dtypes, arrays read, shape of z from that of x, reference.
PLAIN = {
    "difference": (BOTH, "xy", "MN", "x - y"),
    "product": (BOTH, "xy", "MN", "x * y"),
    "quotient": (FLOATS, "xy", "MN", "x / y"),
    "floor_quotient": (INTEGERS, "xy", "MN", "x // (y | 1)"),
    "remainder": (INTEGERS, "xy", "MN", "x % (y | 1)"),
    "bits": (INTEGERS, "xy", "MN", "(x & y) | (x ^ 5)"),
    "shifts": (INTEGERS, "xy", "MN", 'astype(x << 2, "$") + (y >> 1)'),
    "larger": (BOTH, "xy", "MN", "maximum(x, y)"),
    "chosen": (BOTH, "xy", "MN", "where(x > y, x, -y)"),
    "fused": (COUNTED, "xy", "MN", "x * y + x - y * 3"),
    "row_sum": (COUNTED, "x", "M", "sum(x, axis=1)"),
    "column_sum": (COUNTED, "x", "N", "sum(x, axis=0)"),
    "row_product": (COUNTED, "x", "M", "prod(x, axis=1)"),
    "row_max": (BOTH, "x", "M", "max(x, axis=1)"),
    "column_min": (BOTH, "x", "N", "min(x, axis=0)"),
    "running_sum": (COUNTED, "x", "MN", "cumsum(x, axis=1)"),
    "running_column_sum": (COUNTED, "x", "MN", "cumsum(x, axis=0)"),
    "turned": (BOTH, "x", "NM", "x.T"),
}
WHOLE_ONLY = ("row_product", "row_max", "column_min")
CONVERSIONS = [
    ("int8", "float16"),
    ("int32", "float32"),
    ("int32", "bfloat16"),
    ("uint32", "float32"),
    ("int64", "float32"),
    ("float32", "bfloat16"),
    ("float32", "float16"),
    ("bfloat16", "float32"),
    ("float16", "float8_e5m2"),
    ("float32", "float8_e4m3fn"),
    ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "bfloat16"),
    ("int16", "int64"),
    ("int64", "int16"),
    ("uint8", "int32"),
    ("int32", "uint8"),
]
PRODUCTS = [
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("float16", "float16"),
    ("int8", "int32"),
    ("uint8", "int32"),
    ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float16"),
]


def array(name: str, dtype: str, shape: tuple[int, ...], role: str) -> str:
    """One line of a parameters list."""
    told = f'name = "{name}", kind = "array", dtype = "{dtype}", rank = {len(shape)}, shape = {list(shape)}'
    return f'    {{ {told}, role = "{role}" }},'


def case(kernel: str, reference: str, arrays: list[str]) -> str:
    """One [[case]]."""
    spelled = "'" if '"' in reference else '"'
    return "\n".join(
        [
            "[[case]]",
            f'kernel = "kernels/arithmetic.py:{kernel}"',
            "opt_level = [0, 3]",
            "grid = [1]",
            f"reference = {{ z = {spelled}{reference}{spelled} }}",
            "parameters = [",
            *arrays,
            "]\n",
        ]
    )


def cases() -> list[str]:
    """All of them."""
    made = []
    for kernel, (dtypes, read, out, reference) in PLAIN.items():
        for dtype in dtypes:
            for m, n in (WHOLE,) if kernel in WHOLE_ONLY else (WHOLE, PART):
                shape = {"MN": (m, n), "NM": (n, m), "M": (m,), "N": (n,)}[out]
                arrays = [array(name, dtype, (m, n), "in") for name in read]
                text = reference.replace("$", dtype)
                made.append(case(kernel, text, [*arrays, array("z", dtype, shape, "out")]))
    for source, target in CONVERSIONS:
        for shape in (WHOLE, PART):
            arrays = [array("x", source, shape, "in"), array("z", target, shape, "out")]
            made.append(case("converted", "x", arrays))
    for source, target in PRODUCTS:
        for m, n, k in ((16, 16, 32), (11, 9, 27)):
            arrays = [array("x", source, (m, k), "in"), array("y", source, (k, n), "in")]
            made.append(case("matrix_product", "x @ y", [*arrays, array("z", target, (m, n), "out")]))
    return made


if __name__ == "__main__":
    Path(__file__).with_name("arithmetic.toml").write_text(HEAD + "\n".join(cases()), encoding="utf-8")
