"""The deadlock, bisected on the real compilers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.bisect.result import BisectResult
from harness.bisect.search import Ending
from harness.commands.bisect import Options, bisect_command
from harness.toolchain import open_store

pytestmark = [pytest.mark.toolchain, pytest.mark.timeout(900)]

MATRIX = """
[[toolchain]]
cuda_tile = "1.7.0"
cuda_toolkit = "13.3.1"

[target]
arch = ["sm_90", "sm_120"]

[[case]]
kernel = "rmsnorm.static_persistent"
shape = [[16384, 512]]
dtype = "bfloat16"
occupancy = [8, 16]
allow_tma = [true, false]
latency = 10
"""
DEADLOCK = "occupancy=16 allow_tma=false"
INSTALLED = ("components", "frontends", "backends", "locked", "index")


def bisected(out: Path, pattern: str, store: Path | None = None, **options: object) -> BisectResult:
    matrix = out / "matrix.toml"
    matrix.write_text(MATRIX)
    assert bisect_command(pattern, Options(out, store, matrix, **options)) == 0  # type: ignore[arg-type]
    (path,) = (out / "bisect").glob("*/result.json")
    return BisectResult.from_json(json.loads(path.read_text()))


def named(result: BisectResult) -> tuple[str | None, ...]:
    points = (result.last_good, result.first_bad, result.last_bad, result.first_fixed)
    return tuple(point.version if point else None for point in points)


@pytest.fixture
def cold_cubins(tmp_path: Path) -> Path:
    """A store whose toolchains are installed and that remembers no compile."""
    shared, own = open_store().root, tmp_path / "store"
    own.mkdir()
    for name in INSTALLED:
        (own / name).symlink_to(shared / name, target_is_directory=True)
    return own


def test_the_deadlock_on_sm_120(
    tmp_path: Path, cold_cubins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = f"sm_120 {DEADLOCK}"
    warm = tmp_path / "warm"
    warm.mkdir()
    bisected(warm, pattern)
    capsys.readouterr()

    result = bisected(tmp_path, pattern, cold_cubins, offline=True)
    assert named(result) == ("13.1.80", "13.2.51", "13.3.36", "13.4.59")
    assert result.component == "tileiras"
    assert result.accusations[1].blame.is_proven
    assert result.seconds < 120
    versions = [probe for probe in result.probes if probe.stage == "version"]
    assert len(versions) <= 1 + 2 * 4, "at most ⌈log2⌉ + 2 an edge, of at most four versions a side"
    said = capsys.readouterr().out
    assert "first fixed  tileiras 13.4.59  (cuda-toolkit 13.4.1.0)" in said
    assert "cured by     tileiras\n" in said


def test_where_old_compilers_lack_the_architecture(tmp_path: Path) -> None:
    result = bisected(tmp_path, f"sm_90 {DEADLOCK}")
    assert named(result) == (None, "13.3.36", "13.3.36", "13.4.59")
    assert result.older.ending is Ending.UNKNOWN_BEYOND
    assert {point.version for point in result.older.gap} >= {"13.1.80", "13.2.51", "13.2.86"}
    assert result.component == "tileiras"


def test_an_occupancy_hint_that_older_versions_drop(tmp_path: Path) -> None:
    result = bisected(tmp_path, "sm_90 occupancy=16 allow_tma=true", oracle="registers>=255")
    assert named(result)[2:] == ("13.3.36", "13.4.59")
    assert result.component == "tileiras"
