"""What the command line answers to a wrong request: one sentence, the right exit code, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.cli import app

_ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def work_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def harness(*arguments: str) -> Result:
    """The command in this process, where it costs no start of Python."""
    return CliRunner().invoke(app, list(arguments))


def test_missing_file(tmp_path: Path) -> None:
    """In a process of its own, as everybody calls it."""
    command = [sys.executable, "-m", "harness", "run", "absent.toml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("absent.toml: does not exist; name a matrix file")
    assert "python -m harness run" in done.stderr
    assert not (tmp_path / "harness-results").exists()


def test_broken_toml(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").write_text("[target\n")
    done = harness("run", "matrix.toml")
    assert done.exit_code == 2
    assert done.stderr.startswith("matrix.toml:1:")


def test_no_network_and_an_empty_store(tmp_path: Path) -> None:
    done = harness("run", str(_ROOT / "matrix.toml"), "--store", str(tmp_path / "store"), "--offline")
    assert done.exit_code == 2
    assert str(tmp_path / "store") in done.stderr
    assert "network" in done.stderr or "offline" in done.stderr
    assert "Traceback" not in done.stderr


def test_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = harness("run", str(_ROOT / "matrix.toml"), "--store", str(tmp_path / "file/store"))
    assert done.exit_code == 2
    assert str(tmp_path / "file/store") in done.stderr
    assert "HARNESS_STORE" in done.stderr


@pytest.mark.parametrize("shard", ["0/2", "3/2", "a/b", "2", "1/0", "١/٢", "1/²", "1/" + "9" * 5000])
def test_a_shard_that_is_none(shard: str) -> None:
    done = CliRunner().invoke(app, ["run", "matrix.toml", "--shard", shard])
    assert done.exit_code == 2


def test_explain_without_results(tmp_path: Path) -> None:
    done = harness("explain", "abcd", "--out", str(tmp_path / "nothing"))
    assert done.exit_code == 2
    assert "holds no results; run: python -m harness run" in done.stderr


def test_a_bundle_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("no zip")
    assert harness("execute", str(tmp_path / "absent")).exit_code == 2
    done = harness("execute", str(tmp_path / "b"))
    assert done.exit_code == 2
    assert "is not a bundle of this harness" in done.stderr


def test_schema_is_json_schema() -> None:
    done = CliRunner().invoke(app, ["schema"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["type"] == "object"


def test_every_command_has_help() -> None:
    listing = CliRunner().invoke(app, ["--help"])
    assert listing.exit_code == 0
    for name in ("run", "compile", "execute", "merge", "explain", "bisect", "doctor", "schema", "clean"):
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
        assert name in listing.stdout


def test_every_command_shows_an_example() -> None:
    for command in app.registered_commands:
        name = command.name or command.callback.__name__.rstrip("_")
        assert "Example: python -m harness " in (command.epilog or ""), name


@pytest.mark.parametrize(
    "shell",
    ["bash", pytest.param("zsh", marks=pytest.mark.slow), pytest.param("fish", marks=pytest.mark.slow)],
)
def test_shells_complete_commands_and_options(shell: str) -> None:
    complete = shutil.which("tile-harness", path=str(Path(sys.executable).parent))
    if complete is None:
        pytest.skip("the console script is not installed")
    told_which = {
        **os.environ,
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }  # not to guess by the parent
    script = subprocess.run(
        [complete, "--show-completion", shell],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=told_which,
    )
    assert "_TILE_HARNESS_COMPLETE" in script.stdout
    words = {"COMP_WORDS": "tile-harness ga", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "tile-harness ga"}
    words["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    environment = {**os.environ, **words, "_TILE_HARNESS_COMPLETE": f"complete_{shell}"}
    found = subprocess.run(
        [complete], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert "gate" in found.stdout


def test_plain_means_no_colour_and_no_live_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "")
    done = CliRunner().invoke(app, ["--plain", "explain", "abcd", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "\x1b" not in done.output


@pytest.mark.parametrize("command", ["run", "compile", "clean", "doctor"])
def test_an_empty_store_is_not_the_working_directory(tmp_path: Path, command: str) -> None:
    done = harness(command, "--store", "")
    assert done.exit_code == 2
    assert "an empty path" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--out", "--bundle", "--known-issues"])
def test_an_empty_path_is_refused(tmp_path: Path, option: str) -> None:
    done = harness("compile", option, "")
    assert done.exit_code == 2
    assert "an empty path" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["schema"],
        *(pytest.param(w, marks=pytest.mark.slow) for w in (["--help"], ["--version"], ["doctor", "--json"])),
    ],
)
def test_output_that_cannot_be_written(arguments: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "HARNESS_STORE": str(tmp_path / "store"), "PIP_NO_INDEX": "1"},
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "the machine failed: [Errno 28] No space left on device: 'standard output'\n"


def test_output_that_nobody_reads_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "harness", "schema"],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
