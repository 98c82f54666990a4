"""Commands only: parse, call the stage that does the work, choose the exit code.

Exit codes: 0 as expected; 1 findings; 2 the request is wrong; 3 the machine failed; 130 interrupted
with everything finished so far saved.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from harness import __version__


class Exit(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FINDINGS = 1
    WRONG_REQUEST = 2
    MACHINE_FAILED = 3
    INTERRUPTED = 130


app = typer.Typer(
    name="python -m harness",
    help="Regression tests and compiler-bug reproduction for CUDA Tile toolchains.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

MatrixArgument = Annotated[Path, typer.Argument(help="The matrix file.", show_default=True)]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Directory for results.")]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store", help="Where compilers and cubins are kept (default: user cache, or HARNESS_STORE)."
    ),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Parallel compiles (default: cores).")
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never use the network.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Only the findings and the last line.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]

DEFAULT_OUT = Path("harness-results")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"harness {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find out what a CUDA Tile toolchain breaks, before an upgrade does."""


@app.command(epilog="Example: python -m harness run matrix.toml --out results --jobs 4")
def run(
    matrix: MatrixArgument = Path("matrix.toml"),
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
    jobs: JobsOption = None,
    shard: Annotated[str | None, typer.Option(help="Only part i of n, as i/n (i from 1).")] = None,
    offline: OfflineOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compile, inspect and judge every cell of the matrix, and run it where a GPU allows."""
    from harness.commands.run import Options, run_matrix

    options = Options(
        out=out,
        store=store,
        jobs=jobs,
        shard=_shard(shard),
        offline=offline,
        quiet=quiet,
        as_json=as_json,
    )
    _leave(lambda: run_matrix(matrix, options))


def _shard(text: str | None) -> tuple[int, int] | None:
    """ "2/4" as (2, 4)."""
    if text is None:
        return None
    part, slash, whole = text.partition("/")
    if not (slash and part.isdigit() and whole.isdigit() and 1 <= int(part) <= int(whole)):
        raise typer.BadParameter(f"{text!r} is no shard; write i/n with 1 <= i <= n, such as 2/4")
    return int(part), int(whole)


@app.command(epilog="Example: python -m harness explain '13.3.1 sm_90 occupancy=16 allow_tma=false'")
def explain(
    cell: Annotated[list[str], typer.Argument(help="A cell's id, or words that pick out one cell.")],
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
) -> None:
    """Tell the whole story of one cell: books, machine code, source lines, how to reproduce."""
    from harness.commands.explain import explain_cell

    _leave(lambda: explain_cell(" ".join(cell), out, store))


@app.command()
def doctor(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Say what this machine can and cannot do."""
    from harness.commands.doctor import examine_machine

    _leave(lambda: examine_machine(store, as_json))


@app.command(epilog="Example: python -m harness schema > matrix.schema.json")
def schema() -> None:
    """Print the JSON Schema of matrix.toml, for editors."""
    from harness.matrix import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


@app.command()
def clean(
    store: StoreOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also the installed compilers.")] = False,
) -> None:
    """Delete remembered compiles (and, with --all, the compilers too)."""
    from harness.commands.clean import clean_store

    _leave(lambda: clean_store(store, everything))


def _leave(command: Callable[[], int]) -> NoReturn:
    """Run a command; turn what it raises into one sentence on stderr and an exit code."""
    from harness.commands.explain import NothingToExplain
    from harness.compile.cache import CacheError
    from harness.matrix import MatrixError
    from harness.store import StoreError as ResultsError
    from harness.toolchain import ProvisionError, StoreError

    complain = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        code = command()
    except (MatrixError, NothingToExplain, ProvisionError, StoreError, ResultsError) as error:
        complain.print(str(error), style="red", markup=False)
        code = Exit.WRONG_REQUEST
    except (CacheError, OSError) as error:
        complain.print(f"the machine failed: {error}", style="red", markup=False)
        code = Exit.MACHINE_FAILED
    except KeyboardInterrupt:
        complain.print("interrupted; everything finished so far is saved", style="yellow", markup=False)
        code = Exit.INTERRUPTED
    sys.exit(code)


def main() -> None:
    """Entry point of `python -m harness`."""
    app(prog_name="python -m harness")
