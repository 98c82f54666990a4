"""What runs planned and what they found, in one SQLite file.

A result is committed the moment its cell is judged, so `kill -9` loses only cells that had no
result. The plan is written first: planned cells without a result can always be told, and
`close_run` turns them into `not_run`. Several processes may write to the same file, each to its own
run. `store_file.py` has the file itself, and its failures.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.command_line import scrub
from harness.judge import judge_infra
from harness.legible import legible, legible_json
from harness.model import Cell, CellResult, Record, Verdict
from harness.store_file import (
    BUSY_SECONDS,
    StoreError,
    StoreFailed,
    explained,
    prepare,
    transaction,
    use_log,
)

__all__ = ["FILE_NAME", "Run", "Sighting", "Store", "StoreError", "StoreFailed"]

FILE_NAME = "harness.sqlite"

# Verdicts worth keeping when an interrupted run is taken up again: the others may turn out better.
_INCONCLUSIVE = frozenset(
    {Verdict.NOT_RUN, Verdict.TAINTED, Verdict.SKIPPED, Verdict.INFRA_ERROR, Verdict.TOOLCHAIN_BROKEN}
)


KERNELS_FOLDER = "kernels_folder"
"""In a run's `host`: the folder that paths of the reader's own kernels start from, the matrix's own."""


@dataclass(frozen=True)
class Run(Record):
    """One invocation. Times are seconds since the epoch; `finished` is None while it runs or if it died."""

    id: str
    matrix_digest: str
    started: float
    finished: float | None
    argv: tuple[str, ...]
    versions: dict[str, str]
    host: dict[str, str]


@dataclass(frozen=True)
class Sighting(Record):
    """What one run said of one cell. `made_with` holds versions: of the harness, of components, of the
    driver; `kernel` is the digest of the kernel's file; `compile_seconds` are of CPU where they are known,
    and those of the real compile where it was remembered."""

    run: str
    recorded: float
    cell: str
    verdict: Verdict
    signature: str | None
    made_with: dict[str, str]
    kernel: str | None
    bytecode: str | None
    cubin: str | None
    compile_seconds: float | None


