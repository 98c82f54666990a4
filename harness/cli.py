"""Commands only: parse, call the stage that does the work, choose the exit code.

Exit codes: 0 as expected; 1 findings; 2 the request is wrong; 3 the machine failed; 130 interrupted
with everything finished so far saved.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from enum import IntEnum, StrEnum
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
    epilog="Begin with: python -m harness run matrix.toml. Completion: tile-harness --install-completion.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

MatrixArgument = Annotated[Path, typer.Argument(help="The matrix file.", show_default=True)]
CellArgument = Annotated[list[str], typer.Argument(help="A cell's id, or words that pick out one cell.")]
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
PatienceOption = Annotated[
    float,
    typer.Option(min=0, metavar="SECONDS", help="Compile again, for this long, what misses its deadline."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]

KnownIssuesOption = Annotated[
    Path | None,
    typer.Option(
        "--known-issues", help="Faults that are expected (default: known_issues.toml by the matrix)."
    ),
]
FileOfIssuesOption = Annotated[
    Path | None, typer.Option("--known-issues", help="A file of faults that are expected.")
]
ShardOption = Annotated[str | None, typer.Option(help="Only part i of n, as i/n (i from 1).")]
DurationsOption = Annotated[
    Path | None,
    typer.Option(help="Results of an earlier run: shards then take about equally long."),
]
TimedOption = Annotated[bool, typer.Option("--timed", help="Also measure device time.")]
WorkersOption = Annotated[int, typer.Option(min=1, max=64, help="Processes per GPU.")]


class Isolation(StrEnum):
    """Whether a process serves many cases or one."""

    WORKER = "worker"
    PROCESS = "process"


IsolationOption = Annotated[
    Isolation, typer.Option(help="worker: warm processes; process: a fresh process for every case.")
]

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
    plain: Annotated[
        bool, typer.Option("--plain", help="No colours and no live display, whatever the terminal can do.")
    ] = False,
) -> None:
    """Find out what a CUDA Tile toolchain breaks, before an upgrade does."""
    if plain:
        # What every terminal program respects, and so every console made after this.
        os.environ |= {"NO_COLOR": "1", "TERM": "dumb"}


@app.command(epilog="Example: python -m harness run matrix.toml --out results --jobs 4")
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
        shard=_shard(shard),
        durations=durations,
        offline=offline,
        quiet=quiet,
        as_json=as_json,
        pool=PoolOptions(workers=workers, isolation=isolation.value),
        timed=timed,
        patience=patience,
        known_issues=known_issues,
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


@app.command(name="compile", epilog="Example: python -m harness compile matrix.toml --bundle cells.bundle")
def compile_(
    matrix: MatrixArgument = Path("matrix.toml"),
    out: OutOption = DEFAULT_OUT,
    bundle: Annotated[
        Path | None, typer.Option(help="Write what a GPU host needs into this one file.")
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
        shard=_shard(shard),
        durations=durations,
        offline=offline,
        quiet=quiet,
        execute=False,
        bundle=bundle,
        known_issues=known_issues,
    )
    _leave(lambda: run_matrix(matrix, options))


@app.command(epilog="Example: python -m harness execute cells.bundle --out results-h200")
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
            help='For engine = "jit": a directory with NAME/frontend and NAME/backend per toolchain.'
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
    _leave(lambda: execute_bundle(bundle, options, case, shrink=shrink, jit_root=jit_root))


@app.command(epilog="Example: python -m harness merge results-h200 results-b200 --out all")
def merge(
    directories: Annotated[list[Path], typer.Argument(help="Directories that --out wrote.")],
    out: OutOption = DEFAULT_OUT,
    known_issues: FileOfIssuesOption = None,
    quiet: QuietOption = False,
) -> None:
    """Join the results of several hosts into one report."""
    from harness.commands.merge import merge_results

    _leave(lambda: merge_results(directories, out, quiet, known_issues))


@app.command(epilog="Example: python -m harness explain '1.5.0 13.3.1 sm_90 occupancy=16 allow_tma=false'")
def explain(
    cell: CellArgument,
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
) -> None:
    """Tell the whole story of one cell: books, machine code, source lines, how to reproduce."""
    from harness.commands.explain import explain_cell

    _leave(lambda: explain_cell(" ".join(cell), out, store))


@app.command(epilog="Example: python -m harness bisect '1.5.0 13.3.1 sm_120 occupancy=16 allow_tma=false'")
def bisect(
    cell: CellArgument,
    out: OutOption = DEFAULT_OUT,
    store: StoreOption = None,
    matrix: Annotated[
        Path | None, typer.Option(help="Pick the cell from this matrix instead of earlier results.")
    ] = None,
    over: Annotated[
        str, typer.Option(help="Versions to search: cuda-toolkit or cuda-tile.")
    ] = "cuda-toolkit",
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
    _leave(lambda: bisect_command(" ".join(cell), options))


@app.command(
    epilog="Example: python -m harness reduce '1.5.0 13.3.1 sm_120 occupancy=16 allow_tma=false' --budget 300"
)
def reduce(
    cell: CellArgument,
    out: OutOption = DEFAULT_OUT,
    to: Annotated[
        Path | None, typer.Option(help="Directory of the result (default: OUT/reduce/CELL).")
    ] = None,
    store: StoreOption = None,
    matrix: Annotated[
        Path | None, typer.Option(help="Pick the cell from this matrix instead of earlier results.")
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
    _leave(lambda: reduce_command(" ".join(cell), options))


@app.command(epilog="Example: python -m harness gate matrix.toml --baseline 13.3.1 --candidate 13.4.3")
def gate(
    matrix: MatrixArgument = Path("matrix.toml"),
    baseline: Annotated[
        str | None, typer.Option(help="What runs today: a toolchain's name, or a version.")
    ] = None,
    candidate: Annotated[
        str | None, typer.Option(help="What shall replace it: a toolchain's name, or a version.")
    ] = None,
    results_baseline: Annotated[
        list[Path] | None, typer.Option(help="Recorded results of the baseline, such as a GPU host's.")
    ] = None,
    results_candidate: Annotated[
        list[Path] | None, typer.Option(help="Recorded results of the candidate.")
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
    _leave(lambda: gate_command(matrix, options))


repro_app = typer.Typer(
    help="Folders that show a finding to whoever can mend it.", no_args_is_help=True, rich_markup_mode="rich"
)
app.add_typer(repro_app, name="repro")

ReprosOption = Annotated[Path, typer.Option("--repros", help="Directory of the repros.")]
DEFAULT_REPROS = Path("repros")


@repro_app.command(
    name="new", epilog="Example: python -m harness repro new 'sm_90 occupancy=16' --name deadlock"
)
def repro_new(
    cell: CellArgument,
    name: Annotated[str, typer.Option(help="Name of the folder: small letters, digits and -.")],
    out: OutOption = DEFAULT_OUT,
    repros: ReprosOption = DEFAULT_REPROS,
    reduced: Annotated[
        Path | None, typer.Option(help="A directory that reduce wrote, to show its kernel instead.")
    ] = None,
    oracle: Annotated[
        str, typer.Option(help="What is bad: signature, advice=KIND, verdict=WORD, compile_seconds>4.")
    ] = "signature",
    matrix: Annotated[
        Path | None, typer.Option(help="The matrix of the results, for kernels of your own.")
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
    _leave(lambda: new_command(" ".join(cell), options))


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

    _leave(lambda: verify_command(tuple(names or ()), repros, store, offline=offline, as_json=as_json))


@repro_app.command(name="issue", epilog="Example: python -m harness repro issue deadlock --to issue.md")
def repro_issue(
    name: Annotated[str, typer.Argument(help="Name of a repro.")],
    repros: ReprosOption = DEFAULT_REPROS,
    to: Annotated[Path | None, typer.Option(help="Write the text into this file.")] = None,
    store: StoreOption = None,
    offline: OfflineOption = False,
) -> None:
    """Print an issue for NVIDIA/cutile-python and a link to its form, filled in. Nothing is posted."""
    from harness.commands.repro import issue_command

    _leave(lambda: issue_command(name, repros, store, to, offline=offline))


@app.command(epilog="Example: python -m harness workaround pool-deadlock matrix.toml")
def workaround(
    issue: Annotated[str, typer.Argument(help="The id of a known issue.")],
    matrix: MatrixArgument = Path("matrix.toml"),
    results: Annotated[
        list[Path] | None, typer.Option(help="Recorded results, for device times; may be repeated.")
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
    _leave(lambda: workaround_command(issue, matrix, options))


@app.command(epilog="Example: python -m harness history sm_90 occupancy=16 allow_tma=false 13.3.1")
def history(
    cell: Annotated[
        list[str] | None, typer.Argument(help="A cell's id, or words that pick it out; without: all cells.")
    ] = None,
    out: OutOption = DEFAULT_OUT,
    as_json: JsonOption = False,
) -> None:
    """Tell when verdicts changed and with what, which cells are flaky, which compiles are slow."""
    from harness.commands.history import tell_history

    _leave(lambda: tell_history(" ".join(cell or ()), out, as_json))


@app.command(epilog="Example: python -m harness doctor")
def doctor(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Say what this machine can and cannot do."""
    from harness.commands.doctor import examine_machine

    _leave(lambda: examine_machine(store, as_json))


