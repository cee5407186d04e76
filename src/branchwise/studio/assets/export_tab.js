// Exports, each run on rows of the table before it is offered; the script of the session.

function showExports(panel) {
  const chosen = h("div", {});
  const made = (OPENED.exports ?? []).map((one) =>
    button(one.words ?? one.target, () => chooseExport(one, chosen), { "data-export": one.target }),
  );
  const words =
    "The tree as it is now, as a program or a file. What is written was run on rows first, and " +
    "predicts what the tree predicts.";
  panel.replaceChildren(
    h("h2", {}, "Export"),
    muted(words),
    h("div", { class: "buttons", role: "group", "aria-label": "Formats" }, made),
    chosen,
  );
}

/** Write the tree in a format at once; its options write it again. */
function chooseExport(one, chosen) {
  const result = h("div", { id: "exported", "aria-live": "polite" });
  const place = errorPlace();
  const controls = Object.entries(one.options ?? {}).map(([name, choices]) => [name, optionControl(choices)]);
  const write = newestOnly(() => {
    const given = controls.filter(([, control]) => control.value !== control.dataset.usual);
    const options = Object.fromEntries(given.map(([name, control]) => [name, control.value]));
    return makeExport(one, options, result, place);
  });
  for (const [, control] of controls) control.addEventListener("change", write);
  chosen.replaceChildren(
    h("div", { class: "fields" }, controls.map(([name, control]) => field(name, control))),
    place,
    result,
  );
  write();
}

/** The control of an option; its first choice is what it usually is. */
function optionControl(choices) {
  const usual = choices[0] ?? "";
  if (choices.length > 1) {
    return h("select", { "data-usual": usual }, options(choices.map((choice) => [choice, choice]), usual));
  }
  return h("input", { type: "text", "data-usual": usual, value: usual, autocomplete: "off" });
}

async function makeExport({ target, words }, given, result, place) {
  result.replaceChildren(muted("Writing and verifying …"));
  const found = await trying(place, () => ask("export", { target, options: given }));
  result.replaceChildren();
  if (!found) return;
  const binary = found.encoding === "base64";
  const content = binary ? bytesOf(found.content) : found.content;
  const proof = found.verified ? `Verified on ${counted(found.verified, "row")}.` : "Not verified.";
  say(`${found.name}: ${proof}`);
  result.append(
    ...[
      h("p", { class: "verified" }, h("b", {}, bdi(found.name)), " ", proof),
      h(
        "div",
        { class: "buttons" },
        button("Download", () => download(found.name, content, "application/octet-stream")),
        !binary && copyButton(() => found.content),
      ),
      !binary && textBox(found.content, words ?? target),
    ].filter(Boolean),
  );
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

const MOST_SHOWN = 20000; // characters

function textBox(text, label) {
  const shown = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}\n…` : text;
  return h("pre", { class: "text", tabindex: 0, role: "region", "aria-label": label }, shown);
}

async function showScript(panel) {
  const place = errorPlace();
  const found = await trying(place, () => ask("script"));
  const parts = [
    h("h2", {}, "Script"),
    muted("Plain Python that grows this tree again: on the same rows to the same bytes, on new rows to the same decisions."),
    place,
  ];
  if (found) {
    const text = found.content ?? found.text ?? found;
    parts.push(
      h(
        "div",
        { class: "buttons" },
        copyButton(() => text),
        button("Download", () => download("session.py", text)),
      ),
      textBox(text, "Script of the session"),
    );
  }
  panel.replaceChildren(...parts);
}
