"""One question of a triage, its answer, and what kind of answer that is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.model import CellResult, Verdict

_ARCH_GATE = re.compile(r"Cannot find option named 'sm_\w+'|invalid GPU architecture|architecture")


@dataclass(frozen=True)
class Setting:
    """One question. `level` None is what the kernel's decorator says; `variant` is (axis, label), or
    empty for the parameters as reported."""

    kernel: str
    cuda_tile: str
    cuda_toolkit: str
    arch: str
    level: int | None = None
    variant: tuple[str, str] = ("", "")

    @property
    def axes(self) -> dict[str, object]:
        """Everything but the kernel, by the axis' name."""
        return {
            "frontend": self.cuda_tile,
            "toolchain": self.cuda_toolkit,
            "architecture": self.arch,
            "opt level": self.level,
            "variant": self.variant,
        }


@dataclass(frozen=True)
class Asked:
    """A setting and its answer. `seconds` is what it took now."""

    setting: Setting
    result: CellResult
    seconds: float


def is_rejection(result: CellResult) -> bool:
    """A located error of the reader's own: the frontend read the kernel and says what is wrong with it,
    as an older one does of what it does not know yet."""
    told = result.judgement.evidence
    user = result.verdict is Verdict.FRONTEND_ERROR and told.get("kind") == "user"
    return user and told.get("stage") != "import"


def is_unread(result: CellResult) -> bool:
    """The kernel's file could not be imported: nothing is known of it, and no frontend is to blame."""
    told = result.judgement.evidence
    return result.verdict is Verdict.FRONTEND_ERROR and told.get("stage") == "import"


def is_failure(result: CellResult) -> bool:
    """Whether a compiler misbehaved."""
    return result.verdict.is_finding and not is_rejection(result) and not is_unread(result)


def short(result: CellResult) -> str:
    """An outcome in a word or two: how it failed, not what it said."""
    judgement, compile = result.judgement, result.compile
    match result.verdict:
        case Verdict.COMPILES | Verdict.PASS:
            return "compiles"
        case Verdict.UNSUPPORTED:
            gate = _ARCH_GATE.search(judgement.summary)
            return "no such target" if gate else "unsupported"
        case Verdict.TOOLCHAIN_BROKEN:
            return "broken toolchain"
        case Verdict.COMPILE_TIMEOUT:
            seconds = compile.wall_seconds if compile else 0
            return f"no end in {seconds:.0f} s"
        case Verdict.PREDICTED_DEADLOCK:
            return "deadlocks"
        case Verdict.FRONTEND_ERROR:
            error = result.trace.error_type if result.trace else None
            return error or "frontend error"
        case Verdict.COMPILER_CRASH | Verdict.COMPILE_ERROR:
            died = re.search(r"\bSIG[A-Z]+\b", judgement.summary)
            code = compile.exit_code if compile else None
            return died.group() if died else f"exit {code}" if code is not None else str(result.verdict)
    return str(result.verdict)
