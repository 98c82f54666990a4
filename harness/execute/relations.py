"""Second ways to the same answer, for which no reference is needed (metamorphic relations).

The same cubin is launched again on inputs that were changed so that the outputs must follow, bit for bit:

- `rows_permuted`: rows of inputs in another order give the same rows of outputs in that order;
- `rows_split`: the first rows and the rest in launches of their own give what one launch gave;
- `scaled`: x times a power of two leaves y's bits alone and divides rstd by it. With eps baked into
  the cubin that holds only where eps is lost in the rounding of the mean, so two scales are compared at
  which it surely is, and only where neither overflows nor meets a subnormal number.

Other bits inside the error bound are a remark (the order of additions may depend on where a row lies);
outside it, or outside the arrays, they are a wrong result that the plain launch did not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.execute.arena import Elements
from harness.execute.formats import Array, format_of
from harness.execute.protocol import ArrayValue, Launch, Relation

SCALE_STEP = 4
"""Binades between the two scales that are compared."""

_EPS_LOST = 50
"""A product of two float32 numbers has 48 bits: an eps below 2^-50 of the mean is lost in its rounding."""


@dataclass(frozen=True)
class Run:
    """One launch of a relation: its arguments and grid, and what is in its inputs."""

    launch: Launch
    inputs: dict[str, Array]


def runs(launch: Launch, relation: Relation, inputs: Mapping[str, Array]) -> list[Run]:
    """The launches a relation asks for; none where it does not hold for these inputs."""
    once = replace(launch, repeats=1, relations=(), timed=False)
    if relation.kind == "rows_permuted":
        order = permutation(launch, relation.parts[0][0])
        moved = {
            n: np.take(v, order, relation.axes[n]) if n in relation.axes else v for n, v in inputs.items()
        }
        return [Run(once, moved)]
    if relation.kind == "rows_split":
        return _split(once, relation, inputs)
    if relation.kind == "scaled":
        return _scaled(once, inputs)
    raise ValueError(f"unknown relation {relation.kind!r}")


def wanted(
    launch: Launch, relation: Relation, name: str, base: Elements, got: list[Elements]
) -> tuple[Elements, Elements]:
    """The bits that were got of an output and the bits they must equal, given those of the plain launch.

    Arrays of unsigned integers in logical order; `got` has one per run.
    """
    axis = relation.axes.get(name)
    if relation.kind == "rows_permuted":
        return got[0], base if axis is None else np.take(base, permutation(launch, base.shape[axis]), axis)
    if relation.kind == "rows_split":
        return (got[0], base) if axis is None else (np.concatenate(got, axis), base)
    smaller, larger = got
    return larger, _SCALED[_reference(launch)].follow(launch, name, smaller)


def permutation(launch: Launch, rows: int) -> Array:
    return np.random.Generator(np.random.PCG64(launch.seed)).permutation(rows)


def _split(launch: Launch, relation: Relation, inputs: Mapping[str, Array]) -> list[Run]:
    found, start = [], 0
    for rows, grid in relation.parts:
        here = slice(start, start + rows)
        arguments = tuple(
            replace(a, shape=_with(a.shape, relation.axes[a.name], rows))
            if isinstance(a, ArrayValue) and a.name in relation.axes
            else a
            for a in launch.arguments
        )
        part = {
            n: v[(slice(None),) * relation.axes[n] + (here,)] if n in relation.axes else v
            for n, v in inputs.items()
        }
        found.append(Run(replace(launch, arguments=arguments, grid=grid), part))
        start += rows
    return found


def _with(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


# --- scaling ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaling:
    """How a reference's answer follows when one input is multiplied by a power of two.

    `least` gives the smallest exponent from which on the relation holds for these inputs, None
    where it holds for none; `follow` the bits of an output at a scale larger by `SCALE_STEP`.
    """

    role: str
    least: Callable[[Array, Mapping[str, float]], int | None]
    follow: Callable[[Launch, str, Elements], Elements]


def _scaled(launch: Launch, inputs: Mapping[str, Array]) -> list[Run]:
    rule = _SCALED.get(_reference(launch))
    if rule is None or launch.reference is None:
        return []
    name = launch.reference.roles.get(rule.role, rule.role)
    values = inputs[name]
    least = rule.least(values, launch.reference.parameters)
    if least is None:
        return []
    found = []
    for exponent in (least, least + SCALE_STEP):
        scaled = np.ldexp(values.astype(np.float64), exponent).astype(values.dtype)
        found.append(Run(launch, {**inputs, name: scaled}))
    return found


def _reference(launch: Launch) -> str:
    return launch.reference.name if launch.reference else ""


def least_rmsnorm_scale(x: Array, parameters: Mapping[str, float]) -> int | None:
    """The exponent from which on eps cannot be told in y's bits, if scaling stays exact up to there."""
    form = format_of(x.dtype.name)
    wide = np.abs(x.astype(np.float64))
    if form is None or form.saturates or not wide.size or not np.isfinite(wide).all() or not wide.any():
        return None
    means = np.square(wide).mean(axis=1)
    eps = float(np.float32(parameters["eps"]))
    exponent = 0
    if eps > 0:
        gap = _EPS_LOST + math.log2(eps) - math.log2(float(means[means > 0].min()))
        exponent = max(0, math.ceil(gap / 2))
    top = math.log2(float(wide.max())) + exponent + SCALE_STEP
    bottom = math.log2(float(wide[wide > 0].min())) + exponent
    if top >= math.log2(form.largest) or 2 * top + math.log2(x.shape[1]) >= 126 or 2 * bottom <= -126:
        return None
    return exponent


def _follow_rmsnorm(launch: Launch, name: str, smaller: Elements) -> Elements:
    """y keeps its bits; rstd is divided by the scale, but for rows of zeros, where eps alone speaks."""
    roles = launch.reference.roles if launch.reference else {}
    if name != roles.get("rstd", "rstd"):
        return smaller
    eps = np.float32(launch.reference.parameters["eps"] if launch.reference else 0)
    values = smaller.view(np.float32)
    with np.errstate(divide="ignore"):
        alone = values >= np.float32(0.999) / np.sqrt(eps)
    return np.where(alone, values, np.ldexp(values, -SCALE_STEP)).view(smaller.dtype)


_SCALED: dict[str, Scaling] = {"rmsnorm": Scaling("x", least_rmsnorm_scale, _follow_rmsnorm)}
"""Scaling rules by the reference's name."""
