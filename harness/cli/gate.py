"""Commands that help to decide about an upgrade."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.leave import leave
from harness.cli.options import (
    JobsOption,
    JsonOption,
    KnownIssuesOption,
    MatrixArgument,
    OfflineOption,
    OutOption,
    QuietOption,
    StoreOption,
    TimedOption,
    WorkersOption,
    path,
)
from harness.command_text import DEFAULT_OUT

cli = typer.Typer()


@cli.command(epilog="Example: python -m harness gate matrix.toml --baseline 13.3.1 --candidate 13.4.3")
def gate(
    matrix: MatrixArgument = Path("matrix.toml"),
    baseline: Annotated[
        str | None, typer.Option(help="What runs today: a toolchain's name, or a version.")
    ] = None,
    candidate: Annotated[
        str | None, typer.Option(help="What shall replace it: a toolchain's name, or a version.")
    ] = None,
    results_baseline: Annotated[
        list[Path] | None,
        typer.Option(parser=path, help="Recorded results of the baseline, such as a GPU host's."),
    ] = None,
    results_candidate: Annotated[
        list[Path] | None, typer.Option(parser=path, help="Recorded results of the candidate.")
    ] = None,
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
    jobs: JobsOption = None,
    workers: WorkersOption = 6,
    timed: TimedOption = False,
    known_issues: KnownIssuesOption = None,
    offline: OfflineOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """May we upgrade? Judge a candidate against its baseline, cell by cell.

    Exit code 0: go; 1: no-go; 3: cannot tell; 2: the request is wrong. The [gate] table of the
    matrix says what fails. Two directories without names compare two hosts or drivers.
    """
    from harness.commands.gate import Options, gate_command
    from harness.commands.run import Options as RunOptions
    from harness.execute import PoolOptions

    run_options = RunOptions(
        out=out,
        store=store,
        jobs=jobs,
        offline=offline,
        quiet=quiet,
        as_json=as_json,
        pool=PoolOptions(workers=workers),
        timed=timed,
        known_issues=known_issues,
    )
    options = Options(
        run=run_options,
        baseline=baseline,
        candidate=candidate,
        results_baseline=tuple(results_baseline or ()),
        results_candidate=tuple(results_candidate or ()),
    )
    leave(lambda: gate_command(matrix, options))


@cli.command(epilog="Example: python -m harness workaround pool-deadlock matrix.toml")
def workaround(
    issue: Annotated[str, typer.Argument(help="The id of a known issue.")],
    matrix: MatrixArgument = Path("matrix.toml"),
    results: Annotated[
        list[Path] | None,
        typer.Option(parser=path, help="Recorded results, for device times; may be repeated."),
    ] = None,
    known_issues: KnownIssuesOption = None,
    out: OutOption = DEFAULT_OUT / "workaround",
    store: StoreOption = None,
    jobs: JobsOption = None,
    offline: OfflineOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check that the advice for a known issue avoids it here, and what it costs.

    Exit code 0: all advice holds; 1: some does not; 3: cannot tell.
    """
    from harness.commands.run import Options as RunOptions
    from harness.commands.workaround import Options, workaround_command

    run_options = RunOptions(
        out=out,
        store=store,
        jobs=jobs,
        offline=offline,
        quiet=quiet,
        as_json=as_json,
        known_issues=known_issues,
    )
    options = Options(run=run_options, results=tuple(results or ()))
    leave(lambda: workaround_command(issue, matrix, options))


@cli.command(epilog="Example: python -m harness history sm_90 occupancy=16 allow_tma=false 13.3.1")
def history(
    cell: Annotated[
        list[str] | None, typer.Argument(help="A cell's id, or words that pick it out; without: all cells.")
    ] = None,
    out: OutOption = DEFAULT_OUT,
    as_json: JsonOption = False,
) -> None:
    """Tell when verdicts changed and with what, which cells are flaky, which compiles are slow."""
    from harness.commands.history import tell_history

    leave(lambda: tell_history(" ".join(cell or ()), out, as_json))
