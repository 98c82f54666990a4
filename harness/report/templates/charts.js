// Small multiples: one chart a setting, toolchains across, one line an architecture.

const METRICS = {
  registers: { label: "Registers a thread", unit: "", column: "registers" },
  compile: { label: "Compile seconds", unit: " s", column: "compile" },
  run: { label: "Device time", unit: " µs", column: "run" },
  shared: { label: "Shared memory", unit: " B", column: "shared" },
};
const CHARTS_AT_FIRST = 12;
const SHAPES = ["circle", "square", "triangle", "diamond", "cross"];
let showAllCharts = false;

function renderCharts(state, matched, update) {
  const usable = Object.entries(METRICS).filter(([, metric]) => cells[metric.column].some((value) => value !== null));
  const enough = data.backends.length > 1 && usable.length > 0;
  byId("charts-section").hidden = !enough;
  if (!enough) return;
  const name = usable.some(([known]) => known === state.metric) ? state.metric : usable[0][0];
  const metric = METRICS[name];
  const focused = byId("metrics").contains(document.activeElement);
  byId("metrics").replaceChildren(
    ...usable.map(([known, { label }]) =>
      el("button", { type: "button", "aria-pressed": String(known === name), onclick: () => update({ metric: known }) }, label),
    ),
  );
  if (focused) byId("metrics").querySelector("[aria-pressed=true]").focus();
  const drawn = chartsOf(metric.column, matched);
  const top = drawn.reduce((most, chart) => Math.max(most, chart.top), 1e-9);
  const shown = showAllCharts ? drawn : drawn.slice(0, CHARTS_AT_FIRST);
  const axes = varyingAxes(cells.id.map((_, at) => at));
  const kernels = new Set(drawn.map((chart) => data.cases[chart.number].kernel));
  const archs = [...new Set(drawn.flatMap((chart) => chart.series.map((series) => series.arch)))].sort((a, b) => a - b);
  byId("charts").replaceChildren(
    ...shown.map((chart, order) => {
      const known = data.cases[chart.number];
      const title = [...(kernels.size > 1 ? [data.kernels[known.kernel]] : []), ...axes.filter((axis) => axis in known.axes).map((axis) => `${axis}=${known.axes[axis]}`)].join(" ");
      const figure = el("figure", { class: "chart" }, el("figcaption", {}, title || data.kernels[known.kernel]));
      const draw = () => figure.append(drawChart(chart, metric, top, archs, title));
      if (order < CHARTS_AT_FIRST) draw();
      else whenNear(figure, draw);
      return figure;
    }),
    drawn.length > shown.length
      ? el("button", { type: "button", onclick: () => ((showAllCharts = true), update({})) }, `Show all ${plural(drawn.length, "setting")}`)
      : "",
  );
  byId("chart-note").replaceChildren(
    ...archs.map((arch, at) => el("span", { class: `series s${at % 5}` }, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, mark(SHAPES[at % 5], 7, 7)), data.archs[arch])),
    el("span", { class: "series bad" }, "✖ finding"),
    el("span", {}, `${metric.label.toLowerCase()}, one scale for all charts; what changed most comes first`),
  );
}

// Charts by case; in each, lines by architecture and points by backend. A point is the median of the frontends.
function chartsOf(column, matched) {
  const values = cells[column];
  const members = [];
  for (let at = 0; at < cellCount; at++) if (matched[at] && (values[at] !== null || lookOf(at).kind === "bad")) members.push(at);
  return bucket(members, (at) => cells.case[at])
    .map(([number, own]) => {
      const series = bucket(own, (at) => cells.arch[at]).map(([arch, list]) => ({
        arch,
        points: bucket(list, (at) => cells.backend[at]).map(([backend, group]) => point(backend, group, values)),
      }));
      const known = series.flatMap((line) => line.points.map((dot) => dot.value)).filter((value) => value !== null);
      const change = Math.max(0, ...series.map(({ points }) => changeOf(points.map((dot) => dot.value).filter((value) => value !== null))));
      return { number, series, top: Math.max(0, ...known), known: known.length, change };
    })
    .filter((chart) => chart.known > 0)
    .sort((a, b) => b.change - a.change);
}

