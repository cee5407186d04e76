// A case: its values, its prediction and its way through the tree.

const tried = { row: {} };

function showCase(panel) {
  const fields = h("div", { class: "fields" });
  const result = h("div", { class: "result", "aria-live": "polite", hidden: true });
  const place = errorPlace();
  const explain = newestOnly(() => explainInto(result, place));
  for (const column of DATA.columns) fields.append(caseField(column, explain));
  panel.replaceChildren(
    h("h2", {}, "Explain a case"),
    muted("Empty fields are missing values."),
    place,
    result,
    fields,
    h("div", { class: "buttons" }, button("Clear", () => (clearCase(), showCase(panel)))),
  );
  if (Object.keys(tried.row).length) explain();
}

function caseField({ name, values }, explain) {
  const listed = values?.length && values.length <= 200;
  const control = listed
    ? h("select", {}, options([["", "missing"], ...values.map((value) => [value, value])], tried.row[name] ?? ""))
    : h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  if (!listed) control.value = tried.row[name] ?? "";
  control.addEventListener("input", () => {
    if (control.value === "") delete tried.row[name];
    else tried.row[name] = control.value;
    explain();
  });
  return field(bdi(name), control);
}

async function explainInto(result, place) {
  const found = await trying(place, () => ask("explain", { row: tried.row }));
  result.hidden = !found;
  if (!found) return;
  const shares = (found.probabilities ?? []).slice(0, FEW).map(([name, share]) =>
    tableRow(meter(share, colourOf(DATA.classes.indexOf(name)), name), cell(percent(share, 1))),
  );
  result.replaceChildren(
    h("p", { class: "prediction" }, bdi(String(found.prediction))),
    shares.length ? h("table", {}, h("tbody", {}, shares)) : "",
    h("ol", { class: "steps" }, (found.steps ?? []).map((words) => h("li", {}, bdi(words)))),
  );
  showWay(found.nodes ?? []);
}

/** Mark the nodes of a case in the tree. */
function showWay(paths) {
  const nodes = paths.map((path) => TREE.numbers.get(path)).filter((node) => node !== undefined);
  state.way = new Set(nodes);
  const last = nodes.at(-1);
  state.shares = new Map(last === undefined ? [] : [[last, 1]]);
  for (const node of nodes) reveal(node);
  layOut();
  if (nodes.length) showTogether(nodes);
  draw();
}

function clearCase() {
  tried.row = {};
  showWay([]);
}

/** Explain a row of the table. */
function explainRow(columns, row) {
  tried.row = {};
  columns.forEach((name, at) => {
    if (row[at] !== null && row[at] !== "" && POSITIONS.has(name)) tried.row[name] = String(row[at]);
  });
  openTab("case");
  byId("tab-case").focus();
}
