from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_results import Maker
from packaging.version import Version
from rich.console import Console

from harness.bisect.check import bytecode_files, check_matrix, commands
from harness.bisect.components import Blame
from harness.bisect.result import BisectResult
from harness.bisect.search import Ending
from harness.bisect.show import Shown, edges, remarks, verdict
from harness.bisect.versions import BisectError
from harness.matrix import load_matrix
from harness.oracle import OracleError
from harness.plan import plan

Versions = dict[str, str]


def between(component: str, low: str, high: str) -> Callable[[Versions, str], str]:
    """Bad where the component is in the range; an nvvm newer than its ptxas never runs."""

    def rule(components: Versions, bytecode: str) -> str:
        if Version(components["nvvm"]) > Version(components["ptxas"]):
            return "broken"
        inside = Version(low) <= Version(components[component]) <= Version(high)
        return "bad" if inside else "good"

    return rule


def named(result: BisectResult) -> tuple[str | None, ...]:
    points = (result.last_good, result.first_bad, result.last_bad, result.first_fixed)
    return tuple(point.version if point else None for point in points)


def test_both_edges_and_the_component(made_up: Callable[..., Any]) -> None:
    world = made_up(between("tileiras", "13.2.51", "13.3.36"))
    result = world.bisection().run()
    assert named(result) == ("13.1.80", "13.2.51", "13.3.36", "13.4.59")
    assert result.named_by == "tileiras"
    assert result.component == "tileiras"
    assert [a.blame for a in result.accusations] == [Blame((("tileiras",),), True)] * 2
    assert not result.flips[2:]
    assert [p.left for p in world.heard if p.stage == "version"][-1] == 0
    assert result.probes == tuple(world.heard)
    assert BisectResult.from_json(result.to_json()) == result


def test_no_question_is_asked_twice(made_up: Callable[..., Any]) -> None:
    world = made_up(between("tileiras", "13.2.51", "13.3.36"))
    world.bisection(exhaustive=True).run()
    assert len(world.asked) == len(set(world.asked))


@pytest.mark.parametrize("component", ["tileiras", "nvvm", "ptxas"])
def test_every_component_can_be_guilty(made_up: Callable[..., Any], component: str) -> None:
    world = made_up(between(component, "13.2.60", "13.3.40"))
    result = world.bisection("13.3.0").run()
    suspects = {a.blame.suspects for a in result.accusations}
    assert result.component == component or all((component,) in s for s in suspects)


def test_a_wrong_suspicion_is_corrected_and_the_folded_versions_unfolded(
    made_up: Callable[..., Any],
) -> None:
    """The judge blames tileiras, of which 13.3.0 and 13.3.1 have the same; ptxas was fixed between them."""

    def rule(components: Versions, bytecode: str) -> str:
        return "bad" if Version("13.2.60") <= Version(components["ptxas"]) <= Version("13.3.40") else "good"

    result = made_up(rule).bisection("13.3.0").run()
    assert result.component == "ptxas"
    assert result.named_by == "ptxas"
    assert named(result) == ("13.2.51", "13.2.86", "13.3.33", "13.3.73")


def test_bytecode_of_a_newer_version_can_be_to_blame(made_up: Callable[..., Any]) -> None:
    world = made_up(lambda components, bytecode: "bad" if bytecode == "13.3" else "good")
    result = world.bisection().run()
    assert [a.blame.suspects for a in result.accusations] == [(("bytecode",),), (("bytecode",),)]
    assert result.component == "bytecode"
    assert "on bytecode 13.3 instead of 13.4: bad" in result.accusations[1].evidence[0]


def test_mixes_are_asked_in_a_bytecode_version_that_both_take(made_up: Callable[..., Any]) -> None:
    def rule(components: Versions, bytecode: str) -> str:
        if Version(bytecode) > Version(".".join(components["tileiras"].split(".")[:2])):
            return "refused"
        return between("tileiras", "13.2.51", "13.3.36")(components, bytecode)

    world = made_up(rule)
    assert world.bisection().run().component == "tileiras"
    assert {p.bytecode_version for p in world.heard if p.stage == "mix"} == {"13.1", "13.3"}


