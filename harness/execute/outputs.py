"""What the outputs of a case that ended mean: right, wrong and how, or different on a repeat. Pure."""

from __future__ import annotations

from typing import Any

from harness.execute.protocol import Observation, OutputSeen, RelationSeen
from harness.model import Advice, Judgement, Verdict


def judge_outputs(observation: Observation, evidence: dict[str, Any]) -> Judgement:
    """Judge a case that came to its end by what it wrote; `evidence` is what else was seen of it."""
    evidence = {**evidence, "outputs": [o.to_json() for o in observation.outputs]}
    if observation.inputs_changed:
        names = ", ".join(f"{n} ({c} bytes)" for n, c in observation.inputs_changed.items())
        return Judgement(
            Verdict.WRONG_RESULT,
            "wrong_result: writes outside",
            f"wrote to what it should only read: {names}",
            evidence=evidence,
        )
    if observation.relations:
        evidence["relations"] = [r.to_json() for r in observation.relations]
    wrong = [o for o in observation.outputs if o.wrong]
    broken = [r for r in observation.relations if r.wrong]
    unstable = [o for o in observation.outputs if o.differing]
    if wrong:
        kinds = sorted({kind for o in wrong for kind in _kinds(o)})
        text = "; ".join(_describe(o) for o in wrong)
        return Judgement(Verdict.WRONG_RESULT, f"wrong_result: {', '.join(kinds)}", text, evidence=evidence)
    if unstable:
        names = ", ".join(f"{o.name}: {o.differing} of {o.elements} elements" for o in unstable)
        outputs = ", ".join(o.name for o in unstable)
        return Judgement(
            Verdict.NONDETERMINISTIC,
            f"nondeterministic: {outputs}",
            f"{observation.repeats} launches on the same input disagree ({names})",
            evidence=evidence,
        )
    if broken:
        kinds = sorted({f"{r.output} with {_WAYS[r.kind]}" for r in broken})
        text = "; ".join(_describe_relation(r) for r in broken)
        return Judgement(Verdict.WRONG_RESULT, f"wrong_result: {', '.join(kinds)}", text, evidence=evidence)
    compared = [o for o in observation.outputs if o.compared]
    ulps = ", ".join(f"{o.name} within {o.worst_ulp} ULP (bound {o.bound_ulp})" for o in compared)
    text = ulps or "ended and repeated its own bits; no reference is known to compare with"
    return Judgement(Verdict.PASS, None, text, evidence=evidence, advice=_remarks(observation))


_WAYS = {
    "rows_permuted": "rows permuted",
    "rows_split": "rows in two launches",
    "scaled": "x scaled by a power of two",
}


def _remarks(observation: Observation) -> tuple[Advice, ...]:
    """A relation that fails inside the error bound: another order of additions does that."""
    return tuple(
        Advice(
            "relation_broken",
            f"{r.output} with {_WAYS[r.kind]} has other bits, within the error bound "
            f"({r.differing} of {r.elements} elements)",
        )
        for r in observation.relations
        if r.differing and not r.wrong
    )


def _describe_relation(seen: RelationSeen) -> str:
    what = f"{seen.output} with {_WAYS[seen.kind]}"
    if seen.outside_bytes:
        return f"{what}: {seen.outside_bytes} bytes around or between its elements were overwritten"
    far = f"{seen.beyond_bound} of {seen.elements} elements are outside the error bound"
    return f"{what}: {far}, though the plain launch is right; {seen.pattern}"


def _kinds(output: OutputSeen) -> list[str]:
    kinds = []
    if output.outside_bytes:
        kinds.append("writes outside")
    if output.never_written:
        kinds.append("never written")
    if output.unexpected_nan:
        kinds.append("unexpected NaN")
    if output.missing_nan:
        kinds.append("missing NaN")
    named = output.unexpected_nan + output.missing_nan + output.never_written
    if output.beyond_bound > named or not kinds:
        kinds.append("beyond the bound")
    return [f"{output.name} {kind}" for kind in kinds]


def _describe(output: OutputSeen) -> str:
    parts = []
    if output.outside_bytes:
        parts.append(f"{output.outside_bytes} bytes around or between its elements were overwritten")
    if output.never_written:
        parts.append(f"{output.never_written} of {output.elements} elements were never written")
    if output.beyond_bound > output.never_written or (output.beyond_bound and not parts):
        parts.append(f"{output.beyond_bound} of {output.elements} elements are outside the error bound")
        if output.unexpected_nan:
            parts.append(f"{output.unexpected_nan} of them NaN")
        if output.examples:
            worst = output.examples[0]
            far = (
                ""
                if worst.ulp is None
                else f", {worst.ulp} ULP off where at most {output.bound_ulp} are allowed"
            )
            parts.append(f"the worst at {list(worst.index)} is {worst.got} for {worst.expected}{far}")
    if output.pattern:
        parts.append(output.pattern)
    return f"{output.name}: " + "; ".join(parts)