const changeOf = (values) => (values.length ? Math.max(...values) / Math.max(Math.min(...values), 1e-9) : 0);

function point(backend, group, values) {
  const known = group.map((at) => values[at]).filter((value) => value !== null).sort((a, b) => a - b);
  const bad = group.find((at) => lookOf(at).kind === "bad");
  const value = known.length ? known[Math.floor((known.length - 1) / 2)] : null;
  return { backend, value, low: known[0], high: known.at(-1), at: bad ?? group[0], bad: bad !== undefined };
}

function drawChart(chart, metric, top, archs, title) {
  const [width, height, left, right, above, below] = [300, 150, 44, 12, 12, 24];
  const x = (backend) => left + ((width - left - right) * (backend + 0.5)) / data.backends.length;
  const y = (value) => height - below - ((height - above - below) * value) / top;
  const marks = data.backends.map((name, at) =>
    svg("text", { x: x(at), y: height - below + 16, "text-anchor": "middle", class: "tick" }, name.length > 9 ? `${name.slice(0, 8)}…` : name),
  );
  const levels = [0, 0.5, 1].map((share) => {
    const value = top * share;
    const text = value >= 10 || value === 0 ? Math.round(value) : value.toFixed(2);
    return [
      svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "level" }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", class: "tick" }, String(text)),
    ];
  });
  const lines = chart.series.map(({ arch, points }) => {
    const known = points.filter((dot) => dot.value !== null);
    const at = archs.indexOf(arch);
    const shift = (at - (archs.length - 1) / 2) * 7;
    return svg(
      "g",
      { class: `series s${at % 5}` },
      svg("polyline", { points: known.map((dot) => `${x(dot.backend) + shift},${y(dot.value)}`).join(" ") }),
      known.filter((dot) => dot.high > dot.low).map((dot) => svg("line", { x1: x(dot.backend) + shift, x2: x(dot.backend) + shift, y1: y(dot.low), y2: y(dot.high), class: "range" })),
      points.map((dot) => drawPoint(dot, x(dot.backend) + shift, y(dot.value ?? 0), SHAPES[at % 5], metric, arch)),
    );
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${metric.label}, ${title}` }, levels, marks, lines);
}

function drawPoint(dot, x, y, shape, metric, arch) {
  const range = dot.high > dot.low ? ` (${dot.low} to ${dot.high})` : "";
  const value = dot.value === null ? "no value" : `${dot.value}${metric.unit}${range}`;
  const text = `${data.archs[arch]}, cuda-toolkit ${data.backends[dot.backend]}: ${value}${dot.bad ? `, ${lookOf(dot.at).phrase}` : ""}`;
  return svg(
    "g",
    { class: `point${dot.bad ? " bad" : ""}`, role: "button", tabindex: 0, "data-at": dot.at, "aria-label": text },
    svg("title", {}, text),
    svg("circle", { cx: x, cy: y, r: 9, class: "target" }),
    dot.bad ? svg("text", { x, y: y + 5, "text-anchor": "middle" }, "✖") : mark(shape, x, y),
  );
}

function mark(shape, x, y) {
  const path = {
    square: `M${x - 3.5} ${y - 3.5}h7v7h-7z`,
    triangle: `M${x} ${y - 4.5}l4.5 8h-9z`,
    diamond: `M${x} ${y - 5}l5 5l-5 5l-5-5z`,
    cross: `M${x - 5} ${y - 1.5}h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z`,
  }[shape];
  return path ? svg("path", { d: path, class: "mark" }) : svg("circle", { cx: x, cy: y, r: 4, class: "mark" });
}
