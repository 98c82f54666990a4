"""A kernel known to be good, run after a hang or a fault to show that the GPU still is.

It is PTX, so that no tile compiler has a hand in it: the driver assembles it for whatever GPU is there.
"""

from __future__ import annotations

import numpy as np

from harness.execute.gpu import DriverError, Gpu, Parameters

COUNT = 1024
SYMBOL = "canary"
PTX = b""".version 7.8
.target sm_80
.address_size 64
.visible .entry canary(.param .u64 out)
{
    .reg .u32 %r<6>;
    .reg .u64 %d<4>;
    ld.param.u64 %d1, [out];
    cvta.to.global.u64 %d1, %d1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %d2, %r4, 4;
    add.u64 %d3, %d1, %d2;
    mad.lo.u32 %r5, %r4, 3, 1;
    st.global.u32 [%d3], %r5;
    ret;
}
\0"""

_NO_ASSEMBLER = {
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
    "CUDA_ERROR_JIT_COMPILATION_DISABLED",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
}


def sing(gpu: Gpu) -> str | None:
    """None if the GPU computed what it should, otherwise one sentence. Raises `DriverError`.

    Where the driver cannot assemble PTX, filling and reading back memory has to do.
    """
    gpu.reserve(4 * COUNT)
    address = gpu.allocate(4 * COUNT)
    gpu.fill(address, 4 * COUNT, 0xFFFFFFFF)
    expected = 3 * np.arange(COUNT, dtype=np.uint32) + 1
    try:
        function = gpu.function(SYMBOL, PTX, SYMBOL)
    except DriverError as error:
        if error.error not in _NO_ASSEMBLER:
            raise
        expected = np.full(COUNT, 0xFFFFFFFF, np.uint32)
    else:
        parameters = Parameters([np.uint64(address)])
        gpu.launch(function, (COUNT // 128, 1, 1), (128, 1, 1), parameters)
        gpu.finish()
    got = gpu.download(address, 4 * COUNT).view(np.uint32)
    wrong = int(np.count_nonzero(got != expected))
    return f"the known-good kernel got {wrong} of {COUNT} numbers wrong" if wrong else None
