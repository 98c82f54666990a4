"""Theoretical occupancy: how many CTAs of a kernel one SM can hold, and what keeps it from more.

Limits per compute capability are from the CUDA C++ Programming Guide, "Technical Specifications per
Compute Capability"; libcu++ (`cuda/__device/arch_traits.h`) has the same numbers as code. How
resources are rounded is from `cuda_occupancy.h` of CUDA 13.5: registers are given to a warp in units of
256 and live in one of four sub-partitions, shared memory is given to a CTA in units of 128 bytes and 1 KiB
of it is the driver's. The driver of an H200 gave the same answer for 50 kernels. sm_107 is in neither
table, so nothing is said about it.
"""

from __future__ import annotations

from dataclasses import dataclass

_WARP = 32
_REGISTERS_PER_SM = 65536
_SUB_PARTITIONS = 4
_REGISTER_UNIT = 256
_SHARED_UNIT = 128
_RESERVED_SHARED = 1024
_FIRST_WITH_BARRIER_LIMIT = 90


@dataclass(frozen=True)
class SmLimits:
    """What one SM holds at most; shared memory in bytes, of which a CTA may have all but 1 KiB."""

    threads: int
    ctas: int
    shared_bytes: int
    barriers_per_cta: int

    @property
    def warps(self) -> int:
        return self.threads // _WARP


_KIB = 1024
SM_LIMITS = {
    80: SmLimits(2048, 32, 164 * _KIB, 2),
    86: SmLimits(1536, 16, 100 * _KIB, 1),
    87: SmLimits(1536, 16, 164 * _KIB, 1),
    88: SmLimits(1536, 16, 100 * _KIB, 1),
    89: SmLimits(1536, 24, 100 * _KIB, 1),
    90: SmLimits(2048, 32, 228 * _KIB, 2),
    100: SmLimits(2048, 32, 228 * _KIB, 2),
    103: SmLimits(2048, 32, 228 * _KIB, 1),
    110: SmLimits(1536, 24, 228 * _KIB, 1),
    120: SmLimits(1536, 24, 100 * _KIB, 1),
    121: SmLimits(1536, 24, 100 * _KIB, 1),
}


@dataclass(frozen=True)
class Occupancy:
    """`ctas` per SM, and the resource or resources that bound it, as in "registers, shared memory".

    `ctas` is None for an architecture whose limits are not published, 0 where the kernel cannot be launched.
    """

    ctas: int | None
    limited_by: str


def occupancy(arch: int, registers: int, threads: int, shared_bytes: int, barriers: int = 0) -> Occupancy:
    """For a launch without dynamic shared memory.

    `registers` are per thread, `shared_bytes` per CTA and as the cubin counts them.
    """
    limits = SM_LIMITS.get(arch)
    if limits is None or threads <= 0:
        return Occupancy(None, "")
    warps = -(-threads // _WARP)
    bounds = {
        "registers": _by_registers(registers, warps),
        "shared memory": _by_shared(limits, arch, shared_bytes),
        "warps": limits.warps // warps,
        "CTAs": limits.ctas,
    }
    if barriers and arch >= _FIRST_WITH_BARRIER_LIMIT:
        bounds["barriers"] = limits.ctas * limits.barriers_per_cta // barriers
    ctas = min(bounds.values())
    return Occupancy(ctas, ", ".join(name for name, bound in bounds.items() if bound == ctas))


def _by_registers(registers: int, warps: int) -> int:
    per_warp = max(_round_up(registers * _WARP, _REGISTER_UNIT), _REGISTER_UNIT)
    if per_warp * _round_up(warps, _SUB_PARTITIONS) > _REGISTERS_PER_SM:
        return 0
    return _REGISTERS_PER_SM // _SUB_PARTITIONS // per_warp * _SUB_PARTITIONS // warps


def _by_shared(limits: SmLimits, arch: int, shared_bytes: int) -> int:
    """Cubins for sm_90 and newer count the driver's bytes in as soon as there are any; older ones never."""
    used = max(shared_bytes, _RESERVED_SHARED) if arch >= 90 else shared_bytes + _RESERVED_SHARED
    return limits.shared_bytes // _round_up(used, _SHARED_UNIT)


def _round_up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
