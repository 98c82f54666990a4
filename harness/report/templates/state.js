// What the reader chose lives after the # of the URL, so that a reload or a shared link shows the same.

const FACETS = ["verdict", "arch", "toolkit", "cuda-tile", "kernel", "dtype", "device"];

function readState() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  return {
    chosen: Object.fromEntries(FACETS.map((name) => [name, new Set(parameters.getAll(name))])),
    search: parameters.get("q") ?? "",
    signature: parameters.get("signature"),
    cell: parameters.get("cell"),
    metric: parameters.get("chart"),
  };
}

function writeState(state) {
  const parameters = new URLSearchParams();
  for (const name of FACETS) for (const value of state.chosen[name]) parameters.append(name, value);
  if (state.search) parameters.set("q", state.search);
  if (state.signature !== null) parameters.set("signature", state.signature);
  if (state.metric !== null) parameters.set("chart", state.metric);
  if (state.cell !== null) parameters.set("cell", state.cell);
  const hash = parameters.toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

const isFiltered = (state) =>
  state.search.trim() !== "" || state.signature !== null || FACETS.some((name) => state.chosen[name].size > 0);
