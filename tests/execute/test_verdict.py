"""From an observation to a word: total, stable, and honest about what is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execute.protocol import (
    DEVICE_STAGES,
    Evidence,
    Mismatch,
    Observation,
    Outcome,
    OutputSeen,
    Stage,
)
from harness.execute.verdict import judge_run
from harness.model import Inspection, Judgement, PoolAnswer, PoolBooks, Verdict

GOOD = OutputSeen("y", "00" * 32, 100, compared=True, worst_ulp=1, bound_ulp=1)
DONE = Observation("c", Outcome.DONE, Stage.COMPARE, repeats=3, outputs=(GOOD,))


def inspection_of(answer: PoolAnswer) -> Inspection:
    books = PoolBooks(answer, 24, 256, (), (), 1024, 0, 0, ("nothing is freed",))
    return Inspection("k", "sm_90", 24, 256, 0, 0, books=books)


observations = st.builds(
    Observation,
    case=st.just("c"),
    outcome=st.sampled_from(Outcome),
    stage=st.sampled_from(Stage),
    error=st.sampled_from([None, "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ECC_UNCORRECTABLE"]),
    message=st.text(max_size=30),
    signal=st.sampled_from([None, 9, 11]),
    exit_code=st.sampled_from([None, 0, 1]),
    unkillable=st.booleans(),
    evidence=st.sampled_from([None, Evidence(waited_seconds=5.0)]),
)


@given(observations, st.sampled_from([None, *PoolAnswer]), st.lists(observations, max_size=1))
def test_every_observation_has_a_verdict(
    observation: Observation, answer: PoolAnswer | None, earlier: list[Observation]
) -> None:
    seen = replace(observation, attempts=tuple(e.to_json() for e in earlier))
    seen = Observation.from_json(seen.to_json())
    judgement = judge_run(seen, inspection_of(answer) if answer else None)
    assert judgement.summary
    assert (judgement.signature is None) <= (not judgement.verdict.is_finding)
    assert Judgement.from_json(judgement.to_json()) == judgement
    if earlier and judgement.verdict.is_finding and judgement.verdict is not Verdict.FLAKY:
        assert judge_run(replace(seen, attempts=())).verdict is judge_run(earlier[0]).verdict


@given(observations)
def test_a_host_that_failed_is_never_the_kernels_fault(observation: Observation) -> None:
    judgement = judge_run(replace(observation, unkillable=False))
    if (observation.outcome, observation.stage) == (Outcome.HOST_TIMEOUT, Stage.COMPILE):
        assert judgement.verdict is Verdict.COMPILE_TIMEOUT  # cuda.tile's own compile is no work of ours
    elif observation.outcome in (Outcome.HOST_ERROR, Outcome.HOST_TIMEOUT, Outcome.NO_WORKER):
        assert not judgement.verdict.is_finding


def test_stages_of_the_host_are_not_the_gpus() -> None:
    assert {Stage.START_UP, Stage.COMPARE}.isdisjoint(DEVICE_STAGES)


def test_pass_states_its_bound() -> None:
    judgement = judge_run(DONE)
    assert judgement.verdict is Verdict.PASS
    assert judgement.summary == "y within 1 ULP (bound 1)"
    plain = replace(DONE, outputs=(replace(GOOD, compared=False),))
    assert (
        judge_run(plain).summary == "ended and repeated its own bits; no reference is known to compare with"
    )


@pytest.mark.parametrize(
    ("changes", "signature", "words"),
    [
        (
            {
                "beyond_bound": 2,
                "pattern": "2 of 100 elements, between 3 and 4 of the flattened array",
                "examples": (Mismatch((3,), 1.5, 1.0, 64),),
            },
            "wrong_result: y beyond the bound",
            "y: 2 of 100 elements are outside the error bound; the worst at [3] is 1.5 for 1.0, 64 ULP off "
            "where at most 1 are allowed; 2 of 100 elements, between 3 and 4 of the flattened array",
        ),
        (
            {"never_written": 7, "beyond_bound": 7},
            "wrong_result: y never written",
            "y: 7 of 100 elements were never written",
        ),
        (
            {"outside_bytes": 4},
            "wrong_result: y writes outside",
            "y: 4 bytes around or between its elements were overwritten",
        ),
        (
            {"beyond_bound": 3, "unexpected_nan": 3},
            "wrong_result: y unexpected NaN",
            "y: 3 of 100 elements are outside the error bound; 3 of them NaN",
        ),
    ],
)
def test_wrong_results_in_words(changes: dict[str, object], signature: str, words: str) -> None:
    judgement = judge_run(replace(DONE, outputs=(replace(GOOD, **changes),)))  # type: ignore[arg-type]
    assert (judgement.verdict, judgement.signature) == (Verdict.WRONG_RESULT, signature)
    assert judgement.summary == words


def test_a_broken_machine_is_no_device_fault() -> None:
    seen = Observation("c", Outcome.FAULT, Stage.LAUNCH, error="CUDA_ERROR_ECC_UNCORRECTABLE")
    assert judge_run(seen).verdict is Verdict.INFRA_ERROR
    flaky = replace(DONE, attempts=(seen.to_json(),))
    assert judge_run(flaky).verdict is Verdict.INFRA_ERROR


@pytest.mark.parametrize(
    ("answer", "outcome", "agrees"),
    [
        (PoolAnswer.IMPOSSIBLE, Outcome.HANG, True),
        (PoolAnswer.IMPOSSIBLE, Outcome.DONE, False),
        (PoolAnswer.BALANCED, Outcome.DONE, True),
        (PoolAnswer.BALANCED, Outcome.HANG, False),
        (PoolAnswer.UNKNOWN, Outcome.HANG, None),
        (PoolAnswer.BALANCED, Outcome.FAULT, None),
    ],
)
def test_books_and_outcome_are_set_side_by_side(
    answer: PoolAnswer, outcome: Outcome, agrees: bool | None
) -> None:
    judgement = judge_run(Observation("c", outcome, Stage.LAUNCH), inspection_of(answer))
    assert judgement.evidence["static"] == {
        "books": answer.value,
        "agrees": agrees,
        "proof": ["nothing is freed"],
    }


def test_equal_failures_of_our_own_read_alike() -> None:
    def signature(text: str) -> str | None:
        return judge_run(Observation("c", Outcome.HOST_ERROR, Stage.PREPARE, message=text)).signature

    first = signature("Traceback\nOSError: [Errno 2] No such file: '/a/b/c.cubin' at 0xdead")
    assert first == signature("Traceback\nOSError: [Errno 5] No such file: '/d/e.cubin' at 0xbeef")
