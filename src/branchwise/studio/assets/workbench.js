// The start: the screen that there is something for, with its tools.

function buildTools() {
  const actions = {
    undo,
    redo,
    smaller: () => zoomBy(0.8),
    larger: () => zoomBy(1.25),
    scale: () => zoomBy(1 / camera.scale),
    fit: () => fit(true),
    turn,
    theme: switchTheme,
    help: () => byId("keys").showModal(),
    live: () => openTab("score"),
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  byId("depth").addEventListener("change", () => setDepth(Number(byId("depth").value)));
}

/** What the bar says: the tree in a line, and what can be undone. */
function showBar() {
  byId("summary").textContent = [
    `${OPENED.algorithm ?? "Decision"} tree`,
    counted(TREE.count, "node"),
    counted(TREE.nLeaves, "leaf", "leaves"),
    `depth ${grouped(TREE.maxDepth)}`,
    counted(TREE.cases[0], "case"),
  ].join(" · ");
  byId("undo").disabled = !session.undo;
  byId("redo").disabled = !session.redo;
  const depth = byId("depth");
  const levels = range(1, Math.min(TREE.maxDepth, 12)).map((level) => [String(level), String(level)]);
  depth.replaceChildren(h("option", { value: "", hidden: true }, "–"), ...options(levels), h("option", { value: TREE.maxDepth }, "all"));
  depth.value = "";
  depth.disabled = TREE.maxDepth === 0;
}

function showMisfits() {
  const misfits = OPENED.misfits ?? [];
  if (!misfits.length) return;
  byId("banner").hidden = false;
  const lines = misfits.map((line) => h("li", {}, bdi(line)));
  byId("banner").append("What no longer fits this table:", h("ul", {}, lines));
}

/** A card that is clicked is what the panel is about. */
function selectCard(item) {
  if (shownTab.name !== "node") openTab("node");
  select(item, true);
}

function showSessionScreen() {
  shownScreen("app");
  state.decorate = decorate;
  const title = OPENED.title ?? [OPENED.table?.name, DATA.target].filter(Boolean).join(": ");
  byId("title").textContent = title;
  document.title = `${title} · branchwise studio`;
  for (const build of [buildTools, buildHelp, buildLegend, buildTabs, showBar, showMisfits]) build();
  showFirst();
  draw();
  tellWhere(0);
  showNode(0);
  for (const listen of [listenForMoves, listenForSearch, listenForSize]) listen();
  listenForClicks(selectCard);
  followers.push(() => offered.clear(), showBar, refreshNode, refreshTab, followWithScore);
  followWithScore();
}

followTheSystem();
root.dataset.direction = state.direction;
if (TREE.count) showSessionScreen();
else {
  shownScreen("setup");
  showSetup(OPENED.table ?? null);
}
// For tests and other scripts.
window.branchwise = {
  ...{ state, tree: TREE, session, select, find },
  apply: async (action) => takeAnswer(await ask("apply", { action })),
};
