"""What an observation means: one word, a signature, a sentence. Pure, so old runs can be judged again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.execute.coredump import explain, pattern, summarise
from harness.execute.protocol import Observation, Outcome, OutputSeen, RelationSeen, Stage
from harness.model import Advice, Inspection, Judgement, PoolAnswer, Verdict

Sass = Mapping[int, tuple[str, str | None]]

_MACHINE_FAULTS = frozenset(
    {"CUDA_ERROR_ECC_UNCORRECTABLE", "CUDA_ERROR_CONTAINED", "CUDA_ERROR_EXTERNAL_DEVICE"}
)
"""Faults of the hardware, of which no kernel is guilty."""


def judge_run(
    observation: Observation, inspection: Inspection | None = None, sass: Sass | None = None
) -> Judgement:
    """Judge what was seen of a case on a GPU.

    `inspection` adds what the machine code said beforehand; `sass` (byte offset to instruction and
    source line) names the instructions under the warps of a hang.
    """
    last = _judge_one(observation, inspection, sass)
    earlier = [_judge_one(Observation.from_json(a), inspection, sass) for a in observation.attempts]
    evidence = {**last.evidence, **_static(observation, inspection)}
    if observation.confirmed_by:
        evidence["confirmed_by"] = observation.confirmed_by
    elif earlier:
        evidence["confirmed"] = all(e.verdict is last.verdict for e in earlier)
    if any(e.verdict is not last.verdict for e in earlier):
        return _flaky([*earlier, last], evidence)
    if earlier and not last.evidence.get("evidence"):
        kept = next((e.evidence["evidence"] for e in earlier if e.evidence.get("evidence")), None)
        if kept:
            evidence["evidence"] = kept
    return replace(last, evidence=evidence)


def _flaky(judgements: list[Judgement], evidence: dict[str, Any]) -> Judgement:
    """The verdict changed in a fresh process; no finding where the machine was to blame for one of them."""
    words = [j.verdict.value for j in judgements]
    unknown = next((j for j in judgements if j.verdict.is_unknown), None)
    evidence = {**evidence, "verdicts": [j.to_json() for j in judgements]}
    if unknown is not None:
        return replace(unknown, evidence=evidence)
    distinct = " / ".join(sorted(set(words)))
    return Judgement(
        Verdict.FLAKY,
        f"flaky: {distinct}",
        f"was {', then '.join(words)} in a fresh process: {judgements[0].summary}",
        evidence=evidence,
    )


def _static(observation: Observation, inspection: Inspection | None) -> dict[str, Any]:
    """What the register-pool books foretold, beside what happened."""
    if inspection is None or inspection.books is None:
        return {}
    answer = inspection.books.answer
    agrees: bool | None = None
    if answer is not PoolAnswer.UNKNOWN and observation.outcome in (Outcome.DONE, Outcome.HANG):
        agrees = (answer is PoolAnswer.IMPOSSIBLE) == (observation.outcome is Outcome.HANG)
    return {"static": {"books": answer.value, "agrees": agrees, "proof": list(inspection.books.proof)}}


def _judge_one(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    if observation.unkillable:
        return Judgement(
            Verdict.UNKILLABLE,
            f"unkillable: {observation.stage.value}",
            f"survived SIGKILL while in stage {observation.stage.value}; its GPU was set aside",
            evidence=_seen(observation),
        )
    return _JUDGES[observation.outcome](observation, inspection, sass)


def _seen(observation: Observation) -> dict[str, Any]:
    plain = observation.to_json()
    kept = (
        "stage",
        "error",
        "call",
        "message",
        "seconds",
        "exit_code",
        "signal",
        "stderr",
        "evidence",
        "gpu",
        "timing",
    )
    return {key: plain[key] for key in kept if plain[key] not in (None, "", {})}


# --- one judge per outcome ----------------------------------------------------------------------


def _done(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    evidence = {**_seen(observation), "outputs": [o.to_json() for o in observation.outputs]}
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


def _hang(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    evidence = _seen(observation)
    seen = observation.evidence
    waited = f"{seen.waited_seconds:.1f} s" if seen else "its deadline"
    text = f"the GPU did not end stage {observation.stage.value} within {waited}"
    shape = ""
    if seen is not None and seen.warps:
        sites = inspection.books.sites if inspection is not None and inspection.books is not None else ()
        warps = explain(seen.warps, sites, sass)
        summary, shape = summarise(warps), pattern(warps)
        text += f": {summary}"
        evidence["evidence"] = replace(seen, warps=warps, summary=summary, pattern=shape).to_json()
    if inspection is not None and inspection.books is not None:
        impossible = inspection.books.answer is PoolAnswer.IMPOSSIBLE
        shape = "register pool cannot pay" if impossible else shape  # the same with a core dump and without
    signature = f"hang: {observation.stage.value}" + (f", {shape}" if shape else "")
    return Judgement(Verdict.HANG, signature, text, evidence=evidence)


def _fault(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    evidence = _seen(observation)
    if observation.error in _MACHINE_FAULTS:
        return Judgement(
            Verdict.INFRA_ERROR,
            f"infra_error: {observation.error}",
            f"the GPU reported {observation.error}: a fault of the hardware",
            evidence=evidence,
        )
    text = f"the GPU trapped in stage {observation.stage.value}: {observation.error}"
    seen = observation.evidence
    if seen is not None and seen.summary:
        text += f"; {seen.summary}"
    return Judgement(Verdict.DEVICE_FAULT, f"device_fault: {observation.error}", text, evidence=evidence)


def _refused(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    if observation.stage is Stage.COMPILE:
        words = _first_line(observation.message)
        return Judgement(
            Verdict.COMPILE_ERROR,
            f"compile_error/cuda-tile/{observation.error}: {_normalise(words)}",
            f"cuda.tile failed at the first launch: {words}",
            component="cuda-tile",
            evidence=_seen(observation),
        )
    what = "module" if observation.stage is Stage.LOAD else "launch"
    return Judgement(
        Verdict.LAUNCH_ERROR,
        f"launch_error: {observation.stage.value}, {observation.error}",
        f"the driver refused the {what}: {observation.message or observation.error}",
        evidence=_seen(observation),
    )


def _out_of_memory(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    return Judgement(
        Verdict.OUT_OF_MEMORY,
        f"out_of_memory: {observation.stage.value}",
        f"the GPU ran out of memory in stage {observation.stage.value} ({observation.call})",
        evidence=_seen(observation),
    )


def _crash(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    if observation.signal is not None:
        how = f"signal {observation.signal}"
    elif observation.exit_code is not None:
        how = f"exit code {observation.exit_code}"
    else:
        how = "no exit code"
    detail = _first_line(observation.message)
    return Judgement(
        Verdict.WORKER_CRASH,
        f"worker_crash: {observation.stage.value}, {how}",
        f"the GPU process died in stage {observation.stage.value} with {how}"
        + (f": {detail}" if detail else ""),
        evidence=_seen(observation),
    )


def _host(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    if observation.stage is Stage.COMPILE and observation.outcome is Outcome.HOST_TIMEOUT:
        return Judgement(
            Verdict.COMPILE_TIMEOUT,
            "compile_timeout/cuda-tile/the first launch does not return",
            f"cuda.tile did not compile the kernel in time: {observation.message}",
            component="cuda-tile",
            evidence=_seen(observation),
        )
    text = (
        _last_line(observation.message) or f"stage {observation.stage.value} did not end in time on the host"
    )
    return Judgement(
        Verdict.INFRA_ERROR,
        f"infra_error: {observation.outcome.value}, {_normalise(text)}",
        f"the harness failed in stage {observation.stage.value}: {text}",
        evidence=_seen(observation),
    )


def _tainted(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    text = observation.message or "came behind a failed canary"
    return Judgement(Verdict.TAINTED, None, text, evidence=_seen(observation))


def _not_run(observation: Observation, inspection: Inspection | None, sass: Sass | None) -> Judgement:
    return Judgement(Verdict.NOT_RUN, None, observation.message or "was not run", evidence=_seen(observation))


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


def _normalise(text: str) -> str:
    """Without addresses, numbers and paths, so that equal failures read alike."""
    text = re.sub(r"0x[0-9a-fA-F]+", "0x…", text)
    text = re.sub(r"(/[^\s:'\"]+)+", "…", text)
    return re.sub(r"\d+(\.\d+)?", "#", text)


_JUDGES = {
    Outcome.DONE: _done,
    Outcome.HANG: _hang,
    Outcome.FAULT: _fault,
    Outcome.REFUSED: _refused,
    Outcome.OUT_OF_MEMORY: _out_of_memory,
    Outcome.CRASH: _crash,
    Outcome.GARBLED: _crash,
    Outcome.HOST_TIMEOUT: _host,
    Outcome.HOST_ERROR: _host,
    Outcome.NO_WORKER: _host,
    Outcome.TAINTED: _tainted,
    Outcome.NOT_RUN: _not_run,
}

assert set(_JUDGES) == set(Outcome)
