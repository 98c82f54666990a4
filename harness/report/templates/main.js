// The page comes alive: filters, keys, theme, and one render for every change of state.

let state = readState();
let returnFocus = null;

function update(changes) {
  state = { ...state, ...changes };
  writeState(state);
  render();
}

function chooseCell(id) {
  const opening = id !== null;
  if (opening && state.cell === null) returnFocus = document.activeElement;
  state = { ...state, cell: id };
  writeState(state);
  renderEvidence(state, chooseCell);
  markOpen(id);
  if (opening) return byId("evidence-title").focus({ preventScroll: true });
  const back = returnFocus?.isConnected && returnFocus !== document.body ? returnFocus : null;
  back?.focus({ preventScroll: true });
}

function render() {
  const matched = matching(state);
  const count = matched.reduce((sum, one) => sum + one, 0);
  renderFilters();
  byId("shown").replaceChildren(
    isFiltered(state) ? `${count} of ${plural(cellCount, "cell")} match ` : plural(cellCount, "cell"),
    isFiltered(state) ? el("button", { type: "button", onclick: clearFilters }, "Clear filters") : "",
  );
  markOpen(state.cell);
  renderMatrix(state, matched);
  renderCharts(state, matched, update);
  renderFindings(matched);
  renderEvidence(state, chooseCell);
}

function clearFilters() {
  update({ chosen: Object.fromEntries(FACETS.map((name) => [name, new Set()])), search: "", signature: null });
  byId("search").focus();
}

// Findings are plain HTML already; those without a matching cell are left out.
function renderFindings(matched) {
  const seen = new Set();
  for (let at = 0; at < cellCount; at++) if (matched[at] && cells.signature[at] >= 0) seen.add(data.signatures[cells.signature[at]]);
  const cards = [...document.querySelectorAll(".finding")];
  for (const card of cards) card.hidden = !seen.has(card.dataset.signature);
  if (byId("no-finding")) byId("no-finding").hidden = cards.some((card) => !card.hidden);
}

const facetChoices = FACETS.map((name) => {
  const tally = new Map();
  for (let at = 0; at < cellCount; at++) {
    const value = facetValue[name](at);
    tally.set(value, (tally.get(value) ?? 0) + 1);
  }
  const kinds = ["bad", "good", "unknown"];
  const verdicts = kinds.flatMap((kind) => data.verdicts.filter((look) => look.kind === kind).map((look) => look.name));
  const order = { verdict: verdicts, arch: data.archs, toolkit: data.backends, "cuda-tile": data.tiles }[name];
  const values = order ? order.filter((value) => tally.has(value)) : [...tally.keys()];
  return { name, values: values.map((value) => [value, tally.get(value)]) };
}).filter((facet) => facet.values.length > 1);

function buildFilters() {
  const search = el("input", { type: "search", id: "search", placeholder: "occupancy=16 sm_90 deadlock", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => update({ search: search.value }));
  const facets = facetChoices.map(({ name, values }) =>
    el(
      "details",
      { class: "facet", "data-facet": name },
      el("summary", {}, name),
      el(
        "fieldset",
        {},
        el("legend", { class: "unseen" }, name),
        values.map(([value, count]) => {
          const box = el("input", { type: "checkbox", value });
          box.addEventListener("change", () => {
            const chosen = new Set(state.chosen[name]);
            if (box.checked) chosen.add(value);
            else chosen.delete(value);
            update({ chosen: { ...state.chosen, [name]: chosen } });
          });
          return el("label", {}, box, ` ${value} `, el("span", { class: "quiet" }, String(count)));
        }),
      ),
    ),
  );
  byId("filters").append(el("label", { class: "search" }, el("span", {}, "Search"), search), ...facets, el("span", { id: "by-finding" }));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
}

function renderFilters() {
  const search = byId("search");
  if (search.value !== state.search) search.value = state.search;
  for (const facet of document.querySelectorAll(".facet")) {
    const chosen = state.chosen[facet.dataset.facet];
    facet.classList.toggle("active", chosen.size > 0);
    facet.querySelector("summary").textContent = chosen.size ? `${facet.dataset.facet}: ${[...chosen].join(", ")}` : facet.dataset.facet;
    for (const box of facet.querySelectorAll("input")) box.checked = chosen.has(box.value);
  }
  const only = state.signature === null ? [] : [el("button", { type: "button", onclick: () => update({ signature: null }) }, "one finding only ✕")];
  byId("by-finding").replaceChildren(...only);
}

function wireStaticParts() {
  for (const button of document.querySelectorAll("main button.copy")) {
    const text = button.parentElement.querySelector("code").textContent;
    button.hidden = false;
    button.setAttribute("aria-label", `Copy: ${text}`);
    button.addEventListener("click", () => copy(text, button));
  }
  for (const button of document.querySelectorAll(".finding .show")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      update({ signature: button.closest(".finding").dataset.signature });
      byId("matrix-section").scrollIntoView();
      byId("search").focus({ preventScroll: true });
    });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.open, a.count");
    if (link) {
      event.preventDefault();
      const asked = new URLSearchParams(link.hash.slice(1));
      if (asked.has("cell")) return chooseCell(asked.get("cell"));
      update({ chosen: { ...state.chosen, verdict: new Set(asked.getAll("verdict")) } });
      byId("matrix-section").scrollIntoView();
      return;
    }
    const square = event.target.closest?.("td.cell, .point");
    if (square) {
      square.focus({ preventScroll: true });
      chooseCell(cells.id[Number(square.dataset.at)]);
    }
    for (const facet of document.querySelectorAll(".facet[open]")) if (!facet.contains(event.target)) facet.open = false;
  });
}

function wireKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    walk(event);
    const square = event.target.closest?.("td.cell, .point");
    if (square && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      chooseCell(cells.id[Number(square.dataset.at)]);
    } else if (event.key === "Escape") {
      const facet = document.querySelector(".facet[open]");
      if (facet) {
        facet.open = false;
        facet.querySelector("summary").focus();
      } else if (state.cell !== null) chooseCell(null);
    } else if (event.key === "/" && !event.target.closest?.("input, textarea")) {
      event.preventDefault();
      byId("search").focus();
    }
  });
}

// The theme is the reader's own choice, not part of a shared link. A browser may forbid keeping it.
const THEMES = ["auto", "dark", "light"];
function wireTheme() {
  const button = byId("theme");
  let theme = "auto";
  try {
    theme = localStorage.getItem("report-theme") ?? "auto";
  } catch {}
  const apply = () => {
    document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : "auto";
    button.textContent = `Theme: ${theme}`;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem("report-theme", theme);
    } catch {}
    apply();
  });
  apply();
}

wireTheme();
for (const section of document.querySelectorAll(".scripted")) section.hidden = false;
buildFilters();
wireStaticParts();
wireKeys();
addEventListener("hashchange", () => {
  state = readState();
  render();
});
render();
performance.mark("report-ready");
document.documentElement.dataset.ready = "true";
