// Tools, tabs, printing, clicks; and the start.

/** Give the tree the whole window, or the panel its place again. */
function switchPanel() {
  const hidden = root.dataset.panel !== "hidden";
  root.dataset.panel = hidden ? "hidden" : "shown";
  byId("side").setAttribute("aria-pressed", String(hidden));
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
  for (const listen of [listenForMoves, listenForSearch, listenForPrinting]) listen();
  listenForClicks();
  listenForSize();
  // For tests and other scripts.
  const queries = { decide, refusal, arrivalsOf, exampleOf, find, impurityOf, shapleyOf };
  const spoken = { ruleOf, branchOf, edgeOf };
  window.branchwise = { ...queries, ...spoken, select, setDepth, state, tree: TREE };
}

start();
