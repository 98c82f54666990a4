// The panel with everything about one cell: what was asked, what was seen, why the verdict, what to type.

function pairs(items) {
  const kept = items.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return kept.length ? el("dl", {}, kept.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value instanceof Node ? value : String(value))])) : null;
}

function part(title, ...children) {
  const kept = children.flat().filter(Boolean);
  return kept.length ? el("section", {}, el("h3", {}, title), ...kept) : null;
}

const listing = (text, label) => (text ? el("pre", { tabindex: 0, "aria-label": label }, text) : null);

function dataTable(heads, rows, label) {
  if (!rows.length) return null;
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": label },
    el(
      "table",
      { class: "plain" },
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value) => el("td", {}, value === null || value === undefined ? "" : String(value)))))),
    ),
  );
}

const hex = (number) => (number === null || number === undefined ? "" : `0x${Number(number).toString(16)}`);
const seconds = (value) => (typeof value === "number" ? `${value.toFixed(value < 10 ? 2 : 1)} s` : null);
const bytes = (count) => (typeof count === "number" ? (count >= 2 ** 20 ? `${(count / 2 ** 20).toFixed(0)} MiB` : `${count} bytes`) : null);

// Numbers as "0-3, 5".
function ranges(numbers) {
  const spans = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = spans.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else spans.push([number, number]);
  }
  return spans.map(([low, high]) => (low === high ? `${low}` : `${low}-${high}`)).join(", ") || "none";
}

function renderEvidence(state, choose) {
  const panel = byId("evidence");
  const at = state.cell === null ? undefined : indexOfId.get(state.cell);
  document.body.classList.toggle("with-evidence", state.cell !== null);
  panel.hidden = state.cell === null;
  if (state.cell === null) return panel.replaceChildren();
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => choose(null) }, "✕");
  if (at === undefined) {
    return panel.replaceChildren(el("header", {}, el("h2", { id: "evidence-title" }, "No such cell"), close), el("p", {}, `This report has no cell ${state.cell}.`));
  }
  const look = lookOf(at);
  const [judgement, asked, trace, compile, inspection, observation] = [0, 1, 2, 3, 4, 5].map((which) => block(at, which));
  const title = el("h2", { id: "evidence-title", tabindex: -1, class: look.kind }, `${look.symbol} ${look.phrase}`);
  panel.replaceChildren(
    el("header", {}, title, close),
    ...[
      el("p", { class: "quiet" }, `${look.name} · cell ${cells.id[at]}`),
      frontendTabs(at, choose),
      el("p", { class: "said" }, judgement.summary),
      part("Type next", command(`${data.explain.prefix}${cells.id[at]}${data.explain.suffix}`), backendCommands(asked)),
      part("Asked", askedPairs(at, asked)),
      booksPart(inspection),
      look.kind === "bad" ? part("Blame", blame(judgement, inspection)) : null,
      hangPart(judgement.evidence.evidence ?? observation?.evidence),
      part("Outputs", outputTable(judgement.evidence.outputs ?? observation?.outputs)),
      part("Advice", pairs(judgement.advice.map((remark) => [remark.kind, remark.text]))),
      part("Resources", resourcePairs(inspection)),
      part("Timing", timingPairs(at, asked, trace, compile, judgement, observation)),
      part("Compiler output", ...compilerOutput(trace, compile, judgement, observation)),
      part("Other facts", pairs([["signature", judgement.signature], ...otherFacts(judgement.evidence, observation)])),
    ].filter(Boolean),
  );
  panel.scrollTop = 0;
}

// Squares may stand for several frontends that gave equal answers; each keeps its own evidence.
function frontendTabs(at, choose) {
  const members = siblings.get(at) ?? [at];
  if (members.length < 2) return null;
  return el(
    "div",
    { role: "group", "aria-label": "Frontend", class: "tabs" },
    "cuda-tile ",
    members.map((member) =>
      el(
        "button",
        { type: "button", "aria-pressed": String(member === at), onclick: () => choose(cells.id[member]) },
        facetValue["cuda-tile"](member),
      ),
    ),
  );
}

