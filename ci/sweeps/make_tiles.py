"""Writes tiles.toml: kernels/clusters.py over tiles, cluster sizes and dtypes, to be run on a GPU.

A grid and the arrays' shapes follow from the tile, so every tile needs a [[case]] of its own.
"""

import re
from pathlib import Path

ROWS = 1024
TILES = [(1, 64), (1, 2048), (2, 32), (4, 256), (16, 16), (16, 512), (32, 128), (64, 8), (128, 64), (256, 2)]

HEAD = """\
# Written by make_tiles.py: operations over tiles and clusters, on a GPU, against float64.
#
#     python -m harness compile ci/sweeps/tiles.toml --bundle tiles.bundle
#     python -m harness execute tiles.bundle        # on the GPU host

[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = ["13.3.1", "13.5.0"]

[target]
arch = ["sm_90"]

[[device]]
name = "h200"
gpu = "H200"
arch = "sm_90"

[timeouts]
compile = 60
"""

# Shape of the output and reference; R rows, M x N the tile, B blocks.
KERNELS = {
    "row_sum": ("[R]", "sum(x, axis=1)"),
    "row_max": ("[R]", "max(x, axis=1)"),
    "where_largest": ("[R]", "argmax(x, axis=1)"),
    "column_sum": ("[B, N]", "sum(reshape(x, (B, TM, TN)), axis=1)"),
    "column_max": ("[B, N]", "max(reshape(x, (B, TM, TN)), axis=1)"),
    "running_row_sum": ("[R, N]", "cumsum(x, axis=1)"),
    "running_column_sum": ("[R, N]", "reshape(cumsum(reshape(x, (B, TM, TN)), axis=1), (R, TN))"),
    "softmax": ("[R, N]", "e / sum(e, axis=1, keepdims=True)"),
    "turned": ("[N, R]", "x.T"),
    "folded": ("[BN, M]", "reshape(x, (BN, TM))"),
    "mirrored": ("[R, N]", "x[:, ::-1]"),
    "scattered": ("[R, N]", "x[:, ::-1]"),
    "side_by_side": ("[R, 2N]", "x"),
    "right_half": ("[R, H]", "x[:, H:]"),
    "total_sum": ("[B]", "sum(reshape(x, (B, TM * TN)), axis=1)"),
    "persistent_row_sum": ("[R]", "sum(x, axis=1)"),
    "squared_distance": (
        "[R]",
        "reshape(sum((reshape(x, (B, TM, TN)) - max(reshape(x, (B, TM, TN)), axis=1, keepdims=True)) ** 2,"
        " axis=2), (R,))",
    ),
}
"""side_by_side has no concatenation to be compared with: launches and toolchains are compared instead."""


def cases() -> str:
    """All [[case]] tables."""
    made = []
    for kernel, (shape, reference) in KERNELS.items():
        for m, n in TILES:
            blocks = ROWS // m
            sizes = {"R": ROWS, "BN": blocks * n, "2N": 2 * n, "B": blocks, "N": n, "M": m, "H": n // 2}

            def sized(text: str, sizes: dict[str, int] = sizes) -> str:
                for name, size in sizes.items():
                    # Whole words only: TN and TM are constants of the kernel.
                    text = re.sub(rf"(?<!\w){name}(?!\w)", str(size), text)
                return text

            extents = sized(shape)
            steps = {"y": sized(reference)}
            if kernel == "softmax":
                steps = {"e": "exp(x - max(x, axis=1, keepdims=True))", **steps}
            lines = [
                "[[case]]",
                f'kernel = "kernels/clusters.py:{kernel}"',
                'dtype = ["float32", "float16"]' if kernel != "where_largest" else 'dtype = "float32"',
                "num_ctas = [1, 2, 4]",
                f"grid = [{min(blocks, 66) if kernel.startswith('persistent') else blocks}]",
            ]
            if kernel != "side_by_side":
                told = ", ".join(f'{name} = "{text}"' for name, text in steps.items())
                lines.append(f"reference = {{ {told} }}")
            output = '"int32"' if kernel == "where_largest" else '"$dtype"'
            lines += [
                "parameters = [",
                f'    {{ name = "x", kind = "array", rank = 2, shape = [{ROWS}, {n}], role = "in" }},',
                f'    {{ name = "y", kind = "array", dtype = {output}, rank = {extents.count(",") + 1}, '
                f'shape = {extents}, role = "out" }},',
                f'    {{ name = "TM", kind = "constant", value = {m} }},',
                f'    {{ name = "TN", kind = "constant", value = {n} }},',
                '    { name = "TMA", kind = "constant", value = false },',
                "]",
            ]
            made.append("\n".join(lines) + "\n")
    return "\n".join(made)


if __name__ == "__main__":
    Path(__file__).with_name("tiles.toml").write_text(f"{HEAD}\n{cases()}", encoding="utf-8")
