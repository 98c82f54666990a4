"""Commands about this machine and the harness itself."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from harness.cli.leave import leave
from harness.cli.options import JsonOption, StoreOption

cli = typer.Typer()


@cli.command(epilog="Example: python -m harness doctor")
def doctor(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Say what this machine can and cannot do."""
    from harness.commands.doctor import examine_machine

    leave(lambda: examine_machine(store, as_json))


@cli.command(epilog="Example: python -m harness schema > matrix.schema.json")
def schema() -> None:
    """Print the JSON Schema of matrix.toml, for editors."""
    from harness.matrix import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


@cli.command(epilog="Example: python -m harness clean --all")
def clean(
    store: StoreOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also the installed compilers.")] = False,
) -> None:
    """Delete remembered compiles (and, with --all, the compilers too)."""
    from harness.commands.clean import clean_store

    leave(lambda: clean_store(store, everything))
