// How the file of a table is read: another sheet, a decimal comma, lines above the header.

const MARKS = [[".", "point"], [",", "comma"]];
const DELIMITED = ["csv", "tsv"];

/** The form, folded away; `onRead` gets the summary of the table that is read again. */
function readingForm(summary, onRead) {
  return folded("How the file is read", (body) => {
    const place = errorPlace();
    const controls = readingControls(summary);
    const read = (event) => {
      event.preventDefault();
      return trying(place, async () => {
        const changed = controls.filter(({ first, value }) => value() !== first);
        const reading = Object.fromEntries(changed.map(({ name, given }) => [name, given()]));
        const found = await ask("reread", { reading });
        onRead(found);
        say(`${found.name} is read again: ${counted(found.n_rows, "row")}, ${counted(found.columns.length, "column")}.`);
      });
    };
    const fields = controls.map(({ words, hint, control }) => field(words, control, hint));
    const button = h("button", { type: "submit", id: "reread" }, "Read again");
    body.append(h("form", { class: "start", onsubmit: read }, fields, place, h("div", { class: "buttons" }, button)));
  });
}

/** The controls that the format of the file has, with what they hold at first. */
function readingControls({ format, sheets = [], reading }) {
  const choice = (name, words, choices, now = reading[name] ?? "") =>
    readingControl(name, words, h("select", {}, options(choices, now)));
  const text = (name, words, hint, now = reading[name] ?? "") =>
    readingControl(name, words, h("input", { type: "text", value: now, spellcheck: "false", autocomplete: "off" }), hint);
  const found = [];
  if (sheets.length > 1) found.push(choice("sheet", "Sheet", sheets.map((name) => [name, name]), sheets[0]));
  if (DELIMITED.includes(format)) {
    found.push(text("separator", "Separator of cells", "a character, tab or whitespace"));
    found.push(text("encoding", "Encoding", "such as cp1252"));
  }
  if (DELIMITED.includes(format) || format === "excel") found.push(...headerControls(reading));
  const dates = Object.values(reading.date_format ?? {});
  const missing = reading.missing.filter(Boolean).join(", ");
  found.push(
    choice("decimal", "Decimal mark", [["", "as found"], ...MARKS]),
    choice("thousands", "Mark between thousands", [["", "as found"], ...MARKS, [" ", "space"], ["'", "apostrophe"]]),
    text("date_format", "Dates are written", "such as DD/MM/YYYY", dates.length === 1 ? dates[0] : ""),
    missingControl(text("missing", "Missing values", "texts with commas between them", missing)),
  );
  return found;
}

function missingControl(control) {
  return { ...control, given: () => control.value().split(",").map((each) => each.trim()) };
}

function headerControls({ header, skip }) {
  const names = [["true", "names of columns"], ["false", "a row like the others"]];
  const first = readingControl("header", "The first line has", h("select", {}, options(names, String(header))));
  const lines = readingControl("skip", "Lines above it", h("input", { type: "number", min: 0, step: 1, value: skip }));
  return [
    { ...first, given: () => first.value() === "true" },
    { ...lines, given: () => lines.control.valueAsNumber || 0 },
  ];
}

function readingControl(name, words, control, hint = null) {
  const value = () => control.value;
  return { name, words, control, hint, value, first: value(), given: () => value() || null };
}
