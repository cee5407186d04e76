// Selecting, opening, tools, themes, printing; and the start.

const root = document.documentElement;

/** Make an item the selected one: shown, told about and in view. */
function select(item, focus = false) {
  const node = nodeOf(item);
  if (item >= 0 && !isShown(item)) reveal(item);
  state.selected = item;
  layOut();
  bringIntoView(item);
  draw();
  if (focus) focusCard();
  tellWhere(node);
  showNode(node);
}

function focusCard() {
  drawn.cards.get(state.selected)?.focus({ preventScroll: true });
}

/** The way to the selected node in words, for all to see and hear. */
function tellWhere(node) {
  const way = wayTo(node).slice(1);
  const parts = way.map((step) => ({ step }));
  if (way.length > 8) parts.splice(3, way.length - 7, { skipped: way.length - 7 });
  const words = parts.map(({ step, skipped }) => {
    if (!skipped) return link(step, branchOf(step));
    return h("span", { class: "muted" }, `… ${grouped(skipped)} more …`);
  });
  const end = isLeaf(node) ? [bdi(predictionOf(node))] : [bdi(columnOf(node).name), "?"];
  const all = [link(0, "All cases"), ...words, h("b", {}, ...end)];
  const then = () => h("span", { class: "then" }, "›");
  byId("path").replaceChildren(...all.flatMap((part, at) => (at ? [then(), part] : [part])));
}

function openOrClose(item, focus = false) {
  if (item < 0) forget(item); // the number of branches that it stands for changes
  keepInPlace(nodeOf(item), () => {
    toggle(item);
    layOut();
  });
  select(item < 0 ? state.selected : item, focus);
}

function forget(item) {
  drawn.cards.get(item)?.remove();
  drawn.cards.delete(item);
}

function forgetAll() {
  for (const item of [...drawn.cards.keys()]) forget(item);
}

/** Draw everything anew, after something about all of it has changed. */
function redraw() {
  if (state.selected < 0 || !isShown(state.selected)) state.selected = 0;
  forgetAll();
  layOut();
  fit(false, 0.6);
  if (state.selected) bringIntoView(state.selected, false);
  draw();
  tellWhere(state.selected);
  showNode(state.selected);
}

function setDepth(depth) {
  const focused = document.activeElement?.closest(".card");
  openToDepth(depth);
  redraw();
  byId("depth").value = String(Math.min(depth, TREE.maxDepth));
  if (focused) focusCard();
}

function turn() {
  state.direction = state.direction === "right" ? "down" : "right";
  root.dataset.direction = state.direction;
  byId("turn").setAttribute("aria-pressed", String(state.direction === "down"));
  redraw();
}

function setTheme(theme) {
  root.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
}

/** Give the tree the whole window, or the panel its place again. */
function switchPanel() {
  const hidden = root.dataset.panel !== "hidden";
  root.dataset.panel = hidden ? "hidden" : "shown";
  byId("side").setAttribute("aria-pressed", String(hidden));
}

function switchTheme() {
  setTheme(root.dataset.theme === "dark" ? "light" : "dark");
}

function openTab(name, focus = false) {
  for (const [tab, panel] of [["tab-node", "about"], ["tab-case", "case"]]) {
    const chosen = panel === name;
    byId(tab).setAttribute("aria-selected", String(chosen));
    byId(tab).tabIndex = chosen ? 0 : -1;
    byId(panel).hidden = !chosen;
  }
  if (focus) byId(name).querySelector("input, select")?.focus();
}

function buildTools() {
  const actions = {
    smaller: () => zoomBy(0.8),
    larger: () => zoomBy(1.25),
    scale: () => zoomBy(1 / camera.scale),
    fit: () => fit(true),
    turn,
    side: switchPanel,
    theme: switchTheme,
    help: () => byId("keys").showModal(),
    "tab-node": () => openTab("about"),
    "tab-case": () => openTab("case"),
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = document.querySelector("[role=tab][aria-selected=false]:not([hidden])");
    other?.click();
    other?.focus();
  });
  const depth = byId("depth");
  depth.append(h("option", { value: "", hidden: true }, "–"));
  for (let level = 1; level < Math.min(TREE.maxDepth, 13); level++) {
    depth.append(h("option", { value: level }, String(level)));
  }
  depth.append(h("option", { value: TREE.maxDepth }, "all"));
  depth.value = "";
  depth.disabled = TREE.maxDepth === 0;
  depth.addEventListener("change", () => setDepth(Number(depth.value)));
}

function buildSummary() {
  const summary = [
    `${DATA.algorithm} tree`,
    counted(TREE.count, "node"),
    counted(DATA.n_leaves, "leaf", "leaves"),
    `depth ${grouped(TREE.maxDepth)}`,
    `${counted(TREE.cases[0], "case")}${WEIGHTED ? ", weighted" : ""}`,
  ];
  byId("summary").textContent = summary.join(" · ");
  if (!DATA.abridged) return;
  // Cases would stop where the levels end, so there is no trying of cases either.
  byId("tab-case").hidden = true;
  byId("banner").hidden = false;
  byId("banner").textContent =
    `Only the first levels of a tree of ${grouped(DATA.abridged.n_nodes)} nodes, ` +
    `${DATA.abridged.why}, with “Try a case”.`;
}

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

/** On paper the whole tree that is open, in light colours, as wide as the paper. */
function listenForPrinting() {
  let before = null;
  window.addEventListener("beforeprint", () => {
    before ??= { theme: root.dataset.theme, camera: { ...camera } };
    setTheme("light");
    drawn.everything = true;
    const { width, height } = state.items.size;
    const scale = Math.min(1, 1000 / (width + 2 * MARGIN));
    Object.assign(camera, { scale, x: MARGIN, y: MARGIN, base: { x: 0, y: 0 } });
    stage.style.height = `${height * scale + 4 * MARGIN}px`;
    draw();
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    setTheme(before.theme);
    drawn.everything = false;
    stage.style.height = "";
    Object.assign(camera, before.camera);
    before = null;
    draw();
  });
}

function listenForClicks() {
  const itemAt = (event) => event.target.closest(".card")?.dataset.item;
  host.addEventListener("click", (event) => {
    const item = itemAt(event);
    if (item === undefined) return;
    if (Number(item) < 0 || event.target.closest(".knob")) openOrClose(Number(item), true);
    else select(Number(item), true);
  });
  host.addEventListener("dblclick", (event) => {
    const item = itemAt(event);
    if (Number(item) >= 0 && !event.target.closest(".knob")) openOrClose(Number(item), true);
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const to = event.target.closest("[data-goto]");
    if (to) select(Number(to.dataset.goto));
  });
}

function followTheSystem() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", follow);
  follow();
}

function start() {
  followTheSystem();
  root.dataset.direction = state.direction;
  byId("app").hidden = false;
  for (const build of [buildSummary, buildLegend, buildTools]) build();
  for (const build of [buildSaving, buildHelp, buildForm]) build();
  showFirst();
  draw();
  tellWhere(0);
  showNode(0);
  for (const listen of [listenForMoves, listenForSearch, listenForPrinting, listenForClicks]) listen();
  listenForSize();
  // For tests and other scripts.
  const queries = { decide, refusal, arrivalsOf, exampleOf, find, impurityOf, shapleyOf };
  const spoken = { ruleOf, branchOf, edgeOf };
  window.branchwise = { ...queries, ...spoken, select, setDepth, state, tree: TREE };
}

start();
