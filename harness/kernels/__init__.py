"""The kernels the lab ships, by name, and the way in for a reader's own ("path/to/file.py:name")."""

from __future__ import annotations

from pathlib import Path

from harness.kernels.description import Kernel, user_kernel
from harness.kernels.layer_norm.spec import KERNELS as LAYER_NORM
from harness.kernels.matmul.spec import KERNELS as MATMUL
from harness.kernels.rmsnorm.spec import KERNELS as RMSNORM
from harness.kernels.rmsnorm_backward.spec import KERNELS as RMSNORM_BACKWARD
from harness.kernels.vector.spec import KERNELS as VECTOR

_SHIPPED: dict[str, Kernel] = {
    kernel.name: kernel for kernel in (*RMSNORM, *RMSNORM_BACKWARD, *LAYER_NORM, *MATMUL, *VECTOR)
}


def names() -> tuple[str, ...]:
    """Names of the shipped kernels."""
    return tuple(_SHIPPED)


def knobs(name: str) -> frozenset[str]:
    """The settings a shipped kernel takes besides the compiler's own hints."""
    return frozenset(_SHIPPED[name].knobs)


def get(name: str, base: Path | None = None) -> Kernel:
    """A shipped kernel, or one of the reader's own relative to `base`.

    Raises KeyError for a name that is neither.
    """
    if name in _SHIPPED:
        return _SHIPPED[name]
    if ":" in name:
        return user_kernel(name, base)
    raise KeyError(name)
