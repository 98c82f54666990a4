"""Device time of a launch, by events, with the L2 cache flushed before each, and once more without.

The bandwidth is set beside that of a plain device-to-device copy of the same number of bytes, measured the
same way in the same process, so that a number means something on any GPU. Never a verdict by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.execute.gpu import Gpu
from harness.execute.protocol import Timing

LAUNCHES = 30
"""Samples per kernel: enough to compare two distributions by rank."""

MAX_COPY_BYTES = 1 << 30


def flush_bytes(gpu: Gpu) -> int:
    """Twice the L2 cache, a multiple of 4."""
    return -(-2 * gpu.attribute("L2_CACHE_SIZE") // 512) * 512


def copy_bytes(bytes_moved: int) -> int:
    """A copy that moves as many bytes as the kernel reads and writes together."""
    return max(512, min(bytes_moved // 2, MAX_COPY_BYTES) // 512 * 512)


def measure(
    gpu: Gpu, launch: Callable[[], None], bytes_moved: int, flush: int, source: int, target: int
) -> Timing:
    """Time `launch` and a copy from `source` to `target`.

    `flush` is an address with `flush_bytes` behind it, `source` and `target` have `copy_bytes(bytes_moved)`.
    """
    size = flush_bytes(gpu)
    copied = copy_bytes(bytes_moved)

    def copy() -> None:
        gpu.check("cuMemcpyDtoDAsync", target, source, copied, gpu.stream)

    kernel_us = _time(gpu, launch, flush, size)
    warm_us = _time(gpu, launch, flush, 0)
    copy_us = _time(gpu, copy, flush, size)
    median, copy_median = float(np.median(kernel_us)), float(np.median(copy_us))
    low, high = np.percentile(kernel_us, (10, 90))
    return Timing(
        median_us=round(median, 3),
        spread_us=round(float(high - low), 3),
        launches=LAUNCHES,
        bytes_moved=bytes_moved,
        bytes_per_second=round(bytes_moved / median * 1e6, 1) if median else 0.0,
        copy_bytes_per_second=round(2 * copied / copy_median * 1e6, 1) if copy_median else 0.0,
        copy_bytes=copied,
        samples_us=tuple(round(us, 3) for us in kernel_us),
        warm_median_us=round(float(np.median(warm_us)), 3),
        warm_samples_us=tuple(round(us, 3) for us in warm_us),
    )


def _time(gpu: Gpu, work: Callable[[], None], flush: int, size: int) -> list[float]:
    """Microseconds of each of `LAUNCHES` runs, after two that warm up; `size` bytes are filled before
    each to flush the L2 cache, none where it is to stay warm."""
    flags = int(gpu.driver.CUevent_flags.CU_EVENT_DEFAULT)
    pairs = [(gpu.check("cuEventCreate", flags), gpu.check("cuEventCreate", flags)) for _ in range(LAUNCHES)]
    try:
        for start, end in (*pairs[:2], *pairs):
            if size:
                gpu.fill(flush, size, 0)
            gpu.check("cuEventRecord", start, gpu.stream)
            work()
            gpu.check("cuEventRecord", end, gpu.stream)
            gpu.finish()
        return [1e3 * float(gpu.check("cuEventElapsedTime", start, end)) for start, end in pairs]
    finally:
        for pair in pairs:
            for event in pair:
                gpu.check("cuEventDestroy", event)
