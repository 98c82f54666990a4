"""The command line as a whole: one application out of the commands of this room."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from harness import __version__
from harness.cli import blame, gate, kernels, running, upkeep
from harness.cli.leave import leave_with_all_written

app = typer.Typer(
    name="python -m harness",
    help="Regression tests and compiler-bug reproduction for CUDA Tile toolchains.",
    epilog="Begin with: python -m harness run matrix.toml. Completion: tile-harness --install-completion.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

for _module in (running, kernels, blame, gate, upkeep):
    app.registered_commands += _module.cli.registered_commands
    app.registered_groups += _module.cli.registered_groups


def _version(value: bool) -> None:
    if value:
        typer.echo(f"harness {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="No colours and no live display, whatever the terminal can do.")
    ] = False,
) -> None:
    """Find out what a CUDA Tile toolchain breaks, before an upgrade does."""
    if plain:
        # What every terminal program respects, and so every console made after this.
        os.environ |= {"NO_COLOR": "1", "TERM": "dumb"}


def main() -> NoReturn:
    """Entry point of `python -m harness`, and of the script `tile-harness`, which shells can complete."""
    script = Path(sys.argv[0]).stem
    name = script if script == "tile-harness" else "python -m harness"
    leave_with_all_written(lambda: app(prog_name=name))
