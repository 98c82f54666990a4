"""Options and arguments that several commands share."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


def path(text: str | Path) -> Path:
    """A path that an option names. Nothing would mean the working directory, which nobody meant."""
    if not str(text).strip():
        raise typer.BadParameter("an empty path; leave the option out for its default, or name a path")
    return Path(text)


MatrixArgument = Annotated[Path, typer.Argument(help="The matrix file.", show_default=True)]
CellArgument = Annotated[list[str], typer.Argument(help="A cell's id, or words that pick out one cell.")]
OutOption = Annotated[Path, typer.Option("--out", "-o", parser=path, help="Directory for results.")]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        parser=path,
        help="Where compilers and cubins are kept (default: user cache, or HARNESS_STORE).",
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
        "--known-issues",
        parser=path,
        help="Faults that are expected (default: known_issues.toml by the matrix).",
    ),
]
FileOfIssuesOption = Annotated[
    Path | None, typer.Option("--known-issues", parser=path, help="A file of faults that are expected.")
]
ShardOption = Annotated[str | None, typer.Option(help="Only part i of n, as i/n (i from 1).")]
DurationsOption = Annotated[
    Path | None,
    typer.Option(parser=path, help="Results of an earlier run: shards then take about equally long."),
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


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """ "2/4" as (2, 4)."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,18})/([0-9]{1,18})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise typer.BadParameter(f"{text!r} is no shard; write i/n with 1 <= i <= n, such as 2/4")
    return int(found[1]), int(found[2])
