// The tab about the selected node: what it predicts, what can be done with it, and how it
// could be split.

const LATER = 60; // milliseconds that a node is selected before its candidates are asked for
const view = { path: null, timer: 0 };

/** Show the selected node; the figures that the server works out follow. */
function showNode(node) {
  const record = TREE.records[node];
  view.path = record.path;
  const about = byId("panel-node");
  const split = h("div", { id: "candidates", "aria-busy": "true" }, muted("Looking for splits …"));
  about.replaceChildren(
    nodeHead(node, record),
    actionsOf(node, record),
    section(isLeaf(node) ? "Candidates" : "Candidates for another split", split),
    NUMBERS ? numbersOf(node) : countsOf(node),
    isLeaf(node) ? "" : branchesOf(node),
    folded("Rows at this node", (body) => showRows(body, record.path)),
    folded("Worked computation", (body) => showComputation(body, record.path)),
  );
  about.scrollTop = 0;
  clearTimeout(view.timer);
  view.timer = setTimeout(() => showCandidates(split, record.path), LATER);
}

/** Show the selected node again, after an edit. */
function refreshNode() {
  showNode(nodeOf(state.selected));
  tellWhere(nodeOf(state.selected));
}

function nodeHead(node, record) {
  const leaf = isLeaf(node);
  const dot = NUMBERS ? null : swatch(colourOf(DATA.label[node]));
  return h(
    "div",
    { class: "head" },
    h("p", { class: "kicker" }, `${leaf ? "Leaf" : "Node"} ${node}, path ${record.path}`),
    h("h2", { class: "prediction" }, dot, bdi(predictionOf(node))),
    muted(supportOf(node), leaf ? "" : ", if it stopped here"),
    positiveName() && muted(positiveWords(node)),
    record.locked && muted("Locked: growing and refitting keep this part."),
    record.note && h("p", { class: "note" }, bdi(record.note)),
  );
}

function countsOf(node) {
  const weights = classWeights(node);
  const whole = TREE.weight[node];
  const counts = classCases(node);
  const labels = range(0, weights.length)
    .filter((at) => weights[at] > 0 || weights.length <= FEW)
    .sort((one, other) => weights[other] - weights[one] || one - other);
  const rows = labels.map((label) =>
    tableRow(
      meter(weights[label] / whole, colourOf(label), DATA.classes[label]),
      counts && cell(cases(counts[label])),
      counts && cell(percent(counts[label], TREE.cases[node])),
      WEIGHTED && cell(percent(weights[label], whole)),
    ),
  );
  const heads = [bdi(DATA.target), ...(counts ? ["cases", "share"] : [])];
  if (WEIGHTED) heads.push("share of weight");
  return section("Cases", table(heads, rows));
}

function numbersOf(node) {
  const [low, high] = [TREE.low, TREE.high].map((end) => h("span", {}, targetNumber(end, 4)));
  const rows = [
    tableRow("mean", cell(DATA.prediction[node])),
    tableRow("standard deviation", cell(targetNumber(DATA.deviation[node], 4))),
    tableRow("cases", cell(cases(TREE.cases[node]))),
    tableRow("share of all cases", cell(percent(TREE.cases[node], TREE.cases[0]))),
  ];
  const ends = h("div", { class: "ends muted" }, low, high);
  return section("Numbers", scaleBar(node), ends, h("table", {}, h("tbody", {}, rows)));
}

/** The branches of a split that is made. */
function branchesOf(node) {
  const rows = childrenOf(node).map((child) =>
    tableRow(
      link(child, edgeOf(child)),
      cell(cases(TREE.cases[child])),
      wordCell(predictionOf(child)),
    ),
  );
  const { gain, missing } = TREE.records[node];
  return section(
    ["Splits on ", bdi(columnOf(node).name)],
    table(["branch", "cases", "prediction"], rows),
    Number.isFinite(gain) && h("p", { class: "gain" }, "Gain ", h("b", {}, figure(gain))),
    missing && h("p", { class: "gain" }, "Missing values: ", bdi(missing)),
  );
}

const ROWS_SHOWN = 50;

async function showRows(body, path) {
  const place = errorPlace();
  body.append(muted("…"));
  const found = await trying(place, () => ask("node", { node: path, rows: ROWS_SHOWN }));
  body.replaceChildren(place);
  if (!found) return;
  const heads = found.columns.map((name) => h("th", { scope: "col" }, bdi(name)));
  const explains = (row) =>
    h("td", {}, button("Explain", () => explainRow(found.columns, row), { class: "quiet" }));
  const rows = found.rows.map((row) =>
    h("tr", {}, explains(row), row.map((text) => h("td", {}, text === null ? "–" : String(text)))),
  );
  const all = h(
    "table",
    {},
    h("thead", {}, h("tr", {}, h("td", {}, ""), heads)),
    h("tbody", {}, rows),
  );
  const words = `${grouped(found.rows.length)} of ${counted(found.n_rows, "row")}`;
  const label = "Rows at this node";
  body.append(muted(words), h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label }, all));
}

async function showComputation(body, path) {
  const place = errorPlace();
  body.append(muted("…"));
  const found = await trying(place, () => ask("node", { node: path, rows: 0, worked: true }));
  body.replaceChildren(place);
  if (!found) return;
  const text = found.computation || "There is nothing to work out at this node.";
  const label = "Worked computation";
  body.append(h("pre", { class: "text", tabindex: 0, role: "region", "aria-label": label }, text));
}
