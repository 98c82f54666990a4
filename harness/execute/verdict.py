"""What an observation means: one word, a signature, a sentence. Pure, so old runs can be judged again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.execute.coredump import explain, pattern, summarise
from harness.execute.outputs import judge_outputs
from harness.execute.protocol import Observation, Outcome, Stage
from harness.model import Inspection, Judgement, PoolAnswer, Verdict

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
    return judge_outputs(observation, _seen(observation))


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
