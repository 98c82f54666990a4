"""Names that equal findings share.

A signature is `verdict/component/pattern`. The pattern is what remains of a compiler's words once
everything is taken out that differs between two sightings of one fault: addresses, paths, line
numbers, hashes, quoted symbols, tile shapes, architectures and numbers. How a process died stays: "exit
code 7", "signal 35" (most signals have a name).
"""

from __future__ import annotations

import re

from harness.model import Verdict

_PATTERN_LENGTH = 160
_CONSIDERED = 4096
"""Characters of a message that are looked at: a flood of output must not stall the judge."""

# Order matters: a path holds numbers, a hash may look like one.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:\x1b|\\x1b)\[[0-9;?]*[ -/]*[@-~]"), ""),
    (re.compile(r"(?<![\w.>])(?:[A-Za-z]:\\|\.{0,2}/)[^\s:;,'\"()<>]*"), "<path>"),
    (re.compile(r"(?<!\w)[\w.-]+\.(?:py|bc|cubin|ptx|ll|mlir|cpp|cc|c|h|hpp|so(?:\.\d+)*)\b"), "<path>"),
    (re.compile(r"'(cuda_tile\.\w+)'"), r"\1"),  # an operation is what the fault is about
    (re.compile(r"\bTile(?=[A-Z]\w*Error\b)"), ""),  # cuda.tile 1.3 to 1.5 name their exceptions so
    (re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*[`']"), "<name>"),
    (re.compile(r"(?<![\w.])[A-Za-z_]\w*_Kt\d\w*"), "<name>"),
    (re.compile(r"\b0[xX][0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"), "<hash>"),
    (re.compile(r"\b(?:sm|compute)_\d+[af]?\b"), "<arch>"),
    (re.compile(r"\b(?:\d+x)+(?=\w)"), "<shape>x"),
    (re.compile(r"<path>(?::\d+)+"), "<path>"),
    (re.compile(r"(?<!\bexit code )(?<!\bsignal )[-+]?\b\d+(?:\.\d+)*(?:e[-+]?\d+)?\b"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def normalise(message: str) -> str:
    """The part of a message that two sightings of one fault have in common, on one line."""
    message = message[:_CONSIDERED]
    for pattern, replacement in _RULES:
        message = pattern.sub(replacement, message)
    return message.strip()


def signature(verdict: Verdict, component: str | None, message: str) -> str:
    """`verdict/component/pattern`; a component nobody could name is "unknown"."""
    pattern = normalise(message)
    if len(pattern) > _PATTERN_LENGTH:
        pattern = pattern[: _PATTERN_LENGTH - 1].rstrip() + "…"
    return f"{verdict}/{component or 'unknown'}/{pattern or 'no message'}"


_MUTE = re.compile(r"(?:no diagnosis|[:/] ?SIG[A-Z]+|/no message)$")
_MUTE_VERDICTS = (Verdict.WRONG_RESULT, Verdict.NONDETERMINISTIC, Verdict.DEVICE_FAULT, Verdict.HANG)


def is_mute(name: str) -> bool:
    """Whether a signature tells how something ended and nothing about the fault behind it: an exit code, a
    signal without a word, a wrong number. Two kernels that end so need not share a fault."""
    if name.startswith(tuple(str(verdict) for verdict in _MUTE_VERDICTS)):
        return "register pool" not in name
    return _MUTE.search(name) is not None
