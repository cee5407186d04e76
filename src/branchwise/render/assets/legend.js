// The colours of the classes, and the class that all cards show.

function buildLegend() {
  const key = (...parts) => byId("legend").append(h("span", { class: "key" }, ...parts));
  if (NUMBERS) {
    const marks = [h("i", { class: "band wide" }), h("i", { class: "mean middle" })];
    const ends = `from ${targetNumber(TREE.low, 3)} to ${targetNumber(TREE.high, 3)}`;
    const mean = WEIGHTED ? "weighted mean" : "mean";
    key(h("span", { class: "scale small" }, marks), ` ${mean} ± deviation, ${ends}`);
    return;
  }
  for (const { name, colour, label } of legendKeys()) {
    const parts = [swatch(colour), h("span", { class: "name" }, bdi(name))];
    if (label === undefined) {
      key(...parts);
      continue;
    }
    const title = "Show the share of this class on all cards";
    const props = { class: "key", "aria-pressed": "false", "data-class": label, title };
    byId("legend").append(button(parts, () => watch(label), props));
  }
  if (WEIGHTED) key("bars: shares of weight");
}

/** The names and colours of the classes; those without a colour of their own are one key. */
function legendKeys() {
  const labels = range(0, DATA.classes.length).filter(hasOwnColour);
  const keyOf = (label) => ({ name: DATA.classes[label], colour: colourOf(label), label });
  const keys = labels.map(keyOf);
  const rest = DATA.classes.length - labels.length;
  return rest ? [...keys, { name: `${grouped(rest)} others`, colour: SHARED_COLOUR }] : keys;
}

/** Let all cards show the share of one class; once more, that of their own prediction. */
function watch(label) {
  state.watched = state.watched === label ? null : label;
  for (const key of byId("legend").querySelectorAll("button")) {
    key.setAttribute("aria-pressed", String(Number(key.dataset.class) === state.watched));
  }
  forgetAll();
  keepInPlace(nodeOf(state.selected), layOut);
  draw();
}
