"""`harness repro new|verify|issue`: folders that show a finding, proof of it, the text for upstream."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from harness.bisect.result import BisectResult, kept
from harness.command_text import DEFAULT_REPROS, command
from harness.commands.explain import find_result
from harness.lab import Lab
from harness.model import CellResult, Toolchain
from harness.oracle import OracleError, parse_oracle
from harness.process import StartError
from harness.reduce.reduced import RECORD_FILE, Reduced
from harness.report.files import write_atomically
from harness.repro.environment import environment
from harness.repro.identity import shipped
from harness.repro.issue import Facts, issue, reproduction
from harness.repro.new import Duplicate, make
from harness.repro.readme import where
from harness.repro.request import Request
from harness.repro.scrub import Scrubber
from harness.repro.spec import Place, Repro, ReproError, load_all
from harness.repro.verify import Check, Way, run_script, verify

_SEEN = 160
"""Characters of what a check saw that are shown on a terminal."""


@dataclass(frozen=True)
class NewOptions:
    """How to make a repro. `out` holds the results that the cell is picked from, `matrix` is the file
    they came from, for kernels of the reader's own; `deadline` is in seconds."""

    out: Path
    name: str
    repros: Path
    store: Path | None = None
    matrix: Path | None = None
    reduced: Path | None = None
    oracle: str = ""
    title: str | None = None
    link: str = ""
    deadline: float | None = None
    offline: bool = False
    force: bool = False


def new_command(pattern: str, options: NewOptions) -> int:
    """0 with a new folder, 1 where the finding has one already, 2 for a request that makes no sense."""
    console = Console(highlight=False, soft_wrap=True)
    with Lab(
        options.store, offline=options.offline, progress=lambda text: console.print(text, style="dim")
    ) as lab:
        try:
            request = _request(pattern, options)
            repro = make(lab, request, lambda text: console.print(f"  {text}", style="dim", markup=False))
        except Duplicate as error:
            _complain(str(error))
            return 1
        except (ReproError, OracleError) as error:
            _complain(str(error))
            return 2
    bad, good = (", ".join(place.name for place in group) for group in (repro.bad, repro.good))
    console.print(f"{repro.folder}: bad on {bad}; good on {good or 'nothing that was tried'}", markup=False)
    where = ["--repros", options.repros] if options.repros != DEFAULT_REPROS else []
    check = command("repro", "verify", repro.name, *where, store=options.store)
    console.print(f"to check it: {check}", markup=False)
    text = command("repro", "issue", repro.name, *where, store=options.store)
    console.print(f"the text for upstream: {text}", markup=False)
    known = shipped(repro.identity)
    if known is not None and known.folder.resolve() != repro.folder.resolve():
        console.print(f"the lab ships a repro of this finding: {known.folder} ({known.status})", markup=False)
    return 0


def _request(pattern: str, options: NewOptions) -> Request:
    found = find_result(pattern, options.out)
    result, results = found.result, found.results
    if result.cell.device is not None:
        # What compiling shows already is better shown without a GPU.
        twin = next((r for r in results if r.cell == replace(result.cell, device=None)), None)
        result = twin if twin is not None and twin.verdict.is_finding else result
    oracle = parse_oracle(options.oracle, result)
    peers = [r for r in results if r.cell.case == result.cell.case and r.cell.device is None]
    bisected, text = kept(options.out, result.cell.id, str(oracle)) or (None, None)
    deadline = result.compile.deadline_seconds if result.compile is not None else 0.0
    return Request(
        result=result,
        oracle=oracle,
        name=options.name,
        repros=options.repros,
        toolchains=tuple(_chains(peers, bisected)),
        archs=tuple({r.cell.arch for r in peers}),
        title=options.title,
        link=options.link,
        base=options.matrix.parent if options.matrix is not None else found.base,
        reduced=_reduced(options.reduced),
        bisect=text,
        deadline=options.deadline or deadline or 60.0,
        force=options.force,
        on_device=tuple(
            r for r in results if (r.cell.case, r.cell.device) == (result.cell.case, result.cell.device)
        ),
    )


def _chains(peers: Iterable[CellResult], bisected: BisectResult | None) -> Iterable[Toolchain]:
    """Toolchains that the same case was tried on, and those beside the edges of a bisection."""
    yield from {r.cell.toolchain: None for r in peers}
    if bisected is not None:
        ends = (bisected.last_good, bisected.first_bad, bisected.last_bad, bisected.first_fixed)
        yield from (point.toolchain for point in ends if point is not None)


def _reduced(folder: Path | None) -> Reduced | None:
    if folder is None:
        return None
    text = _read(folder / RECORD_FILE)
    if text is None:
        raise ReproError(f"{folder} holds no {RECORD_FILE}; harness reduce writes one")
    return Reduced.from_json(json.loads(text))


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