def test_what_is_unknown_is_a_gap_with_its_reason(made_up: Callable[..., Any]) -> None:
    def rule(components: Versions, bytecode: str) -> str:
        version = Version(components["tileiras"])
        if version < Version("13.3"):
            return "refused"
        if version == Version("13.4.59"):
            return "other"
        return "bad" if version < Version("13.4") else "good"

    result = made_up(rule).bisection(components=False).run()
    assert named(result) == (None, "13.3.36", "13.3.36", "13.4.92")
    assert result.older.ending is Ending.UNKNOWN_BEYOND
    shown = dict(edges(result))
    assert shown["last good"] == (
        "none: nothing older than 13.3.36 could be told: 13.1.80, 13.2.51, 13.2.86 (This toolchain refuses "
        "sm_90: tileiras: for the --gpu-name option: Cannot find option named 'sm_90'!)"
    )
    assert shown["first bad"] == "tileiras 13.3.36  (cuda-toolkit 13.3.0, 13.3.1)"
    assert shown["first fixed"] == "tileiras 13.4.92  (cuda-toolkit 13.4.2, 13.4.3)"
    assert remarks(result) == [
        "between 13.3.36 and 13.4.92 nothing could be told: 13.4.59 "
        "(tileiras reports: error: operand type mismatch)"
    ]


def test_bad_everywhere(made_up: Callable[..., Any]) -> None:
    result = made_up(lambda components, bytecode: "bad").bisection().run()
    assert dict(edges(result))["last good"] == "none: every older version tested is bad"
    assert dict(edges(result))["first fixed"] == "none: every newer version tested is bad"
    assert remarks(result) == [
        "taken for bad without a test: 13.2.51, 13.2.86",
        "taken for bad without a test: 13.4.59, 13.4.92",
        "no backend version is known to be good; try --over cuda-tile",
    ]
    assert result.accusations == ()
    assert result.is_decided


def test_a_fault_that_comes_and_goes_is_told(made_up: Callable[..., Any]) -> None:
    world = made_up(
        lambda c, bytecode: "bad" if c["tileiras"] in ("13.1.80", "13.2.86", "13.3.36") else "good"
    )
    result = world.bisection(exhaustive=True, components=False).run()
    assert named(result) == ("13.2.51", "13.2.86", "13.3.36", "13.4.59")
    assert remarks(result) == [
        "the fault comes and goes; answers change between "
        "13.1.80 / 13.2.51, 13.2.51 / 13.2.86, 13.3.36 / 13.4.59"
    ]


def test_the_frontend_axis_names_cuda_tile(made_up: Callable[..., Any]) -> None:
    world = made_up(lambda c, bytecode: "bad" if c["cuda-tile"] == "1.5.0" else "good")
    result = world.bisection(over="cuda-tile").run()
    assert named(result) == ("1.4.0", "1.5.0", "1.5.0", "1.6.0")
    assert result.component == "cuda-tile"
    assert {p.toolchain.cuda_toolkit for p in result.probes} == {"13.3.1"}


def test_versions_that_cannot_be_had_are_named(made_up: Callable[..., Any]) -> None:
    rule = between("tileiras", "13.2.51", "13.3.36")
    result = made_up(rule, missing=frozenset({"13.1.0", "13.4.1.0"})).bisection().run()
    assert named(result) == (None, "13.2.51", "13.3.36", "13.4.92")
    assert "not considered: 13.1.0, 13.4.1.0 (cuda-toolkit 13.1.0 is not in the store)" in remarks(result)


@pytest.mark.parametrize("steps", [1, 2, 4, 6])
def test_a_search_that_is_cut_short_keeps_what_it_knows(made_up: Callable[..., Any], steps: int) -> None:
    world = made_up(between("tileiras", "13.2.51", "13.3.36"), stop_after=steps)
    bisection = world.bisection()
    with pytest.raises(KeyboardInterrupt):
        bisection.run()
    result = bisection.result()
    assert len(result.probes) == steps
    assert result.first_bad.version in ("13.2.51", "13.2.86", "13.3.36")
    assert not any("no backend version" in remark for remark in remarks(result))
    if steps == 1:
        assert dict(edges(result))["first fixed"] == "not known yet: the search was stopped"


def test_a_cell_without_a_fault_is_refused(made_up: Callable[..., Any]) -> None:
    with pytest.raises(OracleError, match="the cell shows no fault to look for"):
        made_up(lambda components, bytecode: "good").bisection()


