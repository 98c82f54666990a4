"""The verdicts, and which of them are findings."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """One word per cell; the evidence each must carry is listed in ARCHITECTURE.md."""

    PASS = "pass"
    COMPILES = "compiles"
    UNSUPPORTED = "unsupported"
    FRONTEND_ERROR = "frontend_error"
    COMPILE_ERROR = "compile_error"
    TOOLCHAIN_BROKEN = "toolchain_broken"
    COMPILER_CRASH = "compiler_crash"
    COMPILE_TIMEOUT = "compile_timeout"
    PREDICTED_DEADLOCK = "predicted_deadlock"
    LAUNCH_ERROR = "launch_error"
    HANG = "hang"
    DEVICE_FAULT = "device_fault"
    WRONG_RESULT = "wrong_result"
    NONDETERMINISTIC = "nondeterministic"
    WORKER_CRASH = "worker_crash"
    OUT_OF_MEMORY = "out_of_memory"
    UNKILLABLE = "unkillable"
    FLAKY = "flaky"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"
    TAINTED = "tainted"
    INFRA_ERROR = "infra_error"

    @property
    def is_good(self) -> bool:
        """True where the cell did what it should."""
        return self in (Verdict.PASS, Verdict.COMPILES)

    @property
    def is_unknown(self) -> bool:
        """True where nothing was learnt about the compiler: neither good nor bad."""
        return self in _UNKNOWN

    @property
    def is_finding(self) -> bool:
        """True where a compiler, a driver or a kernel misbehaved."""
        return not self.is_good and not self.is_unknown

    @property
    def is_from_device(self) -> bool:
        """True where only a GPU that ran the code can say so."""
        return self in _FROM_DEVICE


_FROM_DEVICE = frozenset(
    {
        Verdict.LAUNCH_ERROR,
        Verdict.HANG,
        Verdict.DEVICE_FAULT,
        Verdict.WRONG_RESULT,
        Verdict.NONDETERMINISTIC,
        Verdict.WORKER_CRASH,
    }
)

_UNKNOWN = frozenset(
    {
        Verdict.UNSUPPORTED,
        Verdict.SKIPPED,
        Verdict.NOT_RUN,
        Verdict.TAINTED,
        Verdict.INFRA_ERROR,
        Verdict.TOOLCHAIN_BROKEN,
    }
)
