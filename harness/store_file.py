"""The SQLite file below the result store: its tables, its log, and what its failures mean.

Every failure of the disk or the file becomes one sentence, `StoreError`, that names file and remedy.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SCHEMA_VERSION = 1
BUSY_SECONDS = 30.0

_SCHEMA = """
CREATE TABLE run (
    id TEXT PRIMARY KEY, matrix_digest TEXT NOT NULL, started REAL NOT NULL, finished REAL,
    argv TEXT NOT NULL, versions TEXT NOT NULL, host TEXT NOT NULL
);
CREATE TABLE planned (
    run_id TEXT NOT NULL REFERENCES run (id), position INTEGER NOT NULL, cell_id TEXT NOT NULL,
    cell TEXT NOT NULL, PRIMARY KEY (run_id, cell_id)
);
CREATE TABLE result (
    run_id TEXT NOT NULL REFERENCES run (id), cell_id TEXT NOT NULL, verdict TEXT NOT NULL,
    signature TEXT, recorded REAL NOT NULL, result TEXT NOT NULL, PRIMARY KEY (run_id, cell_id)
);
CREATE INDEX result_signature ON result (signature);
"""


class StoreError(Exception):
    """The result store cannot be read or written; the text says which file, why, and what to do."""


class StoreFailed(StoreError):
    """An open result store failed under a run: its disk is full, read-only all of a sudden, or gone."""


def use_log(connection: sqlite3.Connection) -> None:
    """Write-ahead logging. SQLite does not wait for a process that is switching it on, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def prepare(path: Path, connection: sqlite3.Connection) -> None:
    """Lay the tables, or refuse a file whose schema is not ours."""
    with transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        elif version > SCHEMA_VERSION:
            raise StoreError(
                f"The result store {path} was written by a newer harness (schema {version}, this one knows "
                f"{SCHEMA_VERSION}): upgrade the harness or choose another directory with --out."
            )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One immediate transaction: all of it or nothing is kept."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explained(path: Path, refusal: type[StoreError] = StoreFailed) -> Iterator[None]:
    """Turn what SQLite and the file system raise into one sentence that names file and remedy."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        kind = StoreFailed if _is_full(error, path) else refusal
        raise kind(f"The result store {path} {_reason(error, path)}.") from error


def _is_full(error: sqlite3.Error | OSError, path: Path) -> bool:
    """Whether the disk is full. SQLite says no more than I/O error where its log cannot grow."""
    said = str(error)
    if "disk I/O error" in said:
        with suppress(OSError):
            return shutil.disk_usage(path.parent).free == 0
    return "full" in said or "No space left" in said or "quota" in said


def _reason(error: sqlite3.Error | OSError, path: Path) -> str:
    said = str(error)
    elsewhere = "choose another directory with --out"
    if _is_full(error, path):
        return f"cannot be written because the disk is full: free some space or {elsewhere}"
    if "readonly" in said or isinstance(error, PermissionError):
        return f"cannot be written for lack of permission: allow it or {elsewhere}"
    if "unable to open" in said or isinstance(error, FileExistsError | NotADirectoryError):
        return f"cannot be opened: {elsewhere}"
    if "not a database" in said or "malformed" in said:
        return f"is damaged ({said}): move it away or {elsewhere}"
    if "locked" in said:
        return f"stayed locked by another process for {BUSY_SECONDS:.0f} s: wait for it or {elsewhere}"
    return f"failed ({said}): {elsewhere}"