def test_a_fault_that_is_gone_is_told(made_up: Callable[..., Any], make: Maker) -> None:
    before = make.result(make.cell("13.3.1"), make.deadlocked())
    with pytest.raises(BisectError, match=r"does not show .* any more, now it is compiles"):
        made_up(lambda components, bytecode: "good").bisection(original=before)


def test_another_oracle(made_up: Callable[..., Any]) -> None:
    world = made_up(between("tileiras", "13.2.51", "13.3.36"))
    result = world.bisection(oracle="registers<=24").run()
    assert named(result) == ("13.1.80", "13.2.51", "13.3.36", "13.4.59")
    assert result.oracle == "registers<=24"


# --- what a reader gets -----------------------------------------------------------------------


def test_the_check_is_a_matrix_of_the_edges_and_the_proving_mixes(
    made_up: Callable[..., Any], tmp_path: Path
) -> None:
    result = made_up(between("tileiras", "13.2.51", "13.3.36")).bisection().run()
    text = check_matrix(result)
    assert text is not None
    tables = tomllib.loads(text)["toolchain"]
    assert [t["cuda_toolkit"] for t in tables[:4]] == ["13.1.0", "13.2.0", "13.3.1", "13.4.1.0"]
    assert sum("tileiras" in table for table in tables) == 4
    path = tmp_path / "check.toml"
    path.write_text(text)
    cells = list(plan(load_matrix(path)))
    assert {cell.case for cell in cells} == {result.cell.case}
    assert {cell.arch for cell in cells} == {"sm_90"}
    assert result.cell.toolchain.digest in {cell.toolchain.digest for cell in cells}


def test_the_commands_can_be_pasted(made_up: Callable[..., Any]) -> None:
    result = made_up(between("tileiras", "13.2.51", "13.3.36")).bisection().run()
    lines = commands(result, Path("out dir/bisect"), None)
    assert lines[0] == ("python -m harness run 'out dir/bisect/check.toml' --out 'out dir/bisect/check'")
    assert (
        "python -m pip install --target first-fixed 'cuda-toolkit[nvcc,nvvm,tileiras]==13.4.1.0' "
        "nvidia-cuda-nvdisasm"
    ) in lines
    assert "first-fixed/nvidia/cu13/bin/nvdisasm -g -c first-fixed.cubin" in lines
    assert (
        "last-bad/nvidia/cu13/bin/tileiras 'out dir/bisect/last-bad.tileirbc' -o last-bad.cubin "
        "--gpu-name sm_90 -O3 --lineinfo"
    ) in lines
    assert "ln last-good/nvidia/cu13/lib/libnvvm.so.4 last-good/nvidia/cu13/nvvm/lib64/libnvvm.so" in lines
    assert set(bytecode_files(result)) == {
        f"{name}.tileirbc" for name in ("last-good", "first-bad", "last-bad", "first-fixed")
    }


def test_what_is_printed_fits_a_terminal_without_utf8(made_up: Callable[..., Any], tmp_path: Path) -> None:
    world = made_up(between("tileiras", "13.2.51", "13.3.36"))
    with (tmp_path / "out.txt").open("w", encoding="ascii") as file:
        shown = Shown(Console(file=file, width=100))
        bisection = world.bisection()
        for probe in world.heard:
            shown.step(probe)
        shown.result(bisection.run(), ["python -m harness run check.toml"])
    text = (tmp_path / "out.txt").read_text()
    assert "first fixed  tileiras 13.4.59  (cuda-toolkit 13.4.1.0)" in text
    assert "Guilty component: tileiras" in text
    assert "tileiras 13.4.59 in the bad toolchain: good" in text


def test_verdicts_in_words(made_up: Callable[..., Any]) -> None:
    result = made_up(between("tileiras", "13.2.51", "13.3.36")).bisection().run()
    accusation = result.accusations[0]
    said = [
        verdict(replace(accusation, blame=blame))
        for blame in (
            Blame((("tileiras",),), True),
            Blame((("tileiras",),), False),
            Blame((("nvvm",), ("ptxas",)), False),
            Blame((("nvvm", "ptxas"),), True),
            Blame((), False),
        )
    ]
    assert said == [
        "tileiras",
        "tileiras, as far as mixes can tell",
        "nvvm or ptxas; no mix that can run tells them apart",
        "nvvm with ptxas",
        "no single set of components explains the answers",
    ]
