// Keys: the arrows lead through the tree, others work wherever one is.

const KEYS = [
  ["← →", "to the parent, to the first branch (opens it)"],
  ["↑ ↓", "to the node before, after on the same level"],
  ["Enter, Space", "open or close the branches"],
  ["Home", "to the root"],
  ["c", "to the candidates of the node; Tab goes through them, Enter opens one"],
  ["g, Shift+G", "grow one level, grow the rest"],
  ["Delete", "prune"],
  ["l", "lock or unlock"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
  ["/", "search; then Enter and Shift+Enter go through the matches, Escape ends"],
  ["+ − 0", "zoom in, zoom out, fit the tree into the window"],
  ["*", "open all of the tree"],
  ["Escape", "back to the tree"],
  ["r", "grow to the right or down (arrow keys turn with it)"],
  ["d", "light or dark"],
  ["?", "this help"],
];
const ANYWHERE = {
  ...VIEW_KEYS,
  c: () => goToCandidates(),
  g: () => byId("grow-level").click(),
  G: () => byId("grow-all").click(),
  Delete: () => byId("prune").click(),
  l: () => byId("lock").click(),
  r: turn,
  d: switchTheme,
};

function goToCandidates() {
  openTab("node");
  const first = byId("candidates").querySelector("button, select");
  (first ?? byId("panel-node")).focus();
}

function onKey(event) {
  if (byId("app").hidden || event.target.closest("dialog")) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
    if (event.target.closest("input[type=text], input[type=search], input[type=number], textarea")) return;
    event.preventDefault();
    if (event.shiftKey) redo();
    else undo();
    return;
  }
  if (withModifier(event) || event.target.closest("input, select, textarea")) return;
  if (event.key === "Escape") return focusCard();
  if (!event.target.closest("#panel, #bar, #legend, #path")) onTreeKey(event);
  const action = ANYWHERE[event.key];
  if (!action) return undefined;
  event.preventDefault();
  return action();
}

function buildHelp() {
  const mouse =
    "Wheel or pinch to zoom, drag to move. A click selects a node, its round button or a double " +
    "click opens it. Drag the threshold of a number, and values between branches.";
  fillHelp(mouse);
}
