"""Run tileiras on bytecode, each time in a directory, a process group and an environment of its own.

A compile is remembered by everything that can matter: the bytes of all backend components, the
bytecode, architecture, optimisation level and further options. Failures are remembered too; what
the machine did (no space, somebody's SIGKILL or SIGTERM) is not.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.compile.cache import Cache, CacheError
from harness.compile.shim import compose_with_shim, missing_pieces, read_shim
from harness.legible import legible
from harness.model import Backend, CompileOutcome, canonical_json
from harness.outcome import killed, machine_failed, ptxas_signal
from harness.process import Finished, Supervisor

PROTOCOL = 1
"""Raise it when the same compile may come out otherwise: old memos are then out of use."""

_COMPILE = "compile"
_DIAGNOSIS = "diagnosis"
_INPUT = "kernel.tileirbc"
_OUTPUT = "kernel.cubin"
_ELF_MAGIC = b"\x7fELF"


class Compiler:
    """Compiles bytecode to cubins; safe to share between threads. Equal compiles run once."""

    def __init__(self, supervisor: Supervisor, cache: Cache) -> None:
        self._supervisor = supervisor
        self._cache = cache

    def compile(
        self,
        backend: Backend,
        bytecode_sha256: str,
        arch: str,
        opt_level: int,
        deadline: float,
        extra: Sequence[str] = (),
    ) -> CompileOutcome:
        """One run of tileiras, or what an equal run came to before. `deadline` is in seconds.

        A remembered timeout answers for deadlines no longer than its own. Raises `CacheError`, and
        `StartError` where the backend's tileiras cannot be executed.
        """
        key = _key(backend, bytecode_sha256, arch, opt_level, extra)
        outcome = self._recall(key, deadline)
        if outcome is not None:
            return outcome
        with self._cache.exclusive(key, deadline, lambda: self._supervisor.cancelled):
            outcome = self._recall(key, deadline)
            if outcome is None:
                outcome = self._compile(backend, bytecode_sha256, arch, opt_level, deadline, extra)
                if _lasts(outcome):
                    self._cache.remember(_COMPILE, key, outcome.to_json())
        return outcome

    def diagnose(
        self, backend: Backend, bytecode_sha256: str, arch: str, opt_level: int, deadline: float
    ) -> dict[str, Any]:
        """Compile once more with a shim in place of ptxas, to see past tileiras's catch-all.

        Answers `ptxas_called`, `ptxas_exit_code`, `ptxas_stderr`, `ptx_sha256` (the PTX is kept as a
        blob), `timed_out`, and the `missing` pieces and `components` (versions) of the tree. A signal
        that ended ptxas shows as minus its number.
        """
        key = _key(backend, bytecode_sha256, arch, opt_level, ())
        tree = {"missing": missing_pieces(Path(backend.root)), "components": backend.components}
        known = self._cache.recall_as(_DIAGNOSIS, key, _diagnosis)
        if known is not None:
            return {**known, **tree}
        with self._supervisor.scratch("diagnose-") as directory:
            try:
                root = compose_with_shim(Path(backend.root).absolute(), directory / "backend")
            except OSError as error:
                raise _explained(error, directory) from error
            finished = self._run(root, bytecode_sha256, arch, opt_level, deadline, (), directory)
            answer, ptx = read_shim(root)
        answer["ptx_sha256"] = self._cache.put(ptx) if ptx is not None else None
        answer["timed_out"] = finished.timed_out
        shot = killed(ptxas_signal(answer)) or machine_failed(self._outcome(finished, None, deadline))
        if not finished.timed_out and not shot:
            self._cache.remember(_DIAGNOSIS, key, answer)
        return {**answer, **tree}

    def _compile(
        self,
        backend: Backend,
        bytecode_sha256: str,
        arch: str,
        opt_level: int,
        deadline: float,
        extra: Sequence[str],
    ) -> CompileOutcome:
        with self._supervisor.scratch("compile-") as directory:
            finished = self._run(
                Path(backend.root).absolute(), bytecode_sha256, arch, opt_level, deadline, extra, directory
            )
            try:
                cubin = (directory / _OUTPUT).read_bytes()
            except OSError:
                cubin = None
        return self._outcome(finished, cubin, deadline)

    def _run(
        self,
        root: Path,
        bytecode_sha256: str,
        arch: str,
        opt_level: int,
        deadline: float,
        extra: Sequence[str],
        directory: Path,
    ) -> Finished:
        """File names are relative, so that what the compiler says does not name the directory."""
        bytecode = self._cache.get(bytecode_sha256)
        if bytecode is None:
            raise CacheError(
                f"bytecode {bytecode_sha256[:12]} is missing from the cache: run again to trace it"
            )
        try:
            (directory / _INPUT).write_bytes(bytecode)
        except OSError as error:
            raise _explained(error, directory) from error
        options = ["--gpu-name", arch, f"-O{opt_level}", "--lineinfo", *extra]
        return self._supervisor.run(
            [root / "bin" / "tileiras", _INPUT, "-o", _OUTPUT, *options],
            deadline=deadline,
            cwd=directory,
            env={
                "PATH": "/usr/bin:/bin",
                "LC_ALL": "C",
                "HOME": str(directory),
                "TMPDIR": str(directory),
            },
            sample=True,
        )

    def _outcome(self, finished: Finished, cubin: bytes | None, deadline: float) -> CompileOutcome:
        stderr, sha256 = legible(finished.stderr), None
        if finished.ok and cubin is not None and cubin.startswith(_ELF_MAGIC):
            sha256 = self._cache.put(cubin)
        elif finished.ok:
            found = "wrote no cubin" if cubin is None else f"wrote {len(cubin)} bytes that are not a cubin"
            stderr = f"{stderr}tileiras ended with exit code 0 but {found}\n"
        return CompileOutcome(
            status="timeout" if finished.timed_out else "failed" if sha256 is None else "ok",
            exit_code=finished.exit_code,
            signal=finished.signal,
            stdout=legible(finished.stdout),
            stderr=stderr,
            wall_seconds=finished.wall_seconds,
            cpu_seconds=finished.cpu_seconds,
            peak_rss_bytes=finished.peak_rss_bytes,
            deadline_seconds=deadline,
            holder=finished.holder,
            usage=finished.usage,
            rss_over_time=finished.rss_over_time,
            cpu_over_time=finished.cpu_over_time,
            cubin_sha256=sha256,
            unkillable=finished.unkillable,
        )

    def _recall(self, key: str, deadline: float) -> CompileOutcome | None:
        outcome = self._cache.recall_as(_COMPILE, key, self._remembered)
        if outcome is not None and outcome.status == "timeout" and deadline > outcome.deadline_seconds:
            return None
        return outcome

    def _remembered(self, value: dict[str, Any]) -> CompileOutcome:
        """Raises ValueError or another of `recall_as`'s where this is of no use."""
        outcome = CompileOutcome.from_json({**value, "cached": True})
        if outcome.status not in ("ok", "failed", "timeout"):
            raise ValueError(outcome.status)
        if outcome.status == "ok" and self._cache.get(outcome.cubin_sha256 or "") is None:
            raise LookupError(outcome.cubin_sha256)
        return outcome


def _key(backend: Backend, bytecode_sha256: str, arch: str, opt_level: int, extra: Sequence[str]) -> str:
    return canonical_json([PROTOCOL, backend.identity, bytecode_sha256, arch, opt_level, list(extra)])


def _diagnosis(value: dict[str, Any]) -> dict[str, Any]:
    names = ("ptxas_called", "ptxas_exit_code", "ptxas_stderr", "ptx_sha256", "timed_out")
    return {name: value[name] for name in names}


def _lasts(outcome: CompileOutcome) -> bool:
    """Whether an equal compile would come out the same: not where the machine failed."""
    return not outcome.unkillable and (outcome.status == "timeout" or not machine_failed(outcome))


def _explained(error: OSError, directory: Path) -> CacheError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CacheError(
            f"no space left in {directory.parent} to compile in: free some space, or point TMPDIR elsewhere"
        )
    return CacheError(f"cannot write to {directory}: {error.strerror or error}")