@app.command(epilog="Example: python -m harness schema > matrix.schema.json")
def schema() -> None:
    """Print the JSON Schema of matrix.toml, for editors."""
    from harness.matrix import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


@app.command(epilog="Example: python -m harness clean --all")
def clean(
    store: StoreOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also the installed compilers.")] = False,
) -> None:
    """Delete remembered compiles (and, with --all, the compilers too)."""
    from harness.commands.clean import clean_store

    _leave(lambda: clean_store(store, everything))


def _leave(command: Callable[[], int]) -> NoReturn:
    """Run a command; turn what it raises into one sentence on stderr and an exit code."""
    from harness.bundle import BundleError
    from harness.commands.explain import NothingToExplain
    from harness.commands.workaround import NoWorkaround
    from harness.compile.cache import CacheError
    from harness.gate.select import SelectionError
    from harness.matrix import MatrixError
    from harness.report.jsonl import ResultsError as RowsError
    from harness.store import StoreError as ResultsError
    from harness.toolchain import ProvisionError, StoreError

    wrong = (
        *(BundleError, MatrixError, NothingToExplain, ProvisionError, StoreError),
        *(NoWorkaround, ResultsError, RowsError, SelectionError),
    )
    complain = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        code = command()
    except wrong as error:
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
    """Entry point of `python -m harness`, and of the script `tile-harness`, which shells can complete."""
    script = Path(sys.argv[0]).stem
    app(prog_name=script if script == "tile-harness" else "python -m harness")
