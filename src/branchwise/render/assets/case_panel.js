// Try a case: a form with the columns that the tree splits on, and the path of the case.

const MISSING_CELL = "missing";
const MOST_STEPS = 24; // of a way that are told
const fields = new Map(); // column -> its control

function buildForm() {
  const form = h("form", { id: "form", autocomplete: "off" });
  DATA.columns.forEach((column, at) => {
    if (!column.used) return;
    const control = column.kind === "numeric" ? numberField(at) : valueField(column, at);
    fields.set(at, control);
    const title = column.unit ? `${column.name} (${column.unit})` : column.name;
    const name = h("span", { title }, bdi(title));
    form.append(h("label", { class: "field" }, name, control));
  });
  if (!fields.size) form.append(muted("This tree has no split: all cases get the same prediction."));
  form.addEventListener("input", tryCase);
  form.addEventListener("submit", (event) => event.preventDefault());
  const example = () => fillForm(exampleOf(nodeOf(state.selected)));
  const buttons = h(
    "div",
    { class: "buttons" },
    button("Fill in from the selected node", example, { id: "fill" }),
    button("Clear", clearCase, { id: "clear" }),
  );
  const result = h("div", { id: "result", role: "status", "aria-live": "polite" });
  const intro = muted("Choose values and watch the way through the tree. What is empty is missing.");
  byId("case").replaceChildren(intro, result, form, buttons);
}

function numberField(at) {
  const { date } = DATA.columns[at];
  if (date) {
    const example = dateText(date.unit === "day" ? 20000 : 0, date);
    return h("input", { type: "text", placeholder: `missing, or ${example}`, "data-column": at });
  }
  return h("input", { type: "number", step: "any", placeholder: "missing", "data-column": at });
}

function valueField(column, at) {
  const select = h("select", { "data-column": at });
  select.append(h("option", { value: MISSING_CELL }, "missing"));
  column.values.forEach((value, code) => select.append(h("option", { value: code }, value)));
  select.append(h("option", { value: UNSEEN }, "another value"));
  return select;
}

/** The row that the form describes; null where something typed is no number. */
function rowOfForm() {
  const row = DATA.columns.map(() => null);
  for (const [at, control] of fields) {
    if (control.validity.badInput) return null;
    const value = control.value;
    const { date } = DATA.columns[at];
    if (date) {
      if (value.trim()) row[at] = dateNumber(value, date);
      if (value.trim() && row[at] === null) return null;
      continue;
    }
    if (value !== "" && value !== MISSING_CELL) row[at] = typedNumber(at, value);
  }
  return row;
}

/** The number, or the code, of what is typed; in a column of shares that is per cent. */
function typedNumber(at, text) {
  return Number(DATA.columns[at].percent ? moved(text, -PERCENT_POWER) : text);
}

/** What to type for a number or a code. */
function typedText(at, value) {
  const { date, percent: shares } = DATA.columns[at];
  if (date) return dateText(value, date);
  return shares ? moved(String(value), PERCENT_POWER) : String(value);
}

function fillForm(row) {
  for (const [at, control] of fields) {
    control.value = row[at] === null ? emptyCell(control) : typedText(at, row[at]);
  }
  tryCase();
}

function emptyCell(control) {
  return control.tagName === "SELECT" ? MISSING_CELL : "";
}

function clearCase() {
  for (const control of fields.values()) {
    control.value = emptyCell(control);
  }
  showNoWay();
}

function showNoWay(...instead) {
  state.way.clear();
  state.shares.clear();
  byId("result").replaceChildren(...instead);
  draw();
}

function tryCase() {
  const row = rowOfForm();
  const dated = DATA.columns.some(({ date, used }) => date && used);
  const wrong = dated ? "That is no number, or no date." : "That is no number.";
  const refused = row === null ? wrong : refusal(row);
  if (refused) {
    showNoWay(h("p", { class: "refused" }, refused));
    return;
  }
  const decided = decide(row);
  showWay(decided.arrivals);
  byId("result").replaceChildren(resultOf(row, decided));
}

function mainArrival(arrivals) {
  return arrivals.reduce((best, one) => (one.share > best.share ? one : best)).node;
}

/** Mark the way in the drawing, open it, and go to where most of the case arrives. */
function showWay(arrivals) {
  state.way = new Set();
  state.shares = new Map();
  for (const { node, share } of arrivals) {
    state.shares.set(node, share);
    for (let at = node; at >= 0 && !state.way.has(at); at = TREE.parent[at]) state.way.add(at);
  }
  const largest = [...arrivals].sort((one, other) => other.share - one.share);
  for (const { node } of largest.slice(0, MOST_STEPS)) reveal(node);
  const end = mainArrival(arrivals);
  state.selected = end;
  layOut();
  showTogether(wayTo(end));
  select(end);
}

