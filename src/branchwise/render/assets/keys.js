// Keys: the arrows lead through the tree, others work wherever one is.

const KEYS = [
  ["← →", "to the parent, to the first branch (opens it)"],
  ["↑ ↓", "to the node before, after on the same level"],
  ["Enter, Space", "open or close the branches"],
  ["Home", "to the root"],
  ["/", "search; then Enter and Shift+Enter go through the matches, Escape ends"],
  ["+ − 0", "zoom in, zoom out, fit the tree into the window"],
  ["1 … 9, *", "open the tree to that depth, open all of it"],
  ["t", "try a case"],
  ["r", "grow to the right or down (arrow keys turn with it)"],
  ["p", "hide or show the panel"],
  ["s", "save the picture as SVG or PNG, print it"],
  ["d", "light or dark"],
  ["?", "this help"],
];
// What the arrows mean where the tree grows down.
const TURNED = {
  ArrowDown: "ArrowRight",
  ArrowUp: "ArrowLeft",
  ArrowRight: "ArrowDown",
  ArrowLeft: "ArrowUp",
};
const ANYWHERE = {
  "/": () => query.focus(),
  "?": () => byId("keys").showModal(),
  "+": () => zoomBy(1.25),
  "=": () => zoomBy(1.25),
  "-": () => zoomBy(0.8),
  0: () => fit(true),
  "*": () => setDepth(TREE.maxDepth),
  t: () => openTab("case", true),
  r: turn,
  p: switchPanel,
  s: openSaving,
  d: switchTheme,
};

/** The item before or after on the same level; null at the ends. */
function neighbour(item, step) {
  const { ids, places } = state.items;
  const depth = depthOf(item);
  for (let at = places.get(item) + step; at >= 0 && at < ids.length; at += step) {
    if (depthOf(ids[at]) === depth) return ids[at];
  }
  return null;
}

/** Where an arrow leads; undefined for other keys, null where there is nothing. */
function destination(key, item) {
  const node = nodeOf(item);
  if (key === "Home") return 0;
  if (key === "ArrowUp") return neighbour(item, -1);
  if (key === "ArrowDown") return neighbour(item, 1);
  if (key === "ArrowLeft") return item < 0 ? node : Math.max(0, TREE.parent[node]);
  if (key === "ArrowRight") return item < 0 || isLeaf(node) ? null : TREE.firstChild[node];
  return undefined;
}

function withModifier(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

/** Keys of the tree, from the start and wherever nothing else takes them. */
function onTreeKey(event) {
  const turned = state.direction === "down" ? TURNED[event.key] : undefined;
  const key = turned ?? event.key;
  const to = destination(key, state.selected);
  const acts = (key === "Enter" || key === " ") && !event.target.closest("button, summary");
  if (to === undefined && !acts) return;
  event.preventDefault();
  if (acts) openOrClose(state.selected, true);
  else if (to !== null) select(to, true);
}

/** Keys that work wherever one is, unless one is writing. */
function onKey(event) {
  if (withModifier(event) || event.target.closest("input, select, textarea, dialog")) return;
  if (!event.target.closest("#panel, #save")) onTreeKey(event);
  const digit = /^[1-9]$/.test(event.key);
  const action = digit ? () => setDepth(Number(event.key)) : ANYWHERE[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function buildHelp() {
  const rows = KEYS.map(([key, words]) => tableRow(h("kbd", {}, key), h("td", {}, words)));
  const dialog = byId("keys");
  const mouse =
    "Wheel or pinch to zoom, drag to move. A click selects a node, its round button or a " +
    "double click opens it. The wider a line, the more " +
    `${WEIGHTED ? "weight takes" : "cases take"} it.`;
  dialog.append(
    h("h2", {}, "Keys"),
    h("table", {}, h("tbody", {}, rows)),
    muted(mouse),
    button("Close", () => dialog.close()),
  );
}
