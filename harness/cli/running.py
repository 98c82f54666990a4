"""Commands that run a matrix or a bundle, and tell what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.leave import leave
from harness.cli.options import (
    CellArgument,
    DurationsOption,
    FileOfIssuesOption,
    Isolation,
    IsolationOption,
    JobsOption,
    JsonOption,
    KnownIssuesOption,
    MatrixArgument,
    OfflineOption,
    OutOption,
    PatienceOption,
    QuietOption,
    ShardOption,
    StoreOption,
    TimedOption,
    WorkersOption,
    parse_shard,
    path,
)
from harness.command_text import DEFAULT_OUT

cli = typer.Typer()


@cli.command(epilog="Example: python -m harness run matrix.toml --out results --jobs 4")
def run(
    matrix: MatrixArgument = Path("matrix.toml"),
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
    jobs: JobsOption = None,
    shard: ShardOption = None,
    durations: DurationsOption = None,
    isolation: IsolationOption = Isolation.WORKER,
    workers: WorkersOption = 6,
    timed: TimedOption = False,
    patience: PatienceOption = 0.0,
    known_issues: KnownIssuesOption = None,
    offline: OfflineOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compile, inspect and judge every cell of the matrix, and run it where a GPU allows."""
    from harness.commands.run import Options, run_matrix
    from harness.execute import PoolOptions

    options = Options(
        out=out,
        store=store,
        jobs=jobs,
        shard=parse_shard(shard),
        durations=durations,
        offline=offline,
        quiet=quiet,
        as_json=as_json,
        pool=PoolOptions(workers=workers, isolation=isolation.value),
        timed=timed,
        patience=patience,
        known_issues=known_issues,
    )
    leave(lambda: run_matrix(matrix, options))


@cli.command(name="compile", epilog="Example: python -m harness compile matrix.toml --bundle cells.bundle")
def compile_(
    matrix: MatrixArgument = Path("matrix.toml"),
    out: OutOption = DEFAULT_OUT,
    bundle: Annotated[
        Path | None, typer.Option(parser=path, help="Write what a GPU host needs into this one file.")
    ] = None,
    store: StoreOption = None,
    jobs: JobsOption = None,
    shard: ShardOption = None,
    durations: DurationsOption = None,
    known_issues: KnownIssuesOption = None,
    offline: OfflineOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compile, inspect and judge every cell without running any."""
    from harness.commands.run import Options, run_matrix

    options = Options(
        out=out,
        store=store,
        jobs=jobs,
        shard=parse_shard(shard),
        durations=durations,
        offline=offline,
        quiet=quiet,
        execute=False,
        bundle=bundle,
        known_issues=known_issues,
    )
    leave(lambda: run_matrix(matrix, options))


@cli.command(epilog="Example: python -m harness execute cells.bundle --out results-h200")
def execute(
    bundle: Annotated[Path, typer.Argument(help="A file that compile --bundle wrote.")],
    out: OutOption = DEFAULT_OUT,
    case: Annotated[
        str | None,
        typer.Option(
            help="Only this cell: an id, words that pick it out or vary its data, or a case as JSON."
        ),
    ] = None,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Afterwards, make failing cases as small as they go.")
    ] = False,
    jit_root: Annotated[
        Path | None,
        typer.Option(
            parser=path,
            help='For engine = "jit": a directory with NAME/frontend and NAME/backend per toolchain.',
        ),
    ] = None,
    isolation: IsolationOption = Isolation.WORKER,
    workers: WorkersOption = 6,
    timed: TimedOption = False,
    known_issues: FileOfIssuesOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a bundle's cells on the GPUs of this host; needs no compiler and no network."""
    from harness.commands.execute import execute_bundle
    from harness.commands.run import Options
    from harness.execute import PoolOptions

    pool = PoolOptions(workers=workers, isolation=isolation.value)
    options = Options(
        out=out, quiet=quiet, as_json=as_json, pool=pool, timed=timed, known_issues=known_issues
    )
    leave(lambda: execute_bundle(bundle, options, case, shrink=shrink, jit_root=jit_root))


@cli.command(epilog="Example: python -m harness merge results-h200 results-b200 --out all")
def merge(
    directories: Annotated[list[Path], typer.Argument(help="Directories that --out wrote.")],
    out: OutOption = DEFAULT_OUT,
    known_issues: FileOfIssuesOption = None,
    quiet: QuietOption = False,
) -> None:
    """Join the results of several hosts into one report."""
    from harness.commands.merge import merge_results

    leave(lambda: merge_results(directories, out, quiet, known_issues))


@cli.command(epilog="Example: python -m harness explain '1.5.0 13.3.1 sm_90 occupancy=16 allow_tma=false'")
def explain(
    cell: CellArgument,
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
) -> None:
    """Tell the whole story of one cell: books, machine code, source lines, how to reproduce."""
    from harness.commands.explain import explain_cell

    leave(lambda: explain_cell(" ".join(cell), out, store))
