// Edits: an action is sent, its answer replaces a subtree, and everything follows.

const FEW_NEW = 40; // new nodes that are all opened
const session = {
  history: OPENED.history ?? [],
  undo: Boolean(OPENED.undo),
  redo: Boolean(OPENED.redo),
  number: 0, // counts edits, so that late answers are known as such
  teaching: OPENED.teaching ?? { on: false },
};
const followers = []; // called after every edit

function pathOf(node) {
  return TREE.paths[node];
}

function selectedPath() {
  return pathOf(nodeOf(state.selected));
}

/** Send an action and take its answer; an error is shown in a place. */
function apply(action, place, words) {
  return trying(place, async () => {
    takeAnswer(await ask("apply", { action }), words);
    return true;
  });
}

/** Take a change of the tree: the subtree at a path is now another one. Nothing is said
 * where words are null. */
function takeAnswer(answer, words) {
  session.number += 1;
  for (const key of ["history", "undo", "redo"]) session[key] = answer[key] ?? session[key];
  const focused = document.activeElement?.id;
  if (answer.nodes) takeSubtree(answer.at, answer.nodes);
  for (const follow of followers) follow();
  restoreFocus(focused);
  if (words !== null) say(words || "Done.");
}

/** Follow a session that was changed elsewhere, as in another cell of a notebook; `number`
 * is the step of the history that it is at. */
async function follow(number) {
  if (historyEntries().some((entry) => entry.current && entry.number === number)) return;
  const now = await ask("state");
  takeAnswer({ ...now, at: "/", nodes: now.tree }, "The session was changed in Python.");
}

/** A control that was made anew has the focus again; where it is gone, the node has it. */
function restoreFocus(id) {
  if (document.activeElement !== document.body) return;
  const same = id ? byId(id) : null;
  if (same && !same.disabled) same.focus({ preventScroll: true });
  else focusCard();
}

function takeSubtree(at, nodes) {
  const open = new Set(TREE.paths.filter((_, node) => state.open[node]));
  const shown = [...state.shown].map(([node, many]) => [pathOf(node), many]);
  const selected = selectedPath();
  // Numbers of this and of higher levels do not change.
  const anchor = nearest(at);
  const place = placeOf(isShown(anchor) ? anchor : 0);
  replaceNodes(at, nodes);
  state.open = Uint8Array.from(TREE.paths, (path) => (open.has(path) ? 1 : 0));
  state.shown = new Map(
    shown.filter(([path]) => TREE.numbers.has(path)).map(([p, many]) => [TREE.numbers.get(p), many]),
  );
  state.selected = nearest(selected);
  state.way = new Set();
  state.shares = new Map();
  openNew(nodes, at);
  forgetAll();
  layOut();
  keepAt(isShown(anchor) ? anchor : 0, place);
  if (query.value) search();
  if (!isShown(state.selected)) state.selected = 0;
  const children = state.open[state.selected] ? childrenOf(state.selected) : [];
  showTogether([...children.slice(0, shownBranches(state.selected)), state.selected]);
  draw();
}

/** The node at a path, or the nearest one above that there is. */
function nearest(path) {
  let at = path;
  while (!TREE.numbers.has(at)) at = parentPath(at);
  return TREE.numbers.get(at);
}

/** Open the new branches: all of them where they are few, else the first. */
function openNew(nodes, at) {
  if (nodes.length <= FEW_NEW) {
    for (const { path } of nodes) state.open[TREE.numbers.get(path)] = 1;
  } else {
    state.open[TREE.numbers.get(at)] = 1;
  }
  for (let node = 0; node < TREE.count; node++) if (isLeaf(node)) state.open[node] = 0;
}

function keepAt(node, before) {
  const after = placeOf(node);
  camera.x += (before.x - after.x) * camera.scale;
  camera.y += (before.y - after.y) * camera.scale;
}

async function step(method, words, args = {}) {
  try {
    takeAnswer(await ask(method, args), words);
  } catch (error) {
    say(error.message);
  }
}

function undo() {
  if (session.undo) return step("undo", "Undone.");
  say("There is nothing to undo.");
  return undefined;
}

function redo() {
  if (session.redo) return step("redo", "Done again.");
  say("There is nothing to redo.");
  return undefined;
}

const LOCK = "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5";
const PEN = "m3 13 .8-3.2L10.5 3 13 5.5l-6.8 6.7z";

function icon(line) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 16 16");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", line);
  svg.append(path);
  return svg;
}

/** The marks of a card: by hand, locked, with a note. */
function decorate(card, node) {
  const { locked, note, origin } = TREE.records[node];
  card.classList.toggle("by-hand", origin === "hand");
  card.classList.toggle("locked", Boolean(locked));
  if (!locked && !note) return;
  const words = [locked ? "locked" : "", note ? `note: ${note}` : ""].filter(Boolean).join("; ");
  const marks = [locked && icon(LOCK), note && icon(PEN)].filter(Boolean);
  card.append(h("span", { class: "marks", title: words, "aria-hidden": "true" }, marks));
  card.setAttribute("aria-label", `${card.getAttribute("aria-label")}; ${words}`);
}
