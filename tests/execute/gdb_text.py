"""What cuda-gdb prints, laid out as its sources do, for the deadlock of an H200 (see the evidence)."""

from __future__ import annotations

SYMBOL = "static_persistent_Kt1_A2bf16_1v8l0"
BASE = 0x7FDE_9F2F_4D00

AT = dict.fromkeys(range(4), 4656) | {4: 0x8D80, 5: 0x8FB0, 6: 0x8FC0, 7: 0x8FB0}
"""Offset of each warp's PC."""

LISTING = {
    0x1220: "IMAD.MOV.U32 R1, RZ, RZ, R2",
    0x1230: "BAR.SYNC.DEFER_BLOCKING 0x1",
    0x8D70: "NOP",
    0x8D80: "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20",
    0x8FA0: "WARPSYNC.ALL",
    0x8FB0: "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x20",
    0x8FC0: "PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0",
}

HEADER = """\
NVIDIA (R) cuda-gdb 13.0
Opening GPU coredump: 17.core
[Current focus set to CUDA kernel 0, grid 1, block (0,0,0), thread (0,0,0), device 0, sm 0, warp 0, lane 0]
#0  0x00007fde9f2f5f30 in static_persistent_Kt1_A2bf16_1v8l0<<<(132,1,1),(256,1,1)>>> ()
"""


def warps_table() -> str:
    lines = [
        HEADER,
        "  Kernel Parent Dev Grid Status                   SMs Mask   GridDim  BlockDim Invocation ",
        "*      0      -   0    1 Active 0xffffffffffff (132,1,1) (256,1,1) static_persistent()",
        "  Wp Active Lanes Mask Divergent Lanes Mask Active Physical PC Kernel BlockIdx "
        "First Active ThreadIdx ",
        "Device 0 SM 0",
    ]
    for warp, offset in AT.items():
        mark = "*" if warp == 0 else " "
        lines.append(
            f"{mark} {warp:2d}        0xffffffff           0x00000000 {BASE + offset:#018x}      0  (0,0,0)"
            f"              ({32 * warp},0,0) "
        )
    lines += [
        f"  {warp:2d}        0x00000000           0x00000000                n/a    n/a      n/a          n/a"
        for warp in (8, 9)
    ]
    return "\n".join(lines) + "\n"


def listing() -> str:
    lines = []
    for offset in sorted(set(AT.values())):
        lines.append(f"@@ {BASE + offset:#x}")
        lines.append(f"{SYMBOL} + {offset} in section .text.{SYMBOL}")
        for at in (offset - 16, offset):
            mark = "=>" if at == 0x1230 else "  "
            lines.append(f"{mark} {BASE + at:#x} <{SYMBOL}+{at}>:\t{LISTING.get(at, 'NOP')}")
    return "\n".join(lines) + "\n"
