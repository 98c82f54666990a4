from __future__ import annotations

from pathlib import Path

import pytest

from harness.commands.bisect import Options, bisect_command
from harness.commands.explain import NothingToExplain


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"oracle": "registres>3"},
            'nothing called "registres" can be compared; did you mean registers?',
        ),
        ({"over": "driver"}, 'cannot bisect over "driver"; it can be cuda-toolkit or cuda-tile'),
    ],
)
def test_a_wrong_request_is_told_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, str], message: str
) -> None:
    options = Options(tmp_path / "out", tmp_path / "store", **wrong)  # type: ignore[arg-type]
    assert bisect_command("sm_90", options) == 2
    assert capsys.readouterr().err == f"{message}\n"
    assert not (tmp_path / "out").exists()


def test_without_results_there_is_nothing_to_bisect(tmp_path: Path) -> None:
    with pytest.raises(NothingToExplain, match="holds no results"):
        bisect_command("sm_90", Options(tmp_path / "out", tmp_path / "store"))
