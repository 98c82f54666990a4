"""Commands that look for what is to blame for a finding, and show it to others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.leave import leave
from harness.cli.options import (
    CellArgument,
    JobsOption,
    JsonOption,
    OfflineOption,
    OutOption,
    StoreOption,
    path,
)
from harness.command_text import DEFAULT_OUT, DEFAULT_REPROS

cli = typer.Typer()


@cli.command(epilog="Example: python -m harness bisect '1.5.0 13.3.1 sm_120 occupancy=16 allow_tma=false'")
def bisect(
    cell: CellArgument,
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
    matrix: Annotated[
        Path | None,
        typer.Option(parser=path, help="Pick the cell from this matrix instead of earlier results."),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(help="Versions to search: cuda-toolkit or cuda-tile (default: the blamed component's)."),
    ] = None,
    oracle: Annotated[
        str,
        typer.Option(
            help="What is bad: signature, verdict=WORD, registers>=255, compile_seconds>4, advice=KIND."
        ),
    ] = "signature",
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Ask every version.")] = False,
    components: Annotated[bool, typer.Option(help="Also mix components to find the guilty one.")] = True,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the version that broke a cell, the one that mended it, and the guilty component."""
    from harness.commands.bisect import Options, bisect_command

    options = Options(
        out=out,
        store=store,
        matrix=matrix,
        over=over,
        oracle=oracle,
        exhaustive=exhaustive,
        components=components,
        offline=offline,
        as_json=as_json,
    )
    leave(lambda: bisect_command(" ".join(cell), options))


@cli.command(
    epilog="Example: python -m harness reduce '1.5.0 13.3.1 sm_120 occupancy=16 allow_tma=false' --budget 300"
)
def reduce(
    cell: CellArgument,
    out: OutOption = DEFAULT_OUT,
    to: Annotated[
        Path | None, typer.Option(parser=path, help="Directory of the result (default: OUT/reduce/CELL).")
    ] = None,
    store: StoreOption = None,
    matrix: Annotated[
        Path | None,
        typer.Option(parser=path, help="Pick the cell from this matrix instead of earlier results."),
    ] = None,
    budget: Annotated[float | None, typer.Option(min=1, help="Seconds it may take at most.")] = None,
    oracle: Annotated[
        str, typer.Option(help="What must stay bad (default: the same signature); as for bisect.")
    ] = "",
    good: Annotated[
        str | None,
        typer.Option(help="Toolchain on which it must stay good: a name or a cuda-toolkit version."),
    ] = None,
    no_good: Annotated[bool, typer.Option("--no-good", help="Ask no toolchain to stay good.")] = False,
    jobs: JobsOption = None,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
) -> None:
    """Boil a finding down to the smallest kernel and configuration that still show it."""
    from harness.commands.reduce import Options, reduce_command

    options = Options(
        out=out,
        to=to,
        store=store,
        matrix=matrix,
        budget=budget,
        oracle=oracle,
        good=good,
        no_good=no_good,
        jobs=jobs,
        offline=offline,
        as_json=as_json,
    )
    leave(lambda: reduce_command(" ".join(cell), options))


repro_app = typer.Typer(
    help="Folders that show a finding to whoever can mend it.", no_args_is_help=True, rich_markup_mode="rich"
)
cli.add_typer(repro_app, name="repro")

ReprosOption = Annotated[Path, typer.Option("--repros", parser=path, help="Directory of the repros.")]


@repro_app.command(
    name="new", epilog="Example: python -m harness repro new 'sm_90 occupancy=16' --name deadlock"
)
def repro_new(
    cell: CellArgument,
    name: Annotated[str, typer.Option(help="Name of the folder: small letters, digits and -.")],
    out: OutOption = DEFAULT_OUT,
    repros: ReprosOption = DEFAULT_REPROS,
    reduced: Annotated[
        Path | None,
        typer.Option(parser=path, help="A directory that reduce wrote, to show its kernel instead."),
    ] = None,
    oracle: Annotated[
        str, typer.Option(help="What is bad: signature, advice=KIND, verdict=WORD, compile_seconds>4.")
    ] = "signature",
    matrix: Annotated[
        Path | None, typer.Option(parser=path, help="The matrix of the results, for kernels of your own.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The fault in a line.")] = None,
    link: Annotated[str, typer.Option(help="The issue upstream, where there is one already.")] = "",
    deadline: Annotated[
        float | None, typer.Option(min=1, help="Seconds a compile may take (default: as in the results).")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also for a finding that has its repro, and over an old folder.")
    ] = False,
    store: StoreOption = None,
    offline: OfflineOption = False,
) -> None:
    """Write a folder that shows one finding: a script, its bytecode, and where it must hold."""
    from harness.commands.repro import NewOptions, new_command

    options = NewOptions(
        out=out,
        name=name,
        repros=repros,
        store=store,
        matrix=matrix,
        reduced=reduced,
        oracle=oracle,
        title=title,
        link=link,
        deadline=deadline,
        offline=offline,
        force=force,
    )
    leave(lambda: new_command(" ".join(cell), options))


@repro_app.command(name="verify", epilog="Example: python -m harness repro verify deadlock")
def repro_verify(
    names: Annotated[list[str] | None, typer.Argument(help="Names of repros; all without any.")] = None,
    repros: ReprosOption = DEFAULT_REPROS,
    store: StoreOption = None,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
) -> None:
    """Prove that repros still do what their repro.toml says, on every toolchain that it names."""
    from harness.commands.repro import verify_command

    leave(lambda: verify_command(tuple(names or ()), repros, store, offline=offline, as_json=as_json))


@repro_app.command(name="issue", epilog="Example: python -m harness repro issue deadlock --to issue.md")
def repro_issue(
    name: Annotated[str, typer.Argument(help="Name of a repro.")],
    repros: ReprosOption = DEFAULT_REPROS,
    to: Annotated[Path | None, typer.Option(parser=path, help="Write the text into this file.")] = None,
    store: StoreOption = None,
    offline: OfflineOption = False,
) -> None:
    """Print an issue for NVIDIA/cutile-python and a link to its form, filled in. Nothing is posted."""
    from harness.commands.repro import issue_command

    leave(lambda: issue_command(name, repros, store, to, offline=offline))
