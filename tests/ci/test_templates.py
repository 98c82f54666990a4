"""The CI templates: valid by the schemas of their makers, sound shell, and their commands run.

The toolchain tests act a little of each CI server: they run the commands of the templates, shard by shard and
job by job, on a small matrix, and hand on what the template hands on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "ci" / "templates"
SHELL = [ROOT / "ci" / "gate.sh", *sorted(TEMPLATES.glob("*.sh"))]
BIN = Path(sys.executable).parent

MATRIX = """
[[toolchain]]
cuda_tile = "1.5.0"
cuda_toolkit = ["13.3.1", "13.4.3"]
[target]
arch = ["sm_90", "sm_120"]
[[device]]
name = "h200"
gpu = "H200"
arch = "sm_90"
[[case]]
kernel = "rmsnorm.static_persistent"
shape = [16384, 512]
dtype = "bfloat16"
occupancy = [2, 16]
allow_tma = false
latency = 10
"""


def tool(name: str) -> str:
    path = shutil.which(name, path=str(BIN)) or shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed; it is among the test extras")
    return path


def output_of(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize(
    ("schema", "template"),
    [("github-workflows", "github-actions.yml"), ("gitlab-ci", "gitlab-ci.yml")],
)
def test_templates_satisfy_the_schemas_of_their_servers(schema: str, template: str) -> None:
    done = output_of(tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", TEMPLATES / template)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_shell_scripts_are_sound(script: Path) -> None:
    assert output_of("bash", "-n", script).returncode == 0
    done = output_of(tool("shellcheck"), script)
    assert done.returncode == 0, done.stdout
    assert os.access(script, os.X_OK)


def steps() -> Iterator[tuple[str, str]]:
    """Every piece of shell in the templates that are not shell themselves, with where it is."""
    workflow = yaml.safe_load((TEMPLATES / "github-actions.yml").read_text())
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            if "run" in step:
                yield f"github {name} {step['name']}", re.sub(r"\$\{\{.*?\}\}", "1", step["run"])
    for name, job in gitlab_jobs().items():
        for line in [*job.get("before_script", []), *job["script"]]:
            yield f"gitlab {name}", line
    for number, block in enumerate(jenkins_blocks()):
        yield f"jenkins {number}", block


def gitlab_jobs() -> dict[str, Any]:
    pipeline = yaml.safe_load((TEMPLATES / "gitlab-ci.yml").read_text())
    return {name: pipeline[name] for name in pipeline["stages"]}


def jenkins_blocks() -> list[str]:
    return re.findall(r"sh '''\n(.*?)'''", (TEMPLATES / "Jenkinsfile").read_text(), re.DOTALL)


@pytest.mark.parametrize(("where", "text"), list(steps()))
def test_shell_in_templates_is_sound(tmp_path: Path, where: str, text: str) -> None:
    script = tmp_path / "step.sh"
    script.write_text(f"#!/usr/bin/env bash\n{text}\n")
    done = output_of(tool("shellcheck"), script)
    assert done.returncode == 0, f"{where}: {done.stdout}"


def test_the_jenkinsfile_is_balanced_and_reports() -> None:
    text = re.sub(r"//.*", "", (TEMPLATES / "Jenkinsfile").read_text())
    for opening, closing in ("{}", "()", "[]"):
        outside = re.sub(r"'''.*?'''|'[^'\n]*'", "", text, flags=re.DOTALL)
        assert outside.count(opening) == outside.count(closing)
    assert len(re.findall(r"stage\('(?:compile|execute|gate)'\)", text)) == 3
    assert "junit testResults: 'gate-results/junit.xml'" in text


def test_gate_sh_says_how_it_is_called() -> None:
    done = output_of(ROOT / "ci" / "gate.sh", "13.3.1")
    assert done.returncode == 2
    assert "ci/gate.sh BASELINE CANDIDATE" in done.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_gate_sh_hands_on_the_exit_code_and_the_arguments(tmp_path: Path, code: int) -> None:
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\nprintf "%s|" "$@"\nexit {code}\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [ROOT / "ci" / "gate.sh", "a b", "c", "m.toml", "out", "--results-baseline", "x y"],
        env={**os.environ, "PYTHON": str(fake)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = "-m|harness|gate|m.toml|--baseline|a b|--candidate|c|--out|out|--results-baseline|x y|"
    assert (done.returncode, done.stdout) == (code, said)
    assert (tmp_path / "out" / "gate.txt").read_text() == said


# --- acting the servers -----------------------------------------------------------------------


class Machine:
    """A checkout with a small matrix, in which commands of a template run."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / "ci", folder / "ci", dirs_exist_ok=True)
        (folder / "matrix.toml").write_text(MATRIX)
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
        self.environment = {**kept, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
        self.environment |= environment

    def run(self, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", text],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done

    def decision(self) -> str:
        assert {path.name for path in (self.folder / "gate-results").iterdir()} >= {
            *("gate.md", "gate.json", "junit.xml", "report.html")
        }
        told = json.loads((self.folder / "gate-results" / "gate.json").read_text())
        kinds = {reason["kind"] for reason in told["reasons"]}
        assert "fixed" in kinds
        assert told["counts"]["good"] == 2
        return str(told["decision"])


@pytest.mark.toolchain
@pytest.mark.timeout(900)
def test_the_github_workflow_runs(tmp_path: Path) -> None:
    workflow = yaml.safe_load((TEMPLATES / "github-actions.yml").read_text())
    artifacts = tmp_path / "artifacts"
    summary = tmp_path / "summary.md"
    said = ""
    for name, job in workflow["jobs"].items():
        for shard in job.get("strategy", {}).get("matrix", {}).get("shard", [0]):
            machine = Machine(
                tmp_path / f"{name}-{shard}",
                GITHUB_ACTIONS="true",
                GITHUB_STEP_SUMMARY=str(summary),
                **{key: value for key, value in workflow["env"].items() if key != "HARNESS_STORE"},
            )
            for step in job["steps"]:
                filled = json.loads(json.dumps(step).replace("${{ matrix.shard }}", str(shard)))
                said += _github_step(filled, machine, artifacts)
    assert Machine(tmp_path / "gate-0").decision() == "go"
    assert summary.read_text().startswith("# ✅ go: 13.3.1 → 13.4.3\n")
    assert "\ngo: 13.3.1 → 13.4.3: nothing is worse" in said


def _github_step(step: dict[str, Any], machine: Machine, artifacts: Path) -> str:
    """One step: a command that is not an installation, or an artifact up or down."""
    if "run" in step:
        return "" if step["name"] == "Install" else machine.run(step["run"]).stdout
    given, action = step.get("with", {}), step["uses"].partition("@")[0]
    if action == "actions/upload-artifact" and not given["name"].startswith("cubins-"):
        for path in given["path"].split():
            source = machine.folder / path
            target = artifacts / given["name"]
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
    elif action == "actions/download-artifact" and "name" in given:
        shutil.copytree(artifacts / given["name"], machine.folder / given["path"])
    elif action == "actions/download-artifact":
        for source in artifacts.glob(given["pattern"]):
            shutil.copytree(source, machine.folder / given["path"] / source.name)
    return ""


@pytest.mark.toolchain
@pytest.mark.timeout(900)
def test_the_gitlab_pipeline_runs(tmp_path: Path) -> None:
    variables = yaml.safe_load((TEMPLATES / "gitlab-ci.yml").read_text())["variables"]
    chosen = {key: variables[key] for key in ("BASELINE", "CANDIDATE", "MATRIX")}
    machine = Machine(tmp_path / "project", **chosen)
    for job in gitlab_jobs().values():
        total = job.get("parallel", 1)
        for index in range(1, total + 1):
            for line in job["script"]:
                machine.run(line, CI_NODE_INDEX=str(index), CI_NODE_TOTAL=str(total))
    assert machine.decision() == "go"


@pytest.mark.toolchain
@pytest.mark.timeout(900)
def test_the_jenkins_pipeline_runs(tmp_path: Path) -> None:
    text = (TEMPLATES / "Jenkinsfile").read_text()
    variables = dict(re.findall(r"^ +(BASELINE|CANDIDATE|MATRIX) = '([^']*)'$", text, re.MULTILINE))
    machine = Machine(tmp_path / "project", **variables)
    for block in jenkins_blocks():
        if "pip install" not in block:
            machine.run(block)
    assert machine.decision() == "go"


@pytest.mark.toolchain
@pytest.mark.timeout(900)
def test_the_slurm_jobs_run(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "project", MATRIX="matrix.toml")
    machine.run(f"{sys.executable} -m harness compile matrix.toml --out before -q || [ $? -eq 1 ]")
    for task in ("3", "4", "5"):
        machine.run(
            "ci/templates/slurm-array.sh",
            SLURM_ARRAY_TASK_ID=task,
            SLURM_ARRAY_TASK_MIN="3",
            SLURM_ARRAY_TASK_COUNT="3",
            SLURM_CPUS_PER_TASK="1",
            DURATIONS="before",
        )
    assert len(list((machine.folder / "all").iterdir())) == 3
    machine.run("ci/templates/slurm-gate.sh")
    assert machine.decision() == "go"