# --- verify ------------------------------------------------------------------------------------


def verify_command(
    names: tuple[str, ...], repros: Path, store: Path | None, *, offline: bool, as_json: bool
) -> int:
    """0 if every claim holds, 1 if any does not, 2 for a repro that cannot be read."""
    console = Console(stderr=as_json, highlight=False, soft_wrap=True)
    checks: list[Check] = []

    def report(check: Check) -> None:
        checks.append(check)
        if check.held and check.way is not Way.SCRIPT:
            return
        word, style = ("holds", "green") if check.held else ("FAILS", "bold red")
        console.print(f"  {word}", style=style, end=" ")
        target = f" {check.target}" if check.target else ""
        console.print(
            f"{check.claim} on {check.place.name}{target}, by {check.way}: {_short(check.seen)}", markup=False
        )

    def note(text: str) -> None:
        console.print(f"  {text}", style="dim", markup=False)

    with Lab(store, offline=offline, progress=note) as lab:
        try:
            chosen = load_all(repros, names)
            if not chosen:
                raise ReproError(f"{repros} holds no repros; harness repro new makes one")
            for repro in chosen:
                console.print(f"{repro.name}: {repro.title}", markup=False)
                held = verify(lab, repro, report)
                own = [check for check in checks if check.repro == repro.name]
                ways = Counter(str(check.way) for check in own if check.held)
                told = ", ".join(f"{count} by {way}" for way, count in ways.items())
                console.print(f"  {'all' if held else 'not all'} of {len(own)} hold: {told}", markup=False)
        except (ReproError, OracleError) as error:
            _complain(str(error))
            return 2
    failed = sum(not check.held for check in checks)
    console.print(f"{len(chosen)} repros, {len(checks)} checks, {failed} failed", markup=False)
    if as_json:
        print(json.dumps([_row(check) for check in checks]))
    return 1 if failed else 0


def _short(seen: str) -> str:
    return seen if len(seen) <= _SEEN else f"{seen[: _SEEN - 1]}…"


def _row(check: Check) -> dict[str, object]:
    return {
        "repro": check.repro,
        "way": str(check.way),
        "claim": check.claim,
        "toolchain": check.place.name,
        "target": check.target,
        "held": check.held,
        "seen": check.seen,
    }


# --- issue -------------------------------------------------------------------------------------


def issue_command(name: str, repros: Path, store: Path | None, to: Path | None, *, offline: bool) -> int:
    """Print the text of an issue and a link to the form; nothing is posted."""
    with Lab(store, offline=offline) as lab:
        try:
            (repro,) = load_all(repros, (name,))
        except ReproError as error:
            _complain(str(error))
            return 2
        made = issue(repro, _facts(lab, repro), Scrubber.of_this_machine(repros))
    if to is not None:
        write_atomically(to, made.text)
    else:
        print(made.text)
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    say.print(f"title: {made.title}", markup=False)
    say.print(f"to file it, open: {made.link}", markup=False)
    if made.left_out:
        say.print(f"too long for the link, paste from the text: {', '.join(made.left_out)}", markup=False)
    return 0


def _facts(lab: Lab, repro: Repro) -> Facts:
    """Run the script where it is bad, and look around."""
    place = repro.bad[0]
    components = {}
    if place.toolchain is not None:
        components = dict(lab.provisioner.backend(place.toolchain).components)
    driver = _driver(lab)
    return Facts(
        components=components,
        log=f"{repro.summary}\n{repro.observed}" if repro.is_on_device else _log(lab, repro, place),
        environment=_environment(place, driver),
        driver=driver,
        script=reproduction(repro, repro.script.read_text(encoding="utf-8")),
    )


def _log(lab: Lab, repro: Repro, place: Place) -> str:
    with environment(lab, place) as there:
        finished = run_script(lab, there, repro, place.targets[0] if place.targets else "")
    return f"{finished.stdout}{finished.stderr}".strip()


def _environment(place: Place, driver: str) -> str:
    """The facts that upstream's print_env.sh asks for, as far as they bear on a compiler."""
    return "\n".join(
        [
            f"Python: {platform.python_implementation()} {platform.python_version()}",
            f"System: {platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}",
            f"Toolchain: {where(place)}",
            f"GPU and driver: {driver}",
        ]
    )


def _driver(lab: Lab) -> str:
    """GPU names and driver version, or that there is none: compiling needs neither."""
    question = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = lab.supervisor.run(question, deadline=20)
    except StartError:
        return "none on this machine; compiled only"
    return "; ".join(done.stdout.split("\n")).strip("; ") if done.ok else "none that answers; compiled only"


def _complain(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, style="red", markup=False)
