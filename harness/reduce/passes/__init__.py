"""Everything that makes a kernel's source smaller, in the order in which it is tried."""

from __future__ import annotations

from harness.reduce.candidate import Candidate
from harness.reduce.engine import Pass
from harness.reduce.passes import expressions, parameters, statements, tidy

SOURCE_PASSES: tuple[Pass[Candidate], ...] = (
    statements.drop_unused_definitions(),
    tidy.tidy(),
    parameters.inline_constants(),
    *(statements.drop_runs(length) for length in (16, 8, 4, 2, 1)),
    statements.drop_with_dependents(),
    parameters.drop_unused_parameters(),
    statements.unwrap_blocks(),
    expressions.drop_arguments(),
    expressions.hoist_operands(),
    statements.assign_plainly(),
    statements.drop_unread(),
    parameters.merge_arrays(),
    expressions.plain_numbers(),
    statements.drop_unread(),
    parameters.drop_unused_parameters(),
    parameters.fewer_hints(),
    expressions.smaller_numbers(),
    statements.inline_single_uses(),
    statements.drop_pairs(),
    tidy.drop_annotations(),
)
"""Cheap large cuts first: each statement that goes early saves all variants of what is in it."""

FINAL_PASSES: tuple[Pass[Candidate], ...] = (tidy.tidy(), tidy.short_names())
"""For the reader's sake, once nothing more can go."""

__all__ = ["FINAL_PASSES", "SOURCE_PASSES"]
