// The heat map: settings down, architecture and toolchain across. Rows are drawn when they come near.

const ROWS_A_PART = 40;
const ROW_HEIGHT = 38;

const siblings = new Map(); // cell number -> numbers of all cells that share its square
const layout = layOut();
let openId = null; // the cell whose evidence is shown

// Sections by kernel and device; in each, frontends whose answers are equal everywhere share one table.
function layOut() {
  const groups = new Map();
  for (let at = 0; at < cellCount; at++) {
    const key = `${caseOf(at).kernel} ${cells.device[at]}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(at);
  }
  const tables = [];
  for (const members of groups.values()) {
    const axes = varyingAxes(members);
    const classes = new Map();
    for (const [tile, own] of bucket(members, (at) => cells.tile[at])) {
      const answers = own.map((at) => `${cells.case[at]},${cells.backend[at]},${cells.arch[at]},${cells.answer[at]}`);
      const key = answers.sort().join(";");
      if (!classes.has(key)) classes.set(key, []);
      classes.get(key).push([tile, own]);
    }
    for (const frontends of classes.values()) {
      const own = frontends.flatMap(([, list]) => list);
      tables.push(layOutTable(own, frontends.map(([tile]) => tile), axes));
    }
  }
  const weight = (table) => (table.quiet ? 2 : table.all.some((at) => lookOf(at).kind === "bad") ? 0 : 1);
  return tables.sort((a, b) => weight(a) - weight(b));
}

function bucket(items, keyOf) {
  const buckets = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!buckets.has(key)) buckets.set(key, []);
    buckets.get(key).push(item);
  }
  return [...buckets].sort(([a], [b]) => a - b);
}

function layOutTable(all, tiles, axes) {
  const width = data.backends.length;
  const squares = new Map(); // case -> column -> cell numbers
  for (const at of all) {
    const column = cells.arch[at] * width + cells.backend[at];
    if (!squares.has(cells.case[at])) squares.set(cells.case[at], new Map());
    const row = squares.get(cells.case[at]);
    if (!row.has(column)) row.set(column, []);
    row.get(column).push(at);
    siblings.set(at, row.get(column));
  }
  const first = caseOf(all[0]);
  const shared = ["shape", "dtype"].filter((name) => !axes.includes(name)).map((name) => first.axes[name]);
  const device = data.devices[cells.device[all[0]]];
  const equal = tiles.length > 1 ? " (equal answers)" : "";
  return {
    all,
    axes,
    squares,
    quiet: all.every((at) => ["skipped", "not_run"].includes(lookOf(at).name)),
    title: data.kernels[first.kernel],
    detail: [
      ...shared,
      `cuda-tile ${tiles.map((tile) => data.tiles[tile]).join(" and ")}${equal}`,
      ...(device ? [`on ${device}`] : []),
    ].join(" · "),
  };
}

function renderMatrix(state, matched) {
  const shown = layout.filter((table) => table.all.some((at) => matched[at]));
  byId("matrix").replaceChildren(
    ...shown.map((table) => {
      const title = el("h3", {}, table.title, " ", el("small", {}, table.detail));
      if (!table.quiet) {
        const place = el("div", { class: "part" });
        const section = el("section", { class: "grid" }, title, place);
        const { rows, columns } = visible(table, matched);
        place.style.minHeight = `${Math.min(rows.length * ROW_HEIGHT + 60, innerHeight * 0.85)}px`;
        whenNear(section, () => drawTable(place, table, rows, columns, matched));
        return section;
      }
      const about = data.summaries[cells.summary[table.all[0]]];
      const place = el("div", { class: "part" });
      const fold = el(
        "details",
        { class: "grid" },
        el("summary", {}, `${table.title} ${table.detail}: ${plural(table.all.length, "cell")} `, el("span", { class: "quiet" }, about)),
        place,
      );
      const draw = () => {
        const { rows, columns } = visible(table, matched);
        if (!place.hasChildNodes()) drawTable(place, table, rows, columns, matched);
      };
      fold.addEventListener("toggle", draw);
      if (isFiltered(state)) fold.open = true;
      return fold;
    }),
  );
  renderLegend(shown.flatMap((table) => (table.quiet ? [] : table.all)));
}

function visible(table, matched) {
  const columns = new Set();
  const rows = [];
  for (const [number, row] of table.squares) {
    let any = false;
    for (const [column, members] of row) {
      if (!members.some((at) => matched[at])) continue;
      any = true;
      columns.add(column);
    }
    if (any) rows.push(number);
  }
  return { rows, columns: [...columns].sort((a, b) => a - b) };
}

function drawTable(place, table, rows, columns, matched) {
  const width = data.backends.length;
  const spans = bucket(columns, (column) => Math.floor(column / width));
  const starts = new Set(spans.map(([, own]) => own[0]));
  const axisHead = el("th", { scope: "col", rowspan: 2, class: "axes" }, axisCells(table.axes.length ? table.axes : ["settings"]));
  const grid = el(
    "table",
    { role: "grid", class: "heat", "aria-label": `${table.title} ${table.detail}`, "aria-rowcount": rows.length + 2 },
    el(
      "thead",
      {},
      el("tr", {}, axisHead, ...spans.map(([arch, own]) => el("th", { scope: "colgroup", colspan: own.length, class: "start" }, data.archs[arch]))),
      el(
        "tr",
        {},
        ...columns.map((column) => {
          const name = data.backends[column % width];
          return el("th", { scope: "col", class: starts.has(column) ? "start" : null, title: `cuda-toolkit ${name}` }, name);
        }),
      ),
    ),
  );
  const scroller = el("div", { class: "scroll tall" }, grid);
  scroller.style.setProperty("--axes", axisWidths(table, rows));
  place.replaceChildren(scroller);
  place.style.minHeight = "";
  for (let from = 0; from < rows.length; from += ROWS_A_PART) {
    const part = rows.slice(from, from + ROWS_A_PART);
    const stand = el("td", { colspan: columns.length + 1 });
    stand.style.height = `${part.length * ROW_HEIGHT}px`;
    const body = el("tbody", {}, el("tr", {}, stand));
    body.draw = () => {
      body.draw = null;
      body.replaceChildren(...part.map((number, i) => drawRow(table, number, from + i, columns, starts, matched)));
    };
    grid.append(body);
    if (from === 0) body.draw();
    else whenNear(body, () => body.draw?.(), scroller);
  }
  const first = grid.querySelector("td.cell");
  if (first) first.tabIndex = 0;
}

// Wide enough for the longest text of each axis, within reason: rows are drawn apart and must line up.
function axisWidths(table, rows) {
  const longest = (name) => rows.reduce((most, number) => Math.max(most, (data.cases[number].axes[name] ?? "").length), name.length);
  return (table.axes.length ? table.axes.map(longest) : [8]).map((length) => `calc(${Math.min(length + 1, 24)} * var(--char))`).join(" ");
}

const axisCells = (texts) => el("span", { class: "axis-cells" }, texts.map((text) => el("span", { title: text }, text)));

function drawRow(table, number, index, columns, starts, matched) {
  const axes = data.cases[number].axes;
  const texts = table.axes.length ? table.axes.map((name) => axes[name] ?? "") : ["as given"];
  const head = el("th", { scope: "row", class: "axes" }, axisCells(texts));
  const row = table.squares.get(number);
  const squares = columns.map((column) => {
    const members = row.get(column);
    const start = starts.has(column) ? " start" : "";
    if (!members) return el("td", { class: `none${start}` });
    return drawSquare(members, start, matched);
  });
  return el("tr", { "aria-rowindex": index + 3 }, head, ...squares);
}

function drawSquare(members, start, matched) {
  const at = members.find((member) => matched[member]) ?? members[0];
  const look = lookOf(at);
  const registers = cells.registers[at];
  const advice = members.some((member) => cells.advice[member] > 0);
  const dim = matched[at] ? "" : " dim";
  const open = members.some((member) => cells.id[member] === openId);
  const number = registers === null ? "" : ` ${registers}`;
  const said = [facetValue.arch(at), `cuda-toolkit ${facetValue.toolkit(at)}`, look.phrase];
  if (registers !== null) said.push(`${registers} registers a thread`);
  if (advice) said.push("with advice");
  return el(
    "td",
    {
      role: "gridcell",
      class: `cell ${look.kind}${start}${dim}`,
      tabindex: -1,
      "data-at": at,
      "aria-label": said.join(", "),
      "aria-selected": open ? "true" : "false",
    },
    el("span", {}, `${look.symbol}${number}`, advice ? el("sup", {}, "!") : null),
    look.word && look.kind === "bad" ? el("small", {}, look.word) : null,
  );
}

function renderLegend(indexes) {
  const used = new Map();
  let registers = false;
  let advice = false;
  for (const at of indexes) {
    used.set(`${lookOf(at).symbol} ${lookOf(at).name}`, lookOf(at));
    registers ||= cells.registers[at] !== null;
    advice ||= cells.advice[at] > 0;
  }
  const order = ["bad", "good", "unknown"];
  const looks = [...used.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  byId("legend").replaceChildren(
    ...looks.map((look) => el("span", { class: `key ${look.kind}` }, `${look.symbol} ${look.phrase}`)),
    el("span", {}, "columns: architecture, cuda-toolkit"),
    registers ? el("span", {}, "number: registers a thread") : "",
    advice ? el("span", {}, "! advice") : "",
    el("span", {}, "click a square, or arrow keys and Enter, for its evidence"),
  );
}

function markOpen(id) {
  openId = id;
  for (const square of document.querySelectorAll("td.cell[aria-selected=true]")) square.setAttribute("aria-selected", "false");
  const square = id === null ? null : squareOf(id);
  square?.setAttribute("aria-selected", "true");
}

function squareOf(id) {
  const members = siblings.get(indexOfId.get(id)) ?? [];
  for (const at of members) {
    const square = document.querySelector(`td.cell[data-at="${at}"]`);
    if (square) return square;
  }
  return null;
}

// Arrow keys walk over squares; a part of the table that is not drawn yet is drawn on the way.
function walk(event) {
  const square = event.target.closest?.("td.cell");
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] }[event.key];
  if (!square || !step) return;
  event.preventDefault();
  let row = square.parentElement;
  let column = square.cellIndex;
  if (step[1] === -Infinity) column = 0;
  if (step[1] === Infinity) column = row.cells.length;
  const along = step[1] === -Infinity ? 1 : step[1] === Infinity ? -1 : step[1];
  for (;;) {
    if (step[0] !== 0) row = nextRow(row, step[0]);
    else column += along;
    const next = row?.cells[column];
    if (!next) return;
    if (!next.classList.contains("cell")) continue;
    const before = row.closest("table").querySelector("td.cell[tabindex='0']");
    if (before) before.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
    return;
  }
}

function nextRow(row, step) {
  const near = step > 0 ? row.nextElementSibling : row.previousElementSibling;
  if (near) return near;
  const body = step > 0 ? row.parentElement.nextElementSibling : row.parentElement.previousElementSibling;
  if (!body || body.tagName !== "TBODY") return null;
  body.draw?.();
  return step > 0 ? body.firstElementChild : body.lastElementChild;
}
