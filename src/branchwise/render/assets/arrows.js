// Arrow keys lead through the tree; Enter and Space open and close it.

const VIEW_KEYS = {
  "/": () => query.focus(),
  "?": () => byId("keys").showModal(),
  "+": () => zoomBy(1.25),
  "=": () => zoomBy(1.25),
  "-": () => zoomBy(0.8),
  0: () => fit(true),
  "*": () => setDepth(TREE.maxDepth),
};
// What the arrows mean where the tree grows down.
const TURNED = {
  ArrowDown: "ArrowRight",
  ArrowUp: "ArrowLeft",
  ArrowRight: "ArrowDown",
  ArrowLeft: "ArrowUp",
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

/** The help: all keys, and what the mouse does. */
function fillHelp(mouse) {
  const rows = KEYS.map(([key, words]) => tableRow(h("kbd", {}, key), h("td", {}, words)));
  const dialog = byId("keys");
  dialog.append(
    h("h2", {}, "Keys"),
    h("table", {}, h("tbody", {}, rows)),
    muted(mouse),
    button("Close", () => dialog.close()),
  );
}
