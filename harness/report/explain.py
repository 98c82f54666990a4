"""The whole story of one cell: what was asked, what was seen, why the verdict, how to see it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.cluster import Finding, shape_text, value_text
from harness.model import CellResult, CompileOutcome, Inspection, PoolBooks, TraceOutcome
from harness.report.compiler_alone import compiler_alone
from harness.report.jsonl import row
from harness.report.words import LOOKS, chosen_text, plain

SassContext = Callable[[int], Sequence[str]]
"""Lines of machine code around a byte offset, source lines in between where they are known."""

_SHOWN_CELLS = 8


def explain(
    result: CellResult,
    sass_context: SassContext | None,
    console: Console,
    *,
    finding: Finding | None = None,
    bytecode: str | None = None,
) -> None:
    """Print the story. `finding` is the group the cell belongs to, `bytecode` where its bytecode lies."""
    story = _Story(console)
    _verdict(story, result)
    _asked(story, result)
    if result.trace is not None:
        _traced(story, result.trace)
    if result.compile is not None:
        _compiled(story, result.compile)
    if result.inspection is not None:
        _resources(story, result.inspection)
        if result.inspection.books is not None:
            _books(story, result.inspection.books, sass_context)
    _blame(story, result, finding)
    if result.judgement.advice:
        story.heading("Advice")
        story.pairs((remark.kind, remark.text) for remark in result.judgement.advice)
    if finding is not None:
        _related(story, finding)
    _reproduce(story, result, bytecode)


class _Story:
    """Prints headings, pairs and listings in one manner, in ASCII where need be."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.ascii_only = not console.encoding.lower().startswith("utf")

    def text(self, words: str, style: str = "") -> Text:
        return Text(plain(words, self.ascii_only), style=style)

    def heading(self, words: str) -> None:
        self._console.print()
        self._console.print(self.text(words, "bold"))

    def line(self, words: str, style: str = "") -> None:
        self._console.print(Padding(self.text(words, style), (0, 0, 0, 2)))

    def pairs(self, items: Iterable[tuple[str, object]]) -> None:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True, min_width=12)
        table.add_column(overflow="fold")
        for name, value in items:
            table.add_row(name, self.text(str(value)))
        self._console.print(Padding(table, (0, 0, 0, 2)))

    def listing(self, lines: Iterable[str], style: str = "") -> None:
        """Lines that must stay as they are: commands, machine code, compiler output."""
        for words in lines:
            self._console.print(self.text(f"    {words.rstrip()}", style), soft_wrap=True)

    def table(self, table: Table) -> None:
        self._console.print(Padding(table, (0, 0, 0, 2)))


def _verdict(story: _Story, result: CellResult) -> None:
    look = LOOKS[result.verdict]
    symbol = look.ascii if story.ascii_only else look.symbol
    story.heading(f"{symbol} {result.verdict}   cell {result.cell.id}")
    story.line(result.judgement.summary, look.style)
    if result.judgement.signature:
        story.pairs([("signature", result.judgement.signature)])


def _asked(story: _Story, result: CellResult) -> None:
    cell, components = result.cell, row(result)["components"]
    settings = " ".join(f"{name}={value_text(value)}" for name, value in cell.case.settings.items())
    asked = (cell.case.kernel, shape_text(cell.case.shape), cell.case.dtype)
    story.heading("Asked")
    story.pairs(
        [
            ("kernel", "  ".join(filter(None, asked))),
            ("settings", settings),
            ("target", cell.arch + (f" on {cell.device.name}" if cell.device else "")),
            ("toolchain", cell.toolchain.name),
            ("frontend", f"cuda-tile {_exact(result, 'cuda_tile')}"),
            ("backend", f"cuda-toolkit {_exact(result, 'cuda_toolkit')}"),
            *((name, version) for name, version in components.items() if version is not None),
        ]
    )


def _exact(result: CellResult, name: str) -> str:
    """A version as it was written, and what was chosen where that is another."""
    written: str = getattr(result.cell.toolchain, name)
    return chosen_text(written, result.resolved.get(name, written))


def _traced(story: _Story, trace: TraceOutcome) -> None:
    story.heading("Trace")
    facts: list[tuple[str, object]] = [("status", trace.status + _remembered(trace.cached))]
    if trace.bytecode_sha256:
        facts.append(("bytecode", f"{trace.bytecode_version or '?'}, sha256 {trace.bytecode_sha256}"))
    facts.append(("seconds", f"{trace.wall_seconds:.2f}"))
    if trace.message:
        facts.append((trace.error_type or "message", trace.message))
    story.pairs(facts)
    if trace.traceback:
        story.listing(trace.traceback.strip().splitlines()[-12:], "dim")


