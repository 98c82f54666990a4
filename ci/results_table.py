"""Keeps the results of a run on a GPU, and renders the README's table from them.

    python3 ci/results_table.py keep RUN_DIRECTORY NAME     writes ci/results/NAME.json and NAME.jsonl
    python3 ci/results_table.py                             rewrites the table in README.md

`NAME.json` says what the results were got with (GPU, driver, date); `NAME.jsonl` has one line per cell
that ran, cut down to what a reader may want to check. Times are kept only of runs that took them alone
on the GPU (--timed). Nothing but the standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "ci" / "results"
NAME = "h200-rmsnorm-16384x512"
BEGIN, END = "<!-- h200-table:begin -->", "<!-- h200-table:end -->"

Row = dict[str, Any]


def keep(run: Path, name: str, results: Path = RESULTS) -> None:
    """Cut a run's results down to what matters, and write them with their header."""
    lines = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    static = {_question(row): row for row in lines if row["device"] is None}
    kept = [_kept(row, static.get(_question(row))) for row in lines if row["device"] and row["observation"]]
    gpu = next(row["observation"]["gpu"] for row in lines if row["observation"] and row["observation"]["gpu"])
    header = {
        "gpu": gpu["name"],
        "arch": gpu["arch"],
        "driver": gpu["driver"],
        "date": _date(run),
        **{key: _one_or_all(row[key] for row in kept) for key in ("kernel", "shape", "dtype")},
        "cuda_tile": sorted({row["cuda_tile"] for row in kept}),
        "cells": len(kept),
        "verdicts": dict(sorted(Counter(row["verdict"] for row in kept).items())),
        "prediction_agrees": sum(row["prediction_agrees"] is True for row in kept),
    }
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps(header, indent=2) + "\n")
    (results / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))


def _one_or_all(values: Iterable[Any]) -> Any:
    """The value if there is one, a list of the few there are, or how many."""
    distinct = {json.dumps(value): value for value in values}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    return list(distinct.values()) if len(distinct) <= 12 else f"{len(distinct)} different"


def _question(row: Row) -> str:
    """What a cell shares with the compile it stands on."""
    keys = ("kernel", "shape", "dtype", "hints", "layout", "values", "seed", "toolchain", "arch")
    return json.dumps([row[key] for key in keys])


def _kept(row: Row, static: Row | None) -> Row:
    seen = row["observation"]
    foretold = static["verdict"] == "predicted_deadlock" if static else None
    timing = seen.get("timing")
    alone = timing is not None and bool(timing.get("samples_us"))
    return {
        **{key: row[key] for key in ("id", "kernel", "shape", "dtype", "hints", "cuda_tile", "cuda_toolkit")},
        "components": row["components"],
        "registers": row["resources"]["registers"],
        "threads": row["resources"]["threads"],
        "cubin_sha256": row["cubin_sha256"],
        "predicted": static["verdict"] if static else None,
        "prediction_agrees": None if foretold is None else foretold == (row["verdict"] == "hang"),
        "verdict": row["verdict"],
        "signature": row["signature"],
        "summary": row["summary"],
        "outputs": [
            {key: output[key] for key in ("name", "sha256", "worst_ulp", "bound_ulp")}
            for output in seen["outputs"]
        ],
        "median_us": timing["median_us"] if alone else None,
        "spread_us": timing["spread_us"] if alone else None,
        "warm_median_us": timing.get("warm_median_us") if alone else None,
        "warm_samples_us": timing.get("warm_samples_us") if alone else None,
    }


def _date(run: Path) -> str:
    """The day the newest run in this directory started."""
    with contextlib.closing(sqlite3.connect(f"file:{run / 'harness.sqlite'}?mode=ro", uri=True)) as store:
        (started,) = store.execute("SELECT max(started) FROM run").fetchone()
    return datetime.fromtimestamp(started, UTC).date().isoformat()


# --- the table ----------------------------------------------------------------------------------


def render(name: str = NAME, results: Path = RESULTS) -> str:
    """The results as Markdown. Occupancies whose cells read alike share a line."""
    header = json.loads((results / f"{name}.json").read_text())
    rows = [json.loads(line) for line in (results / f"{name}.jsonl").read_text().splitlines()]
    toolkits = sorted({row["cuda_toolkit"] for row in rows}, key=_version)
    cells = {(row["hints"]["occupancy"], row["hints"]["allow_tma"], row["cuda_toolkit"]): row for row in rows}
    occupancies = sorted({occupancy for occupancy, _, _ in cells}, key=lambda n: n or 0)
    lines: dict[tuple[str, ...], list[int | None]] = {}
    for tma in (True, False):
        for occupancy in occupancies:
            texts = tuple(_look(cells.get((occupancy, tma, toolkit))) for toolkit in toolkits)
            if any(texts):
                lines.setdefault((_yes(tma), *texts), []).append(occupancy)
    table = [
        f"| occupancy | TMA | {' | '.join(toolkits)} |",
        f"| --- | --- |{' --- |' * len(toolkits)}",
        *(
            f"| {', '.join('default' if n is None else str(n) for n in found)} | {' | '.join(texts)} |"
            for texts, found in lines.items()
        ),
    ]
    return "\n".join([_sentence(header), "", *table])


def _sentence(header: dict[str, Any]) -> str:
    shape = "×".join(map(str, header["shape"]))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in header["verdicts"].items())
    return (
        f"{header['gpu']}, driver {header['driver']}, {header['date']}; `{header['kernel']}`, {shape}, "
        f"{header['dtype']}, cuda-tile {', '.join(header['cuda_tile'])}: {header['cells']} cells, {counts}. "
        f"What the machine code foretold is what happened in {header['prediction_agrees']} of them. "
        "Numbers are registers a thread; columns are cuda-toolkit."
    )


def _look(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{'✔' if row['verdict'] == 'pass' else '✖ ' + row['verdict']} {row['registers']}"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def updated(readme: str, table: str) -> str:
    """The README's text with the table between its markers. ValueError where there are none."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md needs the lines {BEGIN} and {END}")
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    keeping = commands.add_parser("keep", help="keep the results of a run")
    keeping.add_argument("run", type=Path, help="directory that --out wrote")
    keeping.add_argument("name", help="name of the files in ci/results")
    options = parser.parse_args()
    if options.command == "keep":
        keep(options.run, options.name)
    else:
        readme = ROOT / "README.md"
        readme.write_text(updated(readme.read_text(), render()))


if __name__ == "__main__":
    main()
