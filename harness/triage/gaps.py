"""What of a file a triage did not ask about, and so whether it may say that all is well. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.matrix.problems import listing
from harness.triage.findings import KernelFinding
from harness.triage.look import Seen


def stop(seen: Seen) -> str:
    """What the reader is told where the script launched more than was recorded; empty if it did not."""
    if not seen.stopped:
        return ""
    many = "1 launch" if seen.different_launches == 1 else f"{seen.different_launches} different launches"
    return f"recording stopped at {many}; later ones were not asked about"


def gaps(seen: Seen, labels: Iterable[str], found: Sequence[KernelFinding]) -> list[str]:
    """A sentence for everything of the file, of kernels of these labels, that no compiler was asked about."""
    answered = {one.kernel for one in found}
    silent = [label for label in dict.fromkeys(labels) if label not in answered]
    told = [stop(seen)] if seen.stopped else []
    return [*told, *([f"not asked about: {listing(silent, limit=4)}"] if silent else [])]


def exit_code(found: Sequence[KernelFinding], gaps: Sequence[str]) -> int:
    """1 if something was found, 0 if all that the file launches was asked about and compiles, else 2."""
    if any(one.is_something for one in found):
        return 1
    return 0 if found and not gaps and all(one.passes for one in found) else 2