function resultOf(row, { arrivals, probabilities, label, number: mean }) {
  const said = NUMBERS ? targetNumber(mean, 6) : DATA.classes[label];
  const dot = NUMBERS ? null : swatch(colourOf(label));
  const nodes = `${grouped(arrivals.length)} nodes`;
  const divided = `The case is divided: it arrives at ${nodes}, whose predictions are averaged.`;
  return h(
    "div",
    { class: "result" },
    h("p", { class: "kicker" }, "Prediction"),
    h("p", { class: "prediction" }, dot, bdi(said)),
    NUMBERS ? null : probabilityTable(probabilities),
    NUMBERS ? null : decision(decidedBy(arrivals, probabilities, label)),
    arrivals.length > 1 ? muted(divided) : null,
    steps(row, wayTo(mainArrival(arrivals))),
    contributions(row, label),
  );
}

/** What each column contributed to the number, or to the probability of the class. */
function contributions(row, label) {
  if (!fields.size) return null;
  const heading = h("h3", {}, "What each column contributed");
  if (!hasShapley()) {
    const large = "This tree is too large to work that out here; model.shap does.";
    return h("div", { class: "contributions" }, heading, muted(large));
  }
  const valueOf = NUMBERS ? (node) => DATA.mean[node] : (node) => classProbabilities(node)[label];
  const { base, values } = shapleyOf(row, valueOf);
  const total = base + sum(values);
  const written = NUMBERS ? (value) => targetNumber(value, 5) : (value) => percent(value, 1);
  const most = Math.max(...values.map(Math.abs));
  const told = [...fields.keys()].filter((at) => Math.abs(values[at]) > 1e-9 * most);
  told.sort((one, other) => Math.abs(values[other]) - Math.abs(values[one]) || one - other);
  const rows = told.map((at) => {
    const column = bdi(DATA.columns[at].name);
    const name = h("span", { class: "labelled" }, contribution(values[at] / most), column);
    return tableRow(name, cell(signed(values[at])));
  });
  const of = NUMBERS ? "the prediction" : ["the probability of ", bdi(DATA.classes[label])];
  const without = `: ${written(base)} without any column, ${written(total)} with all of them.`;
  const silent = fields.size - told.length;
  return h(
    "div",
    { class: "contributions" },
    heading,
    muted("Shapley values of ", of, without),
    told.length ? table(["column", "moves it by"], rows) : null,
    silent ? muted(`${counted(silent, "column")} without any effect.`) : null,
  );
}

/** A bar to the right of the middle for what is more, to the left for what is less. */
function contribution(share) {
  const width = `${50 * Math.abs(share)}%`;
  const side = share > 0 ? { left: "50%" } : { right: "50%" };
  const bar = h("i", { class: share > 0 ? "more" : "less", style: { width, ...side } });
  return h("span", { class: "contribution", "aria-hidden": "true" }, bar);
}

function signed(value) {
  const size = NUMBERS ? targetNumber(Math.abs(value), 4) : `${rounded(100 * Math.abs(value), 3)} %`;
  return `${value > 0 ? "+" : "−"}${size}`;
}

/** What decided for the class of a case, where it is not the usual one. */
function decidedBy(arrivals, probabilities, label) {
  return arrivals.length === 1 ? reasonOf(arrivals[0].node) : costWords(probabilities, label);
}

function probabilityTable(probabilities) {
  const rows = largestFirst(probabilities).map((label) => {
    const name = meter(probabilities[label], colourOf(label), DATA.classes[label]);
    return tableRow(name, cell(percent(probabilities[label], 1)));
  });
  return table([bdi(DATA.target), "probability"], rows);
}

/** The path in words, split by split; of a fractional case its largest part. */
function steps(row, way) {
  const list = h("ol", { class: "steps" });
  way.forEach((node, at) => {
    const left = way.length - MOST_STEPS;
    if (left > 0 && at >= MOST_STEPS / 2 && at < MOST_STEPS / 2 + left) {
      const more = h("li", { class: "muted" }, `… ${grouped(left)} more …`);
      if (at === MOST_STEPS / 2) list.append(more);
      return;
    }
    const words = stepWords(node, way[at + 1], row);
    if (words) list.append(h("li", {}, words));
  });
  return list;
}

/** What happens to a row at a node on its way; next is where its main part goes. */
function stepWords(node, next, row) {
  const column = TREE.column[node];
  if (column < 0) return null;
  const { name, kind, values } = DATA.columns[column];
  const value = row[column];
  if (value === null) return [bdi(name), " is missing: ", bdi(missingWords(node, next, row))];
  const numeric = kind === "numeric";
  if (!numeric && value === UNSEEN) {
    return [bdi(name), " has another value: ", bdi(routeWords(node, TREE.unseenTo[node]))];
  }
  const word = numeric ? cellWords(column, value) : values[value];
  if (next === undefined) {
    return [bdi(name), " = ", bdi(word), ` has no branch: ${routeWords(node, STOP)}`];
  }
  const alone = !numeric && codesOf(next).length === 1;
  const where = alone ? [] : [": ", h("span", { class: "muted" }, bdi(edgeOf(next)))];
  return [link(next, `${name} = ${word}`), ...where];
}

function missingWords(node, next, row) {
  const replaced = standIn(node, row) !== undefined;
  return replaced ? `surrogates lead to “${edgeOf(next)}”` : routeWords(node, TREE.missingTo[node]);
}