function askedPairs(at, asked) {
  const known = caseOf(at);
  const device = data.devices[cells.device[at]];
  const components = Object.entries(asked.components).filter(([, version]) => version);
  return pairs([
    ["kernel", data.kernels[known.kernel]],
    ["settings", settingsText(at)],
    ["target", facetValue.arch(at) + (device ? ` on ${device}` : "")],
    ["toolchain", asked.toolchain],
    ["frontend", `cuda-tile ${facetValue["cuda-tile"](at)}`],
    ["backend", `cuda-toolkit ${facetValue.toolkit(at)}`],
    ["components", components.map(([name, version]) => `${name} ${version}`).join(", ")],
  ]);
}

function booksPart(inspection) {
  const books = inspection?.books;
  if (!books) return null;
  const { launch_registers: launch, threads } = books;
  const source = (pc) => books.sites.find((site) => site.pc === pc);
  return part(
    `Register pool: ${books.answer}`,
    dataTable(
      ["", "registers"],
      [
        [`handed out at launch, ${launch} × ${threads} threads`, launch * threads],
        ["in the pool at launch", 0],
        ["needed before every warp can finish", books.needed],
        ["surely given back", books.freed_at_least],
        ["given back at most", books.freed_at_most],
      ],
      "Register-pool books",
    ),
    el("ol", { class: "proof" }, books.proof.map((line) => el("li", {}, line))),
    dataTable(
      ["warps", "must pass", "asks for", "source"],
      books.groups.map((group) => [
        ranges(group.warps) + (group.note ? ` (${group.note})` : ""),
        group.must.map(hex).join(", ") || "no such instruction",
        group.must.map((pc) => (source(pc) ? `${source(pc).kind === "alloc" ? "grow" : "shrink"} to ${source(pc).registers}` : "")).join(", "),
        [...new Set(group.must.map((pc) => source(pc)?.source ?? ""))].join(", "),
      ]),
      "What each warp must pass",
    ),
    books.sites.map((site) =>
      el(
        "figure",
        {},
        el("figcaption", {}, `${hex(site.pc)} ${site.kind === "alloc" ? "grow" : "shrink"} to ${site.registers}${site.source ? `, ${site.source}` : ""}`),
        listing((inspection.sass?.[site.pc] ?? [site.text]).join("\n"), `Machine code at ${hex(site.pc)}`),
      ),
    ),
  );
}

function blame(judgement, inspection) {
  const asked = (inspection?.ptx ?? []).join("\n");
  return [
    pairs([
      ["component", judgement.component ?? "not known"],
      ["because", judgement.evidence.blame],
    ]),
    asked ? el("figure", {}, el("figcaption", {}, "what ptxas was handed"), listing(asked, "PTX")) : null,
  ];
}

function hangPart(seen) {
  if (!seen) return null;
  const warps = seen.warps ?? [];
  return part(
    "Seen on the device",
    pairs([
      ["waited", seconds(seen.waited_seconds)],
      ["in short", seen.summary],
      ["GPU busy", seen.gpu_utilisation === null || seen.gpu_utilisation === undefined ? null : `${seen.gpu_utilisation} %`],
      ["GPU memory", bytes(seen.gpu_memory_bytes)],
      ["host waits in", seen.wait_channel],
      ["notes", (seen.notes ?? []).join("; ")],
    ]),
    dataTable(
      ["warp", "block", "at", "does", "instruction", "source"],
      warps.map((warp) => [warp.warp, (warp.block ?? []).join(", "), warp.offset === null ? hex(warp.pc) : `+${hex(warp.offset)}`, warp.doing, warp.instruction, warp.source]),
      "Warps",
    ),
    seen.host_stack ? el("details", {}, el("summary", {}, "Host stack"), listing(seen.host_stack, "Host stack")) : null,
    seen.raw ? el("details", {}, el("summary", {}, "What the debugger said"), listing(seen.raw, "Debugger output")) : null,
  );
}

function outputTable(outputs) {
  return dataTable(
    ["output", "elements", "beyond bound", "worst ULP", "bound ULP", "never written", "bytes outside", "NaN", "differing"],
    (outputs ?? []).map((seen) => [
      seen.name,
      seen.elements,
      seen.compared ? seen.beyond_bound : "not compared",
      seen.worst_ulp === null ? "" : seen.worst_ulp + (seen.worst_index ? ` at [${seen.worst_index.join(", ")}]` : ""),
      seen.bound_ulp,
      seen.never_written,
      seen.outside_bytes,
      seen.unexpected_nan,
      seen.differing,
    ]),
    "Outputs",
  );
}

