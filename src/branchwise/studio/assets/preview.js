// The children that a split would make, before it is made.

/** A preview that follows what is chosen: ask it to show another split. */
function previewOf(path, column) {
  const place = errorPlace();
  const body = h("div", { class: "preview", "aria-live": "polite" });
  const show = newestOnly(async (how) => {
    const found = await trying(place, () => ask("preview", { node: path, column, ...how }));
    if (found) body.replaceChildren(...previewParts(found));
  });
  return { element: h("div", {}, place, body), show, place };
}

function previewParts(candidate) {
  const rows = candidate.children.map((child) =>
    tableRow(
      [bdi(child.condition), NUMBERS ? null : weightsBar(child.weights)],
      cell(cases(child.cases)),
      wordCell(String(child.prediction)),
    ),
  );
  const figures = figuresOf({ ...candidate, threshold: undefined, children: undefined });
  return [
    table(["branch", "cases", "prediction"], rows),
    figures && h("p", { class: "figures" }, figures),
    candidate.reason && h("p", { class: "figures" }, `Not by the recipe: ${candidate.reason}.`),
  ].filter(Boolean);
}

/** Shares of the classes as a bar. */
function weightsBar(weights) {
  const whole = sum(weights) || 1;
  const parts = weights.map((weight, label) =>
    h("i", { style: { flexGrow: String(weight / whole), background: colourOf(label) } }),
  );
  return h("span", { class: "bar", "aria-hidden": "true" }, parts.filter((_, at) => weights[at]));
}