def _compiled(story: _Story, compile: CompileOutcome) -> None:
    story.heading("Compile")
    ended = f"exit code {compile.exit_code}" if compile.signal is None else f"signal {compile.signal}"
    if compile.status == "timeout":
        ended = f"deadline of {compile.deadline_seconds:.0f} s, held by {compile.holder or 'nobody known'}"
    facts: list[tuple[str, object]] = [("status", f"{compile.status}, {ended}" + _remembered(compile.cached))]
    facts.append(("seconds", f"{compile.wall_seconds:.2f} wall, {compile.cpu_seconds:.2f} CPU"))
    facts += [
        (usage.name, f"{usage.cpu_seconds:.2f} s CPU, {usage.peak_rss_bytes / 2**20:.0f} MiB")
        for usage in compile.usage
    ]
    if compile.cubin_sha256:
        facts.append(("cubin", f"sha256 {compile.cubin_sha256}"))
    story.pairs(facts)
    story.listing([*compile.stderr.strip().splitlines(), *compile.stdout.strip().splitlines()][:40], "dim")


def _remembered(cached: bool) -> str:
    return " (remembered from an earlier run)" if cached else ""


def _resources(story: _Story, inspection: Inspection) -> None:
    story.heading("Resources")
    shared = f"{inspection.shared_bytes} bytes a CTA"
    if inspection.dynamic_shared_bytes:
        shared += f" and {inspection.dynamic_shared_bytes} dynamic"
    tma = ", ".join(f"{count} {opcode}" for opcode, count in sorted(inspection.tma.items())) or "none"
    ctas = "not known" if inspection.ctas_per_sm is None else str(inspection.ctas_per_sm)
    limit = f", limited by {inspection.limited_by}" if inspection.limited_by else ""
    story.pairs(
        [
            ("registers", f"{inspection.registers} a thread × {inspection.threads} threads"),
            ("stack", f"{inspection.stack_bytes} bytes a thread"),
            ("shared", shared),
            ("occupancy", f"{ctas} CTAs per SM{limit}"),
            ("TMA", tma),
            ("code", f"{inspection.code_bytes} bytes"),
        ]
    )


def _books(story: _Story, books: PoolBooks, sass_context: SassContext | None) -> None:
    story.heading(f"Register pool: {books.answer}")
    table = Table(box=box.ASCII2 if story.ascii_only else box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("")
    table.add_column("registers", justify="right")
    launch, threads = books.launch_registers, books.threads
    entries = [
        (f"handed out at launch, {launch} × {threads} threads", launch * threads),
        ("in the pool at launch", 0),
        ("needed before every warp can finish", books.needed),
        ("surely given back", books.freed_at_least),
        ("given back at most", books.freed_at_most),
    ]
    for name, amount in entries:
        table.add_row(story.text(name), str(amount))
    story.table(table)
    for group in books.groups:
        sites = ", ".join(f"{pc:#x}" for pc in group.must) or "none"
        note = f" ({group.note})" if group.note else ""
        warps = "warp" if len(group.warps) == 1 else "warps"
        story.line(f"{warps} {_ranges(group.warps)} must pass {sites}{note}", "dim")
    for number, line in enumerate(books.proof, 1):
        story.line(f"{number}. {line}")
    for site in books.sites:
        verb = "grow" if site.kind == "alloc" else "shrink"
        source = f"  {site.source}" if site.source else ""
        story.heading(f"{site.pc:#06x}  {verb} to {site.registers}{source}")
        around = sass_context(site.pc) if sass_context is not None else []
        story.listing(around or [site.text])


def _blame(story: _Story, result: CellResult, finding: Finding | None) -> None:
    why = result.judgement.evidence.get("blame")
    asked = result.judgement.evidence.get("ptx")
    if result.judgement.component is None and why is None:
        return
    story.heading("Blame")
    component = finding.blame if finding is not None else result.judgement.component or "not known"
    facts: list[tuple[str, object]] = [("component", component)]
    if why:
        facts.append(("because", why))
    story.pairs(facts)
    if asked:
        story.listing(asked, "dim")


def _related(story: _Story, finding: Finding) -> None:
    story.heading("The same finding elsewhere")
    where = " · ".join(filter(None, [finding.settings, ", ".join(finding.archs)]))
    more = " …" * (len(finding.cells) > _SHOWN_CELLS)
    facts = [("cells", f"{len(finding.cells)}: {', '.join(finding.cells[:_SHOWN_CELLS])}{more}")]
    facts.append(("where", where))
    if finding.is_about_versions:
        facts.append(("versions", finding.versions.sentence))
    story.pairs(facts)


def _reproduce(story: _Story, result: CellResult, bytecode: str | None) -> None:
    commands = compiler_alone(result, bytecode)
    if not commands:
        return
    story.heading("See it again")
    story.listing(commands)
    if bytecode is None:
        story.line("The bytecode is kept in the store under its SHA-256.", "dim")


def _ranges(numbers: Sequence[int]) -> str:
    """ "0-3, 5" for 0, 1, 2, 3, 5."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans) or "none"
