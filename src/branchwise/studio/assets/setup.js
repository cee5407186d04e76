// The start: a table is dropped or chosen, its columns are corrected, a target is chosen.

const COLUMN_KINDS = [
  ["number", "number"],
  ["category", "category"],
  ["ignore", "ignore"],
];

function shownScreen(name) {
  byId("setup").hidden = name !== "setup";
  byId("app").hidden = name !== "app";
}

/** Show the start, with the table that is loaded, if any. */
function showSetup(loaded) {
  const setup = byId("setup");
  const start = h("div", { id: "table" });
  setup.replaceChildren(
    h("h1", {}, "branchwise studio"),
    muted("Grow a decision tree by hand, and keep it as code. The table stays on this computer."),
    dropZone((summary) => showTable(start, summary)),
    start,
  );
  if (loaded?.columns) showTable(start, loaded);
}

function dropZone(onLoaded) {
  const place = errorPlace();
  const retry = h("div", {}); // how a file is read that cannot be read as it is
  const done = (summary) => {
    showError(place, null);
    retry.replaceChildren();
    onLoaded(summary);
  };
  const words = h("b", {}, "Drop a table here, or choose a file");
  const file = h("input", { type: "file", id: "file", accept: ".csv,.tsv,.txt,.parquet,.xlsx,.xls,.arff,.feather,.arrow,.jsonl,.gz,.sav,.dta,.sas7bdat" });
  const load = (chosen) =>
    trying(place, async () => {
      if (!chosen) return;
      zone.setAttribute("aria-busy", "true");
      say(`Reading ${chosen.name} …`);
      try {
        const summary = await ask("load", { name: chosen.name, file: chosen });
        done(summary);
        say(`${chosen.name} has ${counted(summary.n_rows, "row")} and ${counted(summary.columns.length, "column")}.`);
      } catch (error) {
        const { unread } = await ask("state");
        retry.replaceChildren(unread ? readingForm(unread, done) : "");
        throw error;
      } finally {
        zone.removeAttribute("aria-busy");
      }
    });
  file.addEventListener("change", () => load(file.files[0]));
  const zone = h("label", { class: "drop", for: "file" }, words, muted("CSV, Parquet, Excel and others"), file);
  zone.addEventListener("dragover", (event) => (event.preventDefault(), zone.classList.add("over")));
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    load(event.dataTransfer.files[0]);
  });
  return h("div", {}, zone, place, retry);
}

function showTable(part, summary) {
  const { columns, n_rows: nRows, name } = summary;
  const kinds = new Map(Object.entries(OPENED.kinds ?? {})); // corrections only
  const title = h("h2", {}, name ? bdi(name) : "Table");
  const words = `${counted(nRows, "row")}, ${counted(columns.length, "column")}`;
  const notes = (summary.notes ?? []).map((note) => h("li", {}, bdi(note)));
  part.replaceChildren(
    title,
    muted(words),
    notes.length ? h("ul", { class: "notes" }, notes) : "",
    startForm(summary, kinds),
    section("Columns", columnTable(columns, kinds)),
    summary.reading ? readingForm(summary, (found) => showTable(part, found)) : "",
    openForm(),
  );
  byId("target").focus();
}

function columnTable(columns, kinds) {
  const rows = columns.map((column) => {
    const kind = h("select", { "aria-label": `Kind of ${column.name}` }, options(COLUMN_KINDS, kinds.get(column.name) ?? column.kind));
    kind.addEventListener("change", () => kinds.set(column.name, kind.value));
    const examples = (column.examples ?? []).map(String).join(column.kind === "number" ? " to " : ", ");
    return tableRow(
      [bdi(column.name), column.note && h("small", { class: "doubt" }, column.note)],
      h("td", {}, kind),
      cell(grouped(column.n_values)),
      cell(grouped(column.n_missing)),
      h("td", { class: "examples" }, bdi(examples)),
    );
  });
  const heads = ["column", "kind", "values", "missing", "examples"].map((head, at) =>
    h("th", { scope: "col", class: at === 2 || at === 3 ? "number" : false }, head),
  );
  const all = h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows));
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Columns" }, all);
}

/** Target, positive class, algorithm and hold-out share. */
function startForm({ columns, target: usual }, kinds) {
  const place = errorPlace();
  const names = columns.map((column) => [column.name, column.name]);
  const target = h("select", { id: "target" }, options(names, usual ?? names.at(-1)?.[0]));
  const positive = h("select", { id: "positive" });
  const recipe = recipeForm(OPENED.recipes ?? [], algorithmName());
  const share = h("input", { id: "share", type: "number", min: 0, max: 90, step: 1, value: 25 });
  const listClasses = () => {
    const column = columns.find(({ name }) => name === target.value);
    const values = classValues(column, kinds.get(target.value) ?? column.kind);
    positive.replaceChildren(...options([["", "none"], ...values.map((value) => [value, value])], ""));
    positive.disabled = !values.length;
  };
  target.addEventListener("change", listClasses);
  listClasses();
  const go = async (event) => {
    event.preventDefault();
    const args = { target: target.value, kinds: Object.fromEntries(kinds) };
    if (positive.value) args.positive = positive.value;
    args.recipe = recipe.value();
    if (share.valueAsNumber > 0) args.validation_fraction = share.valueAsNumber / 100;
    begin.disabled = true;
    begin.textContent = "Starting …";
    say("Starting …");
    if (await trying(place, () => ask("start", args))) return again();
    begin.disabled = false;
    begin.textContent = "Start";
    return undefined;
  };
  const begin = h("button", { type: "submit", class: "primary", id: "start" }, "Start");
  return h(
    "form",
    { class: "start", onsubmit: go },
    field("Target", target),
    field("Positive class", positive, "optional"),
    recipe.element,
    field("Rows held out", share, "per cent, for the score"),
    place,
    h("div", { class: "buttons" }, begin),
  );
}

/** The classes of a target where the table's summary names all of them. */
function classValues({ values, examples, n_values: many }, kind) {
  if (values?.length) return values;
  return kind === "category" && examples?.length >= many ? examples : [];
}

/** Go on with a session that was saved. */
function openForm() {
  const place = errorPlace();
  const file = h("input", { type: "file", accept: ".json" });
  file.addEventListener("change", () =>
    trying(place, async () => {
      if (!file.files.length) return;
      await ask("open", { content: await file.files[0].text() });
      again();
    }),
  );
  return section("Or go on with a saved session", field("Session of this table", file), place);
}

/** Begin anew, with what the server has now. */
function again() {
  location.reload();
}
