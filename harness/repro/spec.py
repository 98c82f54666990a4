"""`repro.toml`: what a repro is about, where it must show and where not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from harness.matrix import expand
from harness.matrix.document import read_document
from harness.matrix.explain import explain
from harness.matrix.fields import Arch, Seconds, Table, Version
from harness.matrix.problems import MatrixError, Problem
from harness.matrix.rules import Text
from harness.matrix.schema import CaseTable
from harness.model import Case, Cell, Toolchain, Verdict

SPEC_FILE = "repro.toml"
SCRIPT_FILE = "repro.py"
README_FILE = "README.md"
PTX_FILE = "kernel.ptx"
BISECT_FILE = "bisect.json"


def bytecode_file(arch: str) -> str:
    """Bytecode names its architecture in hints, so there is a file for each."""
    return f"kernel.{arch}.tileirbc"


NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,59}")


ON_DEVICE = (Verdict.WRONG_RESULT, Verdict.NONDETERMINISTIC, Verdict.HANG, Verdict.DEVICE_FAULT)
"""Verdicts that only a GPU gives. Elsewhere it is checked that a compiler writes the code that was seen."""


class ReproError(Exception):
    """A repro cannot be made or used; the text is one sentence with a remedy."""


class Kind(StrEnum):
    """A cell is a kernel that the lab can trace and compile; of a script only its end is looked at."""

    CELL = "cell"
    SCRIPT = "script"


class Status(StrEnum):
    """Whether the newest toolchain that was tried still shows the fault."""

    OPEN = "open"
    FIXED = "fixed"


@dataclass(frozen=True)
class Place:
    """One toolchain, or packages as pip would install them, and whether the fault shows there.

    `targets` are the architectures this is said of; none where no architecture matters. `code_sha256` is the
    machine code that a GPU ran, where only a GPU could tell.
    """

    bad: bool
    toolchain: Toolchain | None
    packages: tuple[str, ...]
    targets: tuple[str, ...]
    code_sha256: str | None = None

    @property
    def name(self) -> str:
        return self.toolchain.name if self.toolchain is not None else " ".join(self.packages)


@dataclass(frozen=True)
class Repro:
    """A folder below repros/ and what it claims. `deadline` is in seconds, for one compile or script.

    `identity` is what no two repros share; `oracle` tells bad from good. `case` is None for a script.
    """

    folder: Path
    kind: Kind
    title: str
    status: Status
    link: str
    summary: str
    expected: str
    identity: str
    oracle: str
    verdict: str
    component: str
    origin: str
    observed: str
    deadline: float
    bytecode_version: str | None
    case: Case | None
    places: tuple[Place, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def bad(self) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.bad)

    @property
    def good(self) -> tuple[Place, ...]:
        return tuple(place for place in self.places if not place.bad)

    @property
    def script(self) -> Path:
        return self.folder / SCRIPT_FILE

    @property
    def is_on_device(self) -> bool:
        """Whether only a GPU shows the fault."""
        return self.verdict in ON_DEVICE

    @property
    def bytecode(self) -> tuple[Path, ...]:
        """The bytecode files there are."""
        return tuple(sorted(self.folder.glob(bytecode_file("sm_*"))))

    @property
    def opt_level(self) -> int:
        """The -O level that the kernel is compiled with."""
        level = self.case.hints.opt_level if self.case is not None else None
        return 3 if level is None else level

    def cells(self) -> Iterator[tuple[Place, Cell]]:
        """Every cell that something is claimed of."""
        for place in self.places:
            if self.case is not None and place.toolchain is not None:
                for arch in place.targets:
                    yield place, Cell(place.toolchain, arch, self.case)


# --- reading -----------------------------------------------------------------------------------

Sentence = Annotated[str, Text("a sentence", r"[^\x00-\x1f]*", "printable characters on one line", 2000)]
Package = Annotated[
    str,
    Text(
        "a package",
        r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,_-]+\])?==[0-9][0-9A-Za-z.]*",
        'name==version, such as "cuda-tile==1.5.0"',
        120,
    ),
]
Digest = Annotated[str, Text("a digest", r"[0-9a-f]{64}", "64 hexadecimal digits", 64)]
Link = Annotated[str, Text("a link", r"(https://[^\s\"<>]+)?", "https://… or nothing", 300)]


class PlaceTable(Table):
    """Where the fault shows ([[bad]]) or does not ([[good]])."""

    cuda_tile: Version | None = Field(None, description="Frontend version.", examples=["1.5.0"])
    cuda_toolkit: Version | None = Field(None, description="Backend version.", examples=["13.3.1"])
    tileiras: Version | None = Field(None, description="Another tileiras.", examples=["13.4.92"])
    nvvm: Version | None = Field(None, description="Another libnvvm.", examples=["13.4.92"])
    ptxas: Version | None = Field(None, description="Another ptxas.", examples=["13.4.92"])
    packages: tuple[Package, ...] = Field(
        (), description="Packages, installed as pip would.", examples=[["cuda-tile==1.5.0"]]
    )
    targets: tuple[Arch, ...] | None = Field(
        None, description="Architectures, where others than the repro's.", examples=[["sm_120"]]
    )
    code_sha256: Digest | None = Field(
        None, description="Machine code that a GPU ran, where only a GPU can tell.", examples=["0" * 64]
    )


class ReproTable(Table):
    """The file as a whole."""

    kind: Literal["cell", "script"] = Field(description="cell or script.", examples=["cell"])
    title: Sentence = Field(description="The fault in a line.", examples=["Compiling never ends"])
    status: Literal["open", "fixed"] = Field(description="open or fixed.", examples=["open"])
    link: Link = Field("", description="The issue upstream, once filed.", examples=[""])
    summary: Sentence = Field(description="What happens.", examples=["tileiras does not end."])
    expected: Sentence = Field(description="What should.", examples=["It ends."])
    identity: Sentence = Field(description="Signature of the finding.", examples=["hang/tileiras/…"])
    oracle: Sentence = Field("signature", description="What tells bad from good.", examples=["signature"])
    verdict: Sentence = Field("", description="Verdict where bad.", examples=["compile_timeout"])
    component: Sentence = Field("", description="Guilty component.", examples=["tileiras"])
    origin: Sentence = Field("", description="What it was made from.", examples=[""])
    observed: Sentence = Field("", description="What was seen on a device.", examples=[""])
    deadline: Seconds = Field(60.0, description="Seconds a compile may take.", examples=[60])
    bytecode_version: Version | None = Field(None, description="Of the bytecode files.", examples=["13.2"])
    targets: tuple[Arch, ...] = Field((), description="Architectures.", examples=[["sm_90"]])
    case: CaseTable | None = Field(None, description="The kernel.")
    bad: tuple[PlaceTable, ...] = Field(description="Where the fault shows.", min_length=1)
    good: tuple[PlaceTable, ...] = Field((), description="Where it does not.")


def load(folder: Path) -> Repro:
    """The repro in a folder. Raises ReproError with everything that is wrong with its file."""
    if not (folder / SPEC_FILE).is_file():
        raise ReproError(f"{folder} holds no {SPEC_FILE}; harness repro new makes one")
    try:
        document = read_document(folder / SPEC_FILE)
        table = ReproTable.model_validate(document.data)
    except MatrixError as error:
        raise ReproError(str(error)) from None
    except ValidationError as error:
        problems: list[Problem] = list(explain(document, (), ReproTable, error))
        raise ReproError("\n".join(map(str, problems))) from None
    return _repro(folder, table)


def load_all(repros: Path, names: tuple[str, ...] = ()) -> list[Repro]:
    """The repros of these names, or all there are, by name. Raises ReproError."""
    there = sorted(path.parent.name for path in repros.glob(f"*/{SPEC_FILE}"))
    for name in names:
        if name not in there:
            listed = ", ".join(there) or "none yet"
            raise ReproError(f'there is no repro "{name}" in {repros}; there are {listed}')
    return [load(repros / name) for name in (names or there)]


def _repro(folder: Path, table: ReproTable) -> Repro:
    where = folder / SPEC_FILE
    case = next(expand.cases(table.case), None) if table.case is not None else None
    if table.kind == "cell" and (case is None or not table.targets):
        raise ReproError(f"{where}: a repro of kind cell needs [case] and targets")
    places = (
        *(_place(where, place, table, True) for place in table.bad),
        *(_place(where, place, table, False) for place in table.good),
    )
    return Repro(
        folder=folder,
        kind=Kind(table.kind),
        title=table.title,
        status=Status(table.status),
        link=table.link,
        summary=table.summary,
        expected=table.expected,
        identity=table.identity,
        oracle=table.oracle,
        verdict=table.verdict,
        component=table.component,
        origin=table.origin,
        observed=table.observed,
        deadline=table.deadline,
        bytecode_version=table.bytecode_version,
        case=case,
        places=places,
    )


def _place(where: Path, place: PlaceTable, table: ReproTable, bad: bool) -> Place:
    chain = None
    if place.cuda_tile is not None and place.cuda_toolkit is not None:
        pins = {name: getattr(place, name) for name in ("tileiras", "nvvm", "ptxas")}
        suffix = "".join(f"+{name}{version}" for name, version in pins.items() if version)
        name = f"tile{place.cuda_tile}-ctk{place.cuda_toolkit}{suffix}"
        chain = Toolchain(name, place.cuda_tile, place.cuda_toolkit, **pins)
    if (chain is None) == (not place.packages) or (table.kind == "cell" and chain is None):
        wanted = "cuda_tile and cuda_toolkit" + (" or packages" if table.kind == "script" else "")
        raise ReproError(f"{where}: every [[bad]] and [[good]] of kind {table.kind} needs {wanted}")
    if table.verdict in ON_DEVICE and place.code_sha256 is None:
        text = f"every [[bad]] and [[good]] of a {table.verdict} needs code_sha256, the code that a GPU ran"
        raise ReproError(f"{where}: {text}")
    targets = table.targets if place.targets is None else place.targets
    return Place(bad, chain, place.packages, targets, place.code_sha256)
