"""What a repro.py looks at, and how it tells the symptom. Pure.

Each symptom has the lines that end its script: they compile apart or launch apart, look, and `finish`. What
only a GPU shows (DEVICE) is compiled elsewhere too, but then nothing is claimed of it.
"""

from __future__ import annotations

from enum import StrEnum
from textwrap import dedent

from harness.model import CellResult, Verdict
from harness.oracle import COMPILE_SECONDS, Compared, HasAdvice, Oracle, SameVerdict
from harness.repro.spec import ON_DEVICE, ReproError


class Symptom(StrEnum):
    """What a repro.py looks at."""

    DEADLOCK = "deadlock"
    OCCUPANCY = "occupancy"
    TMA = "tma"
    SPILLS = "spills"
    SLOW = "slow"
    ENDLESS = "endless"
    FAILS = "fails"
    FRONTEND = "frontend"
    DEVICE = "device"


_ADVICE = {
    "occupancy_missed": Symptom.OCCUPANCY,
    "hint_ignored": Symptom.TMA,
    "spills": Symptom.SPILLS,
    "slow_compile": Symptom.SLOW,
}
_VERDICTS = {
    Verdict.PREDICTED_DEADLOCK: Symptom.DEADLOCK,
    Verdict.COMPILE_TIMEOUT: Symptom.ENDLESS,
    Verdict.COMPILER_CRASH: Symptom.FAILS,
    Verdict.COMPILE_ERROR: Symptom.FAILS,
    Verdict.FRONTEND_ERROR: Symptom.FRONTEND,
    **dict.fromkeys(ON_DEVICE, Symptom.DEVICE),
}

EXPECTED = {
    Symptom.DEADLOCK: "A kernel that ends: what some warps ask for, others must give back first.",
    Symptom.OCCUPANCY: "Few enough registers a thread for the occupancy that was asked for, or a warning.",
    Symptom.TMA: "No TMA loads where allow_tma=False forbids them.",
    Symptom.SPILLS: "No spills.",
    Symptom.SLOW: "A compile time like that of neighbouring settings and of other releases.",
    Symptom.ENDLESS: "A compile that ends, or a diagnosis.",
    Symptom.FAILS: "A cubin, or a diagnosis that names what the kernel does wrong.",
    Symptom.FRONTEND: "Bytecode, or an error that points at a line of the kernel.",
    Symptom.DEVICE: "A kernel that ends, gives the right result, and the same one every time.",
}


PHRASES = {
    Symptom.DEADLOCK: "warps wait for registers that nobody gives back",
    Symptom.OCCUPANCY: "the occupancy hint is not kept",
    Symptom.TMA: "TMA loads although they are forbidden",
    Symptom.SPILLS: "registers spill",
    Symptom.SLOW: "compiling is slow",
    Symptom.ENDLESS: "compiling does not end",
    Symptom.FAILS: "the compiler fails",
    Symptom.FRONTEND: "cuda.tile fails inside",
    Symptom.DEVICE: "wrong on a GPU",
}
"""What goes into a title, where the summary is too long for one."""


def symptom_of(result: CellResult, oracle: Oracle) -> tuple[Symptom, float | None]:
    """What a script must look at to see what the oracle sees, and the bound. Raises ReproError."""
    match oracle:
        case HasAdvice(kind=kind) if kind in _ADVICE:
            return _ADVICE[kind], 5.0 if kind == "slow_compile" else None
        case Compared(metric=metric, comparison=comparison, bound=bound) if (
            metric == COMPILE_SECONDS and comparison in (">", ">=")
        ):
            return Symptom.SLOW, bound
        case Compared():
            raise ReproError(
                f'"{oracle}" is not something repro.py can look at; '
                "use an advice, a signature or compile_seconds"
            )
        case HasAdvice() | SameVerdict() if result.verdict not in _VERDICTS:
            raise ReproError(f'"{oracle}" is not something repro.py can look at')
    if result.verdict not in _VERDICTS:
        raise ReproError(f"a {result.verdict} cannot be shown without the device it happened on")
    symptom = _VERDICTS[result.verdict]
    if symptom is Symptom.ENDLESS and result.judgement.component == "cuda-tile":
        raise ReproError("a frontend that does not end has no bytecode to show; write this repro by hand")
    return symptom, None


_COMPILED = """
code, cubin, output, _ = compile_apart(arch, scratch)
if code is None:
    finish("UNKNOWN", f"compiling for {{arch}} did not end within {{SECONDS:g}} s")
if code != 0:
    finish("UNKNOWN", last_words(output))
"""

