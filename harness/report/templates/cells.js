// The cells of the run, column by column, and which of them match what the reader chose.

const data = JSON.parse(byId("data").textContent);
const cells = data.cells;
const cellCount = cells.id.length;
const indexOfId = new Map(cells.id.map((id, at) => [id, at]));

const caseOf = (at) => data.cases[cells.case[at]];
const lookOf = (at) => data.verdicts[cells.verdict[at]];

const facetValue = {
  verdict: (at) => lookOf(at).name,
  arch: (at) => data.archs[cells.arch[at]],
  toolkit: (at) => data.backends[cells.backend[at]],
  "cuda-tile": (at) => data.tiles[cells.tile[at]],
  kernel: (at) => data.kernels[caseOf(at).kernel],
  dtype: (at) => data.dtypes[caseOf(at).dtype],
  device: (at) => data.devices[cells.device[at]] || "no device",
};

// Evidence is parsed when somebody looks at it.
let blockLines = null;
function block(at, which) {
  blockLines ??= byId("blocks").textContent.split("\n");
  return JSON.parse(blockLines[cells.blocks[at][which]]);
}

const settingsText = (at) =>
  Object.entries(caseOf(at).axes)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");

let haystacks = null;
function haystack(at) {
  haystacks ??= Array.from({ length: cellCount }, (_, i) => {
    const words = FACETS.map((name) => facetValue[name](i));
    const signature = cells.signature[i] < 0 ? "" : data.signatures[cells.signature[i]];
    const text = [...words, settingsText(i), cells.id[i], signature, data.summaries[cells.summary[i]]].join(" ");
    return ` ${text.toLowerCase()} `;
  });
  return haystacks[at];
}

// 1 where a cell matches everything chosen. A word with "=" must be a whole setting, any other may be part of a word.
function matching(state) {
  const matched = new Uint8Array(cellCount).fill(1);
  for (const name of FACETS) {
    const chosen = state.chosen[name];
    if (chosen.size === 0) continue;
    for (let at = 0; at < cellCount; at++) if (!chosen.has(facetValue[name](at))) matched[at] = 0;
  }
  if (state.signature !== null) {
    const wanted = data.signatures.indexOf(state.signature);
    for (let at = 0; at < cellCount; at++) if (cells.signature[at] !== wanted) matched[at] = 0;
  }
  for (const word of state.search.toLowerCase().split(/\s+/).filter(Boolean)) {
    const sought = word.includes("=") ? ` ${word} ` : word;
    for (let at = 0; at < cellCount; at++) if (matched[at] && !haystack(at).includes(sought)) matched[at] = 0;
  }
  return matched;
}

// What all of these cells share is said once; the axes along which they vary head the rows.
function varyingAxes(indexes) {
  const seen = new Map();
  for (const number of new Set(indexes.map((at) => cells.case[at]))) {
    for (const [name, value] of Object.entries(data.cases[number].axes)) {
      if (!seen.has(name)) seen.set(name, new Set());
      seen.get(name).add(value);
    }
  }
  return [...seen].filter(([, values]) => values.size > 1).map(([name]) => name);
}
