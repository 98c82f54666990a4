"""Commands for kernels of the reader's own: find out about one in a report, begin a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.leave import leave
from harness.cli.options import (
    JobsOption,
    JsonOption,
    OfflineOption,
    OutOption,
    PatienceOption,
    StoreOption,
)
from harness.command_text import DEFAULT_OUT

cli = typer.Typer()
_new = typer.Typer(no_args_is_help=True, help="Begin something of your own.")
cli.add_typer(_new, name="new")


@cli.command(
    epilog="Example: python -m harness triage report.py --parameters 'x = array(float16, 2); T = const(64)'"
)
def triage(
    file: Annotated[Path, typer.Argument(help="A Python file with kernels, or a script that launches some.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGS", show_default=False, help="Behind --: what the script finds on its command line."
        ),
    ] = None,
    parameters: Annotated[
        str,
        typer.Option(
            help="What kernels take, if no launch or comment tells: 'a = array(float32, 2); T = const(64)'."
        ),
    ] = "",
    kernel: Annotated[list[str] | None, typer.Option(help="Only this kernel (may be repeated).")] = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds it may take.")] = 150.0,
    deadline: Annotated[float, typer.Option(min=1, help="Seconds of one compile.")] = 15.0,
    patience: PatienceOption = 0.0,
    cuda_tile: Annotated[
        list[str] | None, typer.Option(help="Only this cuda-tile (default: the newest of each minor).")
    ] = None,
    cuda_toolkit: Annotated[
        list[str] | None, typer.Option(help="Only this cuda-toolkit (default: the newest of each minor).")
    ] = None,
    arch: Annotated[list[str] | None, typer.Option(help="Only this architecture.")] = None,
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
    jobs: JobsOption = None,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find out where the kernels of a file fail, how, what decides, and what to do next."""
    from harness.commands.triage import Options, triage_file

    options = Options(
        out=out,
        parameters=parameters,
        arguments=tuple(arguments or ()),
        kernels=tuple(kernel or ()),
        cuda_tile=tuple(cuda_tile or ()),
        cuda_toolkit=tuple(cuda_toolkit or ()),
        arch=tuple(arch or ()),
        budget=budget,
        deadline=deadline,
        patience=patience,
        store=store,
        jobs=jobs,
        offline=offline,
        as_json=as_json,
    )
    leave(lambda: triage_file(file, options))


@_new.command("kernel", epilog="Example: python -m harness new kernel softmax")
def new_kernel(
    name: Annotated[str, typer.Argument(help="Name of the kernel, and of the folder that is written.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the folder goes.")] = Path(),
) -> None:
    """Write a kernel and the matrix that compiles and runs it, to be changed into your own."""
    from harness.commands.new_kernel import write_kernel

    leave(lambda: write_kernel(name, out))