class Store:
    """An open result store. Safe to share between threads; use as a context manager."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self._connection = connection
        self._clock = clock
        self._lock = threading.RLock()

    @classmethod
    def open(cls, out: Path, clock: Callable[[], float] = time.time) -> Self:
        """Open the store of a result directory, making both if need be. Raises StoreError, and
        StoreFailed where the disk is full."""
        path = out / FILE_NAME
        with explained(path, refusal=StoreError):
            out.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                use_log(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
                prepare(path, connection)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, clock)

    def close(self) -> None:
        """Fold the log into the file and close it."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- writing ------------------------------------------------------------------------------

    def start_run(
        self,
        matrix_digest: str,
        cells: Iterable[Cell],
        *,
        argv: Sequence[str] = (),
        versions: dict[str, str] | None = None,
        host: dict[str, str] | None = None,
    ) -> str:
        """Write down what is planned, before anything is done; returns the run's id."""
        run_id = uuid.uuid4().hex[:12]
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO run VALUES (?, ?, ?, NULL, ?, ?, ?)",
                (
                    run_id,
                    matrix_digest,
                    self._clock(),
                    json.dumps(scrub(argv)),
                    json.dumps(versions or {}),
                    json.dumps(host or {}),
                ),
            )
            connection.executemany(
                "INSERT OR IGNORE INTO planned VALUES (?, ?, ?, ?)",
                ((run_id, at, cell.id, json.dumps(cell.to_json())) for at, cell in enumerate(cells)),
            )
        return run_id

    def record(self, run_id: str, result: CellResult) -> None:
        """Keep one judged cell; a second result for the same cell replaces the first.

        One that cannot be written down is kept as an `infra_error` that says so.
        """
        try:
            row = self._row(run_id, result)
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            why = f"the result of this cell cannot be recorded: {type(error).__name__}: {error}"
            row = self._row(run_id, CellResult(result.cell, judge_infra(why)))
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?)", row)

    def _row(self, run_id: str, result: CellResult) -> tuple[str | float | None, ...]:
        """The texts of a result are made legible, for whoever reads them; its cell stays what was asked."""
        judged, plain = result.judgement, result.to_json()
        kept = json.dumps({**legible_json(plain), "cell": plain["cell"]})
        name = legible(judged.signature) if judged.signature is not None else None
        return run_id, result.cell.id, str(judged.verdict), name, self._clock(), kept

    def finish_run(self, run_id: str) -> None:
        """Mark the run as complete, so that no later one takes it up again."""
        with self._writing() as connection:
            connection.execute("UPDATE run SET finished = ? WHERE id = ?", (self._clock(), run_id))

    def close_run(self, run_id: str, unreached: Callable[[Cell], CellResult]) -> list[CellResult]:
        """Give every planned cell without a result the one `unreached` makes; returns those."""
        missing = [unreached(cell) for cell in self.missing_cells(run_id)]
        for result in missing:
            self.record(run_id, result)
        return missing

    # --- reading ------------------------------------------------------------------------------

    def runs(self, matrix_digest: str | None = None) -> list[Run]:
        """All runs, or those of one matrix, newest first."""
        rows = self._read(
            "SELECT id, matrix_digest, started, finished, argv, versions, host FROM run "
            "WHERE ?1 IS NULL OR matrix_digest = ?1 ORDER BY started DESC, rowid DESC",
            (matrix_digest,),
        )
        return [
            Run(id_, matrix, begun, ended, tuple(json.loads(argv)), json.loads(versions), json.loads(host))
            for id_, matrix, begun, ended, argv, versions, host in rows
        ]

    def planned_cells(self, run_id: str) -> list[Cell]:
        """What the run set out to do, in its order."""
        rows = self._read("SELECT cell FROM planned WHERE run_id = ? ORDER BY position", (run_id,))
        return [Cell.from_json(json.loads(cell)) for (cell,) in rows]

    def missing_cells(self, run_id: str) -> list[Cell]:
        """Planned cells that have no result."""
        rows = self._read(
            "SELECT cell FROM planned WHERE run_id = ?1 AND cell_id NOT IN "
            "(SELECT cell_id FROM result WHERE run_id = ?1) ORDER BY position",
            (run_id,),
        )
        return [Cell.from_json(json.loads(cell)) for (cell,) in rows]

    def results(self, run_id: str) -> list[CellResult]:
        """The run's results in the order of its plan."""
        rows = self._read(
            "SELECT result.result FROM result LEFT JOIN planned USING (run_id, cell_id) "
            "WHERE run_id = ? ORDER BY planned.position, result.recorded",
            (run_id,),
        )
        return [CellResult.from_json(json.loads(result)) for (result,) in rows]

    def finished_cells(
        self, matrix_digest: str, versions: dict[str, str] | None = None
    ) -> dict[str, CellResult]:
        """What an interrupted run of this matrix already knows, by cell id, for the next to start from.

        Empty if the newest run with these versions came to its end. Only conclusive verdicts count.
        """
        known: dict[str, CellResult] = {}
        for run in self.runs(matrix_digest):
            if versions is not None and run.versions != versions:
                continue
            if run.finished is not None:
                break
            for result in self.results(run.id):
                if result.verdict not in _INCONCLUSIVE:
                    known.setdefault(result.cell.id, result)
        return known

    def cells(self) -> list[Cell]:
        """Every cell that was ever planned, the newest plan's first."""
        rows = self._read(
            "SELECT cell FROM planned JOIN run ON run.id = run_id "
            "GROUP BY cell_id ORDER BY max(started) DESC, position",
            (),
        )
        return [Cell.from_json(json.loads(cell)) for (cell,) in rows]

    def sightings(self, cell_id: str | None = None) -> list[Sighting]:
        """What every run said of every cell, or of one, oldest first; without the bulk of the results."""
        rows = self._read(
            "SELECT run_id, recorded, cell_id, verdict, signature, run.versions, "
            "json_extract(result, '$.components'), json_extract(result, '$.kernel_sha256'), "
            "json_extract(result, '$.trace.bytecode_sha256'), "
            "json_extract(result, '$.compile.cubin_sha256'), "
            "json_extract(result, '$.observation.gpu.driver'), "
            "json_extract(result, '$.compile.cpu_seconds'), json_extract(result, '$.compile.wall_seconds') "
            "FROM result JOIN run ON run.id = run_id WHERE ?1 IS NULL OR cell_id = ?1 "
            "ORDER BY run.started, run.rowid, recorded",
            (cell_id,),
        )
        return [
            Sighting(
                run=run,
                recorded=recorded,
                cell=cell,
                verdict=Verdict(verdict),
                signature=signature,
                made_with=json.loads(versions)
                | json.loads(components or "{}")
                | ({"driver": driver} if driver else {}),
                kernel=kernel,
                bytecode=bytecode,
                cubin=cubin,
                compile_seconds=cpu or wall,
            )
            for run, recorded, cell, verdict, signature, versions, *rest in rows
            for components, kernel, bytecode, cubin, driver, cpu, wall in [rest]
        ]

    # --- the file -----------------------------------------------------------------------------

    def _read(self, query: str, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._lock, explained(self.path):
            return self._connection.execute(query, arguments).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self.path), transaction(self._connection):
            yield self._connection
