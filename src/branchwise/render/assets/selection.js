// Selecting, opening and turning; the colours of the page.

const root = document.documentElement;

/** Make an item the selected one: shown, told about and in view. */
function select(item, focus = false) {
  const node = nodeOf(item);
  if (item >= 0 && !isShown(item)) reveal(item);
  state.selected = item;
  if (!state.items.places.has(item)) layOut();
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

function switchTheme() {
  setTheme(root.dataset.theme === "dark" ? "light" : "dark");
}

function followTheSystem() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", follow);
  follow();
}

/** What clicks and keys do; a page may choose cards in a way of its own. */
function listenForClicks(choose = (item) => select(item, true)) {
  const itemAt = (event) => event.target.closest(".card")?.dataset.item;
  host.addEventListener("click", (event) => {
    const item = itemAt(event);
    if (item === undefined) return;
    if (Number(item) < 0 || event.target.closest(".knob")) openOrClose(Number(item), true);
    else choose(Number(item));
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
