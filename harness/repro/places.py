"""Where a repro's kernel shows the fault and where not: asked of the laboratory, or told by a GPU host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from packaging.version import Version

from harness.cluster import arch_key
from harness.lab import Lab
from harness.model import Cell, Toolchain
from harness.oracle import Answer
from harness.repro.laboratory import retraced
from harness.repro.request import Note, Request
from harness.repro.spec import Place, Repro, ReproError, Status
from harness.repro.symptom import Symptom
from harness.repro.verify import holds


def tried(lab: Lab, request: Request, repro: Repro, symptom: Symptom, note: Note) -> Repro:
    """The repro with the places where the script's kernel was seen to be bad or good."""
    assert repro.case is not None
    own = request.result.cell
    archs = sorted({*request.archs, own.arch}, key=lambda arch: (arch != own.arch, arch_key(arch)))
    chains = _distinct(lab, own.toolchain, request.toolchains, symptom)
    places: list[Place] = []
    for chain in chains:
        answers: dict[str, Answer] = {}
        for arch in archs:
            result = retraced(lab, repro, Cell(chain, arch, repro.case))
            answers[arch] = request.oracle.answer(result)
            note(f"{chain.name} {arch}: {answers[arch]}, {result.judgement.summary}")
            if chain == own.toolchain and arch == own.arch and answers[arch] is not Answer.BAD:
                raise ReproError(
                    f"the kernel as written for repro.py does not show it on {chain.name} {arch}: "
                    f"{result.judgement.summary}"
                )
        for answer in (Answer.BAD, Answer.GOOD):
            there = tuple(arch for arch, found in answers.items() if found is answer)
            if there:
                places.append(Place(answer is Answer.BAD, chain, (), there))
    return replace(repro, places=of_interest(places, own.toolchain), status=status_of(places))


def recorded(lab: Lab, request: Request, repro: Repro, symptom: Symptom, note: Note) -> Repro:
    """The repro with the places where a device was seen to run its machine code, wrong or right."""
    assert repro.case is not None
    own = request.result.cell
    places: list[Place] = []
    for result in request.on_device:
        answer = request.oracle.answer(result)
        code = result.inspection.code_sha256 if result.inspection is not None else None
        if answer is Answer.UNKNOWN or code is None:
            continue
        chain, arch = result.cell.toolchain, result.cell.arch
        place = Place(answer is Answer.BAD, chain, (), (arch,), code)
        again = retraced(lab, repro, Cell(chain, arch, repro.case))
        held, seen = holds(repro, place, again, request.oracle)
        note(f"{chain.name} {arch}: {answer} on the device; the script's kernel {seen}")
        if held:
            places.append(place)
        elif result.cell == own:
            raise ReproError(
                f"the kernel as written for repro.py is another on {chain.name} {arch}: it {seen}"
            )
    return replace(repro, places=of_interest(places, own.toolchain), status=status_of(places))


def _distinct(lab: Lab, own: Toolchain, others: Iterable[Toolchain], symptom: Symptom) -> list[Toolchain]:
    """All that may tell something new, oldest first: toolkits may ship the same files.

    A fault of the frontend is asked of all frontends on one backend, any other of all backends with the
    cell's own frontend and the newest.
    """
    kept: dict[tuple[str, ...], Toolchain] = {}
    newest = max((chain.cuda_tile for chain in (own, *others)), key=Version)
    by_likeness = sorted(
        set(others), key=lambda chain: (chain.cuda_toolkit != own.cuda_toolkit, *_order(chain))
    )
    for chain in [own, *by_likeness]:
        components = tuple(lab.provisioner.component_versions(chain).values())
        if symptom is Symptom.FRONTEND:
            kept.setdefault((chain.cuda_tile,), chain)
        elif chain.cuda_tile in (own.cuda_tile, newest):
            kept.setdefault((chain.cuda_tile, *components), chain)
    return sorted(kept.values(), key=_order)


def _order(chain: Toolchain) -> tuple[Version, Version, str]:
    return Version(chain.cuda_tile), Version(chain.cuda_toolkit), chain.name


def of_interest(places: Iterable[Place], own: Toolchain) -> tuple[Place, ...]:
    """The cell's own place first, then the bad ones; good ones only for targets where some are bad."""
    every = list(places)
    affected = {target for place in every if place.bad for target in place.targets}
    kept = []
    for place in every:
        targets = tuple(t for t in place.targets if t in affected)
        if targets:
            kept.append(replace(place, targets=targets))
    return tuple(sorted(kept, key=lambda place: (not place.bad, place.toolchain != own)))


def status_of(places: Iterable[Place]) -> Status:
    """Fixed if, on every target, something newer than all that is bad is good."""
    every = [(target, place) for place in places for target in place.targets]

    def newest(target: str, bad: bool) -> tuple[Version, Version, str] | None:
        found = (_order(p.toolchain) for t, p in every if t == target and p.bad is bad and p.toolchain)
        return max(found, default=None)

    for target in {target for target, place in every if place.bad}:
        good, bad = newest(target, False), newest(target, True)
        if good is None or (bad is not None and good < bad):
            return Status.OPEN
    return Status.FIXED
