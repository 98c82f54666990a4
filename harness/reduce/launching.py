"""What a launch of a reduced kernel needs to know about its arrays. Pure."""

from __future__ import annotations

from harness.kernels.description import Kernel
from harness.model import Array, Case
from harness.reduce.candidate import Candidate
from harness.reduce.reduced import LaunchArray
from harness.reduce.syntax import role


def launch_arrays(kernel: Kernel, case: Case, before: Candidate, after: Candidate) -> tuple[LaunchArray, ...]:
    """Where the arrays that remain lie, as far as the original kernel or its case says; renaming keeps their
    order."""
    described = kernel.described_by(case)
    if not described.arguments or (case.parameters and case.run is None):
        return ()
    placed = {p.name: p for p in described.placements(case)}
    return tuple(
        LaunchArray(
            name=new.name,
            original=old.name,
            dtype=placed[old.name].dtype,
            shape=placed[old.name].shape,
            strides=placed[old.name].strides,
            offset=placed[old.name].offset,
            role=role(new.name, after.text),
        )
        for old, new in zip(before.parameters, after.parameters, strict=True)
        if isinstance(new, Array)
    )