_LAUNCHED = """
print("on a GPU:", *launch_apart(scratch))
"""

_BODIES = {
    Symptom.DEADLOCK: """
outcome, words = launch_apart(scratch)
if outcome == "hangs":
    finish("SYMPTOM", words)
if outcome == "finishes":
    finish("OK", words)
"""
    + _COMPILED
    + """
registers, threads = resources(cubin)
grow, shrink = pool_requests(cubin)
facts = f"{{arch}}: {{registers}} registers, {{threads}} threads, warps grow to {{grow}}"
facts += f", shrink to {{shrink}}"
if any(count > registers for count in grow) and not any(count < registers for count in shrink):
    finish("SYMPTOM", f"{{facts}}: no warp ever gives back what others wait for")
finish("OK", facts)
""",
    Symptom.DEVICE: """
outcome, words = launch_apart(scratch)
if outcome in {telling}:
    finish("SYMPTOM", words)
if outcome != "no GPU":
    finish("OK" if outcome == "finishes" else "UNKNOWN", words)
"""
    + _COMPILED.replace("cubin", "_")
    + """
finish("UNKNOWN", f"{{arch}} compiles; only a GPU can show what the code does")
""",
    Symptom.OCCUPANCY: _COMPILED
    + _LAUNCHED
    + """
registers, threads = resources(cubin)
blocks = 65536 // (-(-registers // 8) * 8 * threads)
room = (2048 if arch in ("sm_80", "sm_90", "sm_100", "sm_103") else 1536) // threads
facts = f"{{arch}}: occupancy={occupancy} was asked for, "
facts += f"{{registers}} registers x {{threads}} threads allow {{blocks}}"
finish("SYMPTOM" if blocks < min({occupancy}, room) else "OK", facts)
""",
    Symptom.TMA: _COMPILED
    + _LAUNCHED
    + """
loads = tensor_loads(cubin)
finish("SYMPTOM" if loads else "OK", f"{{arch}}: {{loads}} TMA loads of tiles with allow_tma=False")
""",
    Symptom.SPILLS: _COMPILED
    + _LAUNCHED
    + """
count = local_accesses(cubin)
facts = f"{{arch}}: {{count}} instructions read or write local memory"
finish("SYMPTOM" if count else "OK", facts)
""",
    Symptom.SLOW: """
code, _, output, cpu = compile_apart(arch, scratch)
if code not in (0, None):
    finish("UNKNOWN", last_words(output))
seconds = sum(cpu.get(name, 0.0) for name in ("tileiras", "ptxas"))
facts = f"compiling for {{arch}} took {{seconds:.1f}} s of CPU ({{shares(cpu)}})"
finish("SYMPTOM" if seconds > {bound} or code is None else "OK", facts)
""",
    Symptom.ENDLESS: """
code, _, output, cpu = compile_apart(arch, scratch)
if code is None:
    words = f"did not end within {{SECONDS:g}} s ({{shares(cpu)}} of CPU)"
    finish("SYMPTOM", f"compiling for {{arch}} {{words}}")
if code != 0:
    finish("UNKNOWN", last_words(output))
finish("OK", f"compiling for {{arch}} ended ({{shares(cpu)}} of CPU)")
""",
    Symptom.FAILS: """
code, _, output, _ = compile_apart(arch, scratch)
if code is None:
    finish("UNKNOWN", f"compiling for {{arch}} did not end within {{SECONDS:g}} s")
words = last_words(output)
if code != 0 and "CompilerExecutionError" in words and not refused(words):
    finish("SYMPTOM", f"compiling for {{arch}} fails: {{words}}")
finish("OK" if code == 0 else "UNKNOWN", f"{{arch}} compiles" if code == 0 else words)
""",
    Symptom.FRONTEND: """
code, _, output, _ = compile_apart(arch, scratch)
words = last_words(output)
if code == 1 and "{error}" in words.partition(":")[0]:
    finish("SYMPTOM", f"tracing the kernel fails: {{words}}")
finish("OK" if code == 0 else "UNKNOWN", "the kernel becomes bytecode" if code == 0 else words)
""",
}


def symptom_lines(
    symptom: Symptom, occupancy: int | None, bound: float | None, error: str, fault: bool
) -> str:
    """The last lines of `main`. `error` is the name of the frontend's exception, `bound` CPU seconds;
    `fault`: on a GPU it is a failing launch that tells."""
    telling = ("fails",) if fault else ("hangs", "differs")
    body = _BODIES[symptom].format(
        occupancy=occupancy, bound=f"{bound or 0:g}", error=error, telling=repr(telling)
    )
    return dedent(body).strip("\n")
