// Keys that work wherever one is, and the help that lists them all.

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
const ANYWHERE = {
  ...VIEW_KEYS,
  t: () => openTab("case", true),
  r: turn,
  p: switchPanel,
  s: openSaving,
  d: switchTheme,
};

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
  const mouse =
    "Wheel or pinch to zoom, drag to move. A click selects a node, its round button or a " +
    "double click opens it. The wider a line, the more " +
    `${WEIGHTED ? "weight takes" : "cases take"} it.`;
  fillHelp(mouse);
}
