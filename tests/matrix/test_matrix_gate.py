"""The [gate] table of matrix.toml: defaults, values, and every sentence about a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.matrix import GateRules, MatrixError, load_matrix

MATRIX = """
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = "13.3.1"
[target]
arch = "sm_90"
[[case]]
kernel = "rmsnorm.static_persistent"
shape = [16, 512]
dtype = "bfloat16"
[gate]
"""


@pytest.fixture
def rules(tmp_path: Path) -> Callable[[str], GateRules]:
    def load(table: str) -> GateRules:
        (tmp_path / "m.toml").write_text(MATRIX + table)
        return load_matrix(tmp_path / "m.toml").gate

    return load


def test_what_is_not_said_is_a_strict_default(rules: Callable[[str], GateRules]) -> None:
    assert rules("") == GateRules()
    assert GateRules().fail == ("regressed", "newly_bad", "newly_unsupported", "lost")


def test_values(rules: Callable[[str], GateRules]) -> None:
    told = rules('fail = ["regressed", "device_time"]\nwarn = []\nregisters = 8\ndevice_time = 1.25')
    assert told == GateRules(fail=("regressed", "device_time"), warn=(), registers=8, device_time=1.25)


def test_a_default_warning_may_be_made_a_failure(rules: Callable[[str], GateRules]) -> None:
    assert rules('fail = ["registers"]').fail == ("registers",)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            'fail = ["regresed"]',
            '[gate], key "fail", item 1: unknown difference "regresed"; did you mean "regressed"?',
        ),
        (
            'fail = ["compile_seconds"]',
            '[gate], key "fail", item 1: unknown difference "compile_seconds"; known are "regressed", '
            '"newly_bad", "newly_unsupported", "lost", "still_bad", "unknown", "registers", "spills", '
            '"shared_memory", "device_time" and "output_bits"',
        ),
        (
            'fail = ["lost"]\nwarn = ["lost"]',
            '[gate], key "warn", item 1: "lost" is in fail already; remove it from one of them',
        ),
        (
            "device_time = 0.9",
            '[gate], key "device_time": 0.9 is out of range; write a number from 1 to 1000',
        ),
        (
            'fail = "lost"',
            '[gate], key "fail": expected a list, […], found the string "lost"; write '
            'fail = ["regressed", "newly_bad", "newly_unsupported", "lost"], say',
        ),
    ],
)
def test_sentences(rules: Callable[[str], GateRules], table: str, sentence: str) -> None:
    with pytest.raises(MatrixError) as error:
        rules(table)
    (problem,) = error.value.problems
    assert str(problem).endswith(sentence)
    assert problem.line in (12, 13)


def test_the_policy_does_not_change_what_is_asked(tmp_path: Path) -> None:
    digests = set()
    for number, table in enumerate(("", "registers = 8")):
        path = tmp_path / f"{number}.toml"
        path.write_text(MATRIX + table)
        digests.add(load_matrix(path).digest)
    assert len(digests) == 1
