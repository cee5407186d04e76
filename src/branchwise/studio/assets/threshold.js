// The threshold of a number, on the distribution of its values by class: dragged, moved by
// arrow keys, or typed.

const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

function thresholdEditor(path, candidate, spread) {
  const { column } = candidate;
  const choices = spread.thresholds;
  if (!choices.length) return [muted("All values are the same here.")];
  const ends = [spread.edges[0], spread.edges.at(-1)];
  // Dates are numbers with words of their own, which nobody types.
  const words = (value) => spread.shown?.[choices.indexOf(nearestOf(choices, value))] ?? number(value);
  const share = (value) => (100 * (value - ends[0])) / (ends[1] - ends[0] || 1);
  const preview = previewOf(path, column);
  const handle = h("div", {
    class: "handle",
    role: "slider",
    tabindex: 0,
    "aria-label": `Threshold of ${column}`,
    "aria-valuemin": choices[0],
    "aria-valuemax": choices.at(-1),
  });
  const exact = h("input", { type: "number", step: "any", "aria-label": `Exact threshold of ${column}` });
  const date = h("b", {});
  const commit = button("Split here", () => split(), { class: "primary" });
  let chosen = null;
  const choose = (value, typed = false) => {
    if (value === chosen || !Number.isFinite(value)) return;
    chosen = value;
    handle.style.left = `${Math.max(0, Math.min(100, share(value)))}%`;
    handle.setAttribute("aria-valuenow", String(value));
    handle.setAttribute("aria-valuetext", `${column} at most ${words(value)}`);
    if (!typed) exact.value = String(value);
    date.textContent = spread.shown ? words(value) : "";
    preview.show({ threshold: value });
  };
  const split = () =>
    splitBy(path, { column, threshold: chosen }, preview.place, `Split on ${column} at ${words(chosen)}.`);
  exact.addEventListener("input", () => choose(exact.valueAsNumber, true));
  exact.addEventListener("keydown", (event) => event.key === "Enter" && split());
  handle.addEventListener("keydown", (event) => {
    const next = steppedThreshold(choices, chosen, event.key);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    choose(next);
  });
  const chart = h("div", { class: "distribution" }, histogram(spread), handle);
  dragOver(chart, (part) => choose(nearestOf(choices, ends[0] + part * (ends[1] - ends[0]))));
  choose(candidate.threshold ?? choices[choices.length >> 1]);
  const scale = [spread.min, spread.max].map((end) => h("span", {}, number(Number(end.toPrecision(6)))));
  return [
    chart,
    spread.shown ? "" : h("div", { class: "ends muted", "aria-hidden": "true" }, scale),
    h("div", { class: "exact" }, spread.shown ? h("span", {}, "at most ", date) : field("at most", exact), commit),
    preview.element,
  ];
}

/** Where a key leads from a threshold; undefined for other keys. */
function steppedThreshold(choices, chosen, key) {
  if (key === "Home") return choices[0];
  if (key === "End") return choices.at(-1);
  const step = STEPS[key];
  if (!step) return undefined;
  const at = choices.indexOf(nearestOf(choices, chosen));
  return choices[Math.max(0, Math.min(choices.length - 1, at + step))];
}

function nearestOf(choices, value) {
  let best = choices[0];
  for (const choice of choices) {
    if (Math.abs(choice - value) < Math.abs(best - value)) best = choice;
  }
  return best;
}

/** Call with the share of the width where the pointer is pressed or dragged to. */
function dragOver(chart, move) {
  const to = (event) => {
    const box = chart.getBoundingClientRect();
    move(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
  };
  chart.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    event.preventDefault();
    chart.setPointerCapture(event.pointerId);
    chart.querySelector(".handle").focus();
    to(event);
  });
  chart.addEventListener("pointermove", (event) => {
    if (chart.hasPointerCapture(event.pointerId)) to(event);
  });
}

const CHART = { width: 100, height: 40 };

/** Bars of the values, stacked by class. */
function histogram({ edges, counts }) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${CHART.width} ${CHART.height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const stacks = counts.map((bin) => (Array.isArray(bin) ? bin : [bin]));
  const most = Math.max(...stacks.map(sum), 1e-9);
  const span = edges.at(-1) - edges[0] || 1;
  stacks.forEach((bin, at) => {
    const x = (CHART.width * (edges[at] - edges[0])) / span;
    const width = (CHART.width * (edges[at + 1] - edges[at])) / span || CHART.width;
    let y = CHART.height;
    bin.forEach((weight, label) => {
      const height = (CHART.height * weight) / most;
      if (!height) return;
      y -= height;
      svg.append(bar({ x, y, width: width * 0.94, height }, NUMBERS ? "var(--number)" : colourOf(label)));
    });
  });
  return svg;
}

function bar(box, colour) {
  const rect = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries(box)) rect.setAttribute(name, value.toFixed(3));
  rect.style.fill = colour;
  return rect;
}
