"""Ask the compilers about a reader's kernel: what tells most comes first, until the budget is spent.

The stages: every backend and a few architectures with the newest frontend; every frontend; then, around
what fails, optimisation levels, hints, element types, what the signature assumes, smaller constants, further
architectures; at last everything else near it. Each answer is a judged cell, as in any run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import product

from packaging.version import Version

from harness.compile.cache import CacheError
from harness.inspect import CubinError, DisassemblyError
from harness.kernels import get
from harness.lab import Examination, Lab, Question
from harness.model import Case, Cell, Constant, Toolchain, Verdict
from harness.pipeline import judged
from harness.toolchain import InstallError, NotInStore, ProvisionError, UnsupportedFrontend
from harness.triage.asked import Asked, Setting, is_failure
from harness.triage.signatures import Signature
from harness.triage.variants import Variant, variants

ARCHS = ("sm_120", "sm_90", "sm_100")
"""Architectures asked about first; the first one is that of the details."""

FURTHER_ARCHS = ("sm_80", "sm_89", "sm_103", "sm_121")
LEVELS = (0, 1, 2, 3)
OLDEST_FRONTEND = Version("1.3")
"""The first cuda-tile that can export what it compiles."""

_UNAVAILABLE = (NotInStore, InstallError, UnsupportedFrontend, ProvisionError)
_MOST_LOOKED_INTO = 3
_PATIENCE = 2
"""How many times as long a compile may take that is asked again."""


@dataclass(frozen=True)
class Scope:
    """What may be swept. `compile_seconds` is the deadline of one compile."""

    frontends: tuple[str, ...]
    toolkits: tuple[str, ...]
    archs: tuple[str, ...] = ARCHS
    further_archs: tuple[str, ...] = FURTHER_ARCHS
    compile_seconds: float = 15.0


def newest_of_each(versions: Iterable[str], oldest: Version | None = None) -> tuple[str, ...]:
    """The newest release of every minor version, oldest first."""
    best: dict[tuple[int, int], str] = {}
    for text in versions:
        version = Version(text)
        if version.is_prerelease or (oldest is not None and version < oldest):
            continue
        minor = (version.major, version.minor)
        if minor not in best or Version(best[minor]) < version:
            best[minor] = text
    return tuple(best[minor] for minor in sorted(best))


@dataclass
class Sweep:
    """Asks settings of the signatures in stages; `asked` grows. Times are of time.monotonic."""

    lab: Lab
    signatures: Sequence[Signature]
    scope: Scope
    ends: float
    jobs: int
    progress: Callable[[Asked], None] = lambda asked: None
    asked: dict[Setting, Asked] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """Versions that could not be had, with the reason."""
    unasked: dict[Setting, None] = field(default_factory=dict)
    """Settings that were wanted when the budget was spent."""
    confirmed: set[Setting] = field(default_factory=set)
    """Settings whose compile did not end with more time and alone either, and those beside them."""

    def run(self) -> None:
        """All stages, as far as time allows."""
        for stage in (self._first, self._frontends, self._around, self._near, self._rest):
            self._ask(dict.fromkeys(stage()))
            self._confirm()

    # --- stages -------------------------------------------------------------------------------

    def _first(self) -> Iterator[Setting]:
        newest = self.scope.frontends[-1]
        for arch, toolkit in product(self.scope.archs, reversed(self.scope.toolkits)):
            for one in self.signatures:
                yield Setting(one.label, newest, toolkit, arch)

    def _frontends(self) -> Iterator[Setting]:
        newest = self.scope.toolkits[-1]
        for frontend in reversed(self.scope.frontends):
            for one in self.signatures:
                yield Setting(one.label, frontend, newest, self.scope.archs[0])

    def _around(self) -> Iterator[Setting]:
        """One step along each axis from every kind of failure."""
        for bad in self._representatives():
            for level in LEVELS:
                yield replace(bad, level=level)
            for variant in self._variants(bad.kernel):
                yield replace(bad, variant=(variant.axis, variant.label))
            for toolkit in reversed(self.scope.toolkits):
                yield replace(bad, cuda_toolkit=toolkit)
            for frontend in reversed(self.scope.frontends):
                yield replace(bad, cuda_tile=frontend)
            for arch in (*self.scope.archs, *self.scope.further_archs):
                yield replace(bad, arch=arch)

    def _near(self) -> Iterator[Setting]:
        """Levels and variants on every backend, for the first kind of failure."""
        for bad in self._representatives()[:1]:
            for toolkit in reversed(self.scope.toolkits):
                for level in LEVELS:
                    yield replace(bad, cuda_toolkit=toolkit, level=level)
                for variant in self._variants(bad.kernel):
                    yield replace(bad, cuda_toolkit=toolkit, variant=(variant.axis, variant.label))
            for arch, level in product(self.scope.archs, LEVELS):
                yield replace(bad, arch=arch, level=level)

    def _rest(self) -> Iterator[Setting]:
        """Every frontend with every backend; where nothing failed, every level too."""
        levels: tuple[int | None, ...] = (None,) if self._representatives() else (None, *LEVELS)
        every = product(
            levels, self.scope.archs, reversed(self.scope.frontends), reversed(self.scope.toolkits)
        )
        for level, arch, frontend, toolkit in every:
            for one in self.signatures:
                yield Setting(one.label, frontend, toolkit, arch, level)

    def _representatives(self) -> list[Setting]:
        """A failing setting per signature of a failure: of the newest versions, as reported."""
        found: dict[tuple[str, str | None], Setting] = {}
        for setting, asked in sorted(self.asked.items(), key=lambda item: _recency(item[0]), reverse=True):
            if is_failure(asked.result) and setting.level is None and not setting.variant[0]:
                found.setdefault((setting.kernel, asked.result.judgement.signature), setting)
        return list(found.values())[:_MOST_LOOKED_INTO]

    # --- asking -------------------------------------------------------------------------------

    def _ask(self, wanted: Iterable[Setting]) -> None:
        todo = [s for s in wanted if s not in self.asked and not self._is_absent(s)]
        order = list(todo)
        with ThreadPoolExecutor(self.jobs) as pool:
            running: set[Future[Asked | None]] = set()
            try:
                while todo or running:
                    while todo and len(running) < self.jobs and time.monotonic() < self.ends:
                        setting = todo.pop(0)
                        if not self._is_absent(setting):
                            running.add(pool.submit(self._one, setting))
                    if not running:
                        break
                    done, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                    for future in done:
                        asked = future.result()
                        if asked is not None:
                            self.asked[asked.setting] = asked
                            self.progress(asked)
            except BaseException:
                self.lab.supervisor.cancel()
                raise
        self.unasked |= dict.fromkeys(todo)
        # In the order in which they were wanted, whichever compiler was done first: reports name the first.
        self.asked |= {setting: self.asked.pop(setting) for setting in order if setting in self.asked}

    def _confirm(self) -> None:
        """Ask again what did not end, alone and with more time: it may only have been slow beside others.

        Of settings one step apart that did not end, one is asked for all. What cannot be asked again for
        want of time is no answer.
        """
        if self.lab.deadlines.patience > self.lab.deadlines.compile:
            return  # done with every compile
        usual = self.lab.deadlines
        self.lab.deadlines = replace(usual, compile=_PATIENCE * usual.compile)
        try:
            for setting in [s for s, asked in self.asked.items() if self._is_doubtful(s, asked)]:
                if self._stands_by_confirmed(setting):
                    self.confirmed.add(setting)
                    continue
                del self.asked[setting]
                again = self._one(setting) if time.monotonic() < self.ends else None
                if again is None:
                    self.unasked[setting] = None
                    continue
                self.asked[setting] = again
                self.progress(again)
                if again.result.verdict is Verdict.COMPILE_TIMEOUT:
                    self.confirmed.add(setting)
        finally:
            self.lab.deadlines = usual

    def _is_doubtful(self, setting: Setting, asked: Asked) -> bool:
        return asked.result.verdict is Verdict.COMPILE_TIMEOUT and setting not in self.confirmed

    def _stands_by_confirmed(self, setting: Setting) -> bool:
        return any(
            other.kernel == setting.kernel
            and sum(other.axes[axis] != value for axis, value in setting.axes.items()) == 1
            for other in self.confirmed
        )

    def _is_absent(self, setting: Setting) -> bool:
        return setting.cuda_tile in self.absent or setting.cuda_toolkit in self.absent

    def _one(self, setting: Setting) -> Asked | None:
        begun = time.monotonic()
        cell = self.cell(setting)
        chain = cell.toolchain
        for package, version in (("cuda-toolkit", chain.cuda_toolkit), ("cuda-tile", chain.cuda_tile)):
            try:
                if package == "cuda-tile":
                    self.lab.provisioner.frontend(version)
                else:
                    components = self.lab.provisioner.backend(chain).components
            except _UNAVAILABLE as reason:
                self.absent[version] = f"{package} {version}: {reason}"
                return None
        question = Question(chain, cell.arch, get(cell.case.kernel).specialise(cell.case))
        try:
            result = judged(cell, self.lab.examine(question), components)
        except (OSError, CacheError, CubinError, DisassemblyError) as failure:
            result = judged(cell, Examination(), components, infra=str(failure))
        return Asked(setting, result, time.monotonic() - begun)

    def cell(self, setting: Setting) -> Cell:
        """The setting as a cell of a matrix."""
        signature = self._signature(setting.kernel)
        parameters, hints = signature.parameters, signature.hints
        if setting.variant[0]:
            every = self._variants(setting.kernel)
            variant = next(v for v in every if (v.axis, v.label) == setting.variant)
            parameters, hints = variant.parameters, replace(hints, **dict(variant.hints))
        if setting.level is not None:
            hints = replace(hints, opt_level=setting.level)
        fixed = tuple(sorted((p.name, p.value) for p in parameters if isinstance(p, Constant)))
        dtype = next((p.dtype for p in parameters if hasattr(p, "dtype")), "")
        case = Case(
            kernel=signature.source,
            shape=(),
            dtype=dtype,
            hints=hints,
            knobs=fixed,
            parameters=parameters,
        )
        name = f"tile{setting.cuda_tile}-ctk{setting.cuda_toolkit}"
        return Cell(Toolchain(name, setting.cuda_tile, setting.cuda_toolkit), setting.arch, case)

    def _signature(self, identity: str) -> Signature:
        return next(one for one in self.signatures if one.label == identity)

    def _variants(self, identity: str) -> list[Variant]:
        signature = self._signature(identity)
        return variants(signature.parameters, signature.all_hints)


def _recency(setting: Setting) -> tuple[Version, Version, int]:
    order = (*reversed(FURTHER_ARCHS), *reversed(ARCHS))
    place = order.index(setting.arch) if setting.arch in order else -1
    return Version(setting.cuda_tile), Version(setting.cuda_toolkit), place