function resourcePairs(inspection) {
  if (!inspection) return null;
  const dynamic = inspection.dynamic_shared_bytes ? ` and ${inspection.dynamic_shared_bytes} dynamic` : "";
  const limit = inspection.limited_by ? `, limited by ${inspection.limited_by}` : "";
  const tma = Object.entries(inspection.tma ?? {}).map(([opcode, count]) => `${count} ${opcode}`);
  return pairs([
    ["registers", `${inspection.registers} a thread × ${inspection.threads} threads`],
    ["stack", `${inspection.stack_bytes} bytes a thread`],
    ["spills", inspection.spill_instructions === null ? null : plural(inspection.spill_instructions, "instruction")],
    ["shared", `${inspection.shared_bytes} bytes a CTA${dynamic}`],
    ["occupancy", inspection.ctas_per_sm === null ? "not known" : `${plural(inspection.ctas_per_sm, "CTA")} per SM${limit}`],
    ["TMA", tma.join(", ") || "none"],
    ["code", `${inspection.code_bytes} bytes`],
  ]);
}

function timingPairs(at, asked, trace, compile, judgement, observation) {
  const timing = judgement.evidence.timing ?? observation?.timing;
  const stages = { ...asked.seconds, ...(judgement.evidence.seconds ?? observation?.seconds) };
  const remembered = (outcome) => (outcome.cached ? ", remembered" : "");
  return pairs([
    ["on the device", timing ? `median ${timing.median_us} µs, spread ${timing.spread_us} µs, ${timing.launches} launches` : null],
    ["bandwidth", timing ? `${(timing.bytes_per_second / 1e9).toFixed(0)} GB/s; a copy does ${(timing.copy_bytes_per_second / 1e9).toFixed(0)} GB/s` : null],
    ["trace", trace ? seconds(trace.wall_seconds) + remembered(trace) : null],
    ["compile", compile ? `${seconds(compile.wall_seconds)} wall, ${seconds(compile.cpu_seconds)} CPU${remembered(compile)}` : null],
    ...(compile?.usage ?? []).map((used) => [used.name, `${seconds(used.cpu_seconds)} CPU, ${bytes(used.peak_rss_bytes)}`]),
    ...Object.entries(stages)
      .filter(([name]) => !/^(trace|compile)(_cpu)?$/.test(name))
      .map(([name, value]) => [name, seconds(value)]),
  ]);
}

function compilerOutput(trace, compile, judgement, observation) {
  const ended = compile
    ? compile.status === "timeout"
      ? `deadline of ${compile.deadline_seconds} s, held by ${compile.holder ?? "nobody known"}`
      : compile.signal !== null
        ? `signal ${compile.signal}`
        : `exit code ${compile.exit_code}`
    : null;
  const texts = [
    ["trace", trace && trace.status !== "ok" ? [trace.error_type, trace.message, trace.traceback].filter(Boolean).join("\n") : ""],
    ["stderr of the compiler", compile?.stderr],
    ["stdout of the compiler", compile?.stdout],
    ["stderr of the GPU process", observation && (judgement.evidence.stderr ?? observation.stderr)],
  ];
  return [
    ended ? pairs([["compiler", `${compile.status}, ${ended}`]]) : null,
    ...texts.filter(([, text]) => text?.trim()).map(([name, text]) => el("figure", {}, el("figcaption", {}, name), listing(text, name))),
  ];
}

// Evidence that no part above knows how to show is shown as it is.
const SHOWN = new Set(["blame", "evidence", "outputs", "timing", "seconds", "ptx", "proof", "sites", "traceback", "stderr", "stdout", "register_pool"]);
function otherFacts(evidence, observation) {
  return Object.entries({ ...observation, ...evidence })
    .filter(([name, value]) => !SHOWN.has(name) && value !== null && value !== "" && !(typeof value === "object" && Object.keys(value).length === 0))
    .map(([name, value]) => [name.replaceAll("_", " "), typeof value === "object" ? listing(JSON.stringify(value, null, 1), name) : value]);
}

// How to see it with the compiler alone, once the bytecode is at hand.
function backendCommands(asked) {
  if (!asked.alone.length) return null;
  return el(
    "details",
    {},
    el("summary", {}, "With the compiler alone"),
    ...asked.alone.map(command),
    el("p", { class: "quiet" }, "The bytecode is kept in the store under its SHA-256."),
  );
}
