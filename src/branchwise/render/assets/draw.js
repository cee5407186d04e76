// Cards and the lines between them: only those that the window shows.

const SVG = "http://www.w3.org/2000/svg";
const MOST_CARDS = 2500;
const MOST_LINKS = 1500;
const SHARED_COLOUR = `var(--class-${DATA.shared_colour})`;
// A single class with that colour has it to itself.
const SHARED = !NUMBERS && DATA.colours.filter((c) => c === DATA.shared_colour).length > 1;

const host = byId("cards");
const links = byId("links");
const drawn = { cards: new Map(), paths: [], requested: false, everything: false };

function colourOf(label) {
  return `var(--class-${DATA.colours[label]})`;
}

/** Whether a class has a colour of its own, or that of all rare ones. */
function hasOwnColour(label) {
  return !SHARED || DATA.colours[label] !== DATA.shared_colour;
}

/** Draw soon, once for everything that has changed. */
function requestDraw() {
  if (drawn.requested) return;
  drawn.requested = true;
  requestAnimationFrame(() => {
    drawn.requested = false;
    draw();
  });
}

function draw() {
  applyCamera();
  const shown = shownPositions();
  const wanted = new Set(shown.map((at) => state.items.ids[at]));
  for (const [item, card] of drawn.cards) {
    if (wanted.has(item)) continue;
    card.remove();
    drawn.cards.delete(item);
  }
  let next = host.firstElementChild;
  for (const at of shown) {
    const item = state.items.ids[at];
    let card = drawn.cards.get(item);
    if (!card) {
      card = makeCard(item);
      drawn.cards.set(item, card);
    }
    if (card === next) next = next.nextElementSibling;
    else host.insertBefore(card, next);
    place(card, at);
    mark(card, item);
  }
  drawLinks();
}

/** Positions of the items in the window, and of the selected one. */
function shownPositions() {
  const { ids, x, y, places } = state.items;
  const part = drawn.everything
    ? { left: -1, top: -1, right: Infinity, bottom: Infinity }
    : windowInPlaces(80);
  const kept = places.get(state.selected);
  const shown = [];
  for (let at = 0; at < ids.length; at++) {
    const inside =
      x[at] > part.left && x[at] < part.right && y[at] > part.top && y[at] < part.bottom;
    if ((inside && shown.length < MOST_CARDS) || at === kept) shown.push(at);
  }
  return shown;
}

function place(card, at) {
  const { x, y, ids, spacings } = state.items;
  card.style.left = `${x[at] - camera.base.x}px`;
  card.style.top = `${y[at] - camera.base.y}px`;
  card.style.setProperty("--spacing", `${spacings[depthOf(ids[at])]}px`);
}

function mark(card, item) {
  const node = nodeOf(item);
  const selected = item === state.selected;
  const share = item >= 0 ? state.shares.get(node) : undefined;
  card.tabIndex = selected ? 0 : -1;
  card.setAttribute("aria-selected", String(selected));
  card.classList.toggle("selected", selected);
  card.classList.toggle("on-way", item >= 0 && state.way.has(node));
  card.classList.toggle("match", item >= 0 && state.matching.has(node));
  card.classList.toggle("arrived", share !== undefined);
  if (share < 1) card.dataset.share = percent(share, 1);
  else delete card.dataset.share;
  card.classList.toggle("aside", state.way.size > 0 && (item < 0 || !state.way.has(node)));
  if (item < 0 || isLeaf(node)) return;
  const open = Boolean(state.open[node]);
  if (card.getAttribute("aria-expanded") === String(open)) return;
  card.setAttribute("aria-expanded", String(open));
  const knob = card.querySelector(".knob");
  knob.textContent = open ? "−" : `+${grouped(TREE.below[node])}`;
  knob.title = open ? "Collapse" : `Show branches (${counted(TREE.below[node], "node")} below)`;
}

function makeCard(item) {
  return item < 0 ? makeMore(nodeOf(item)) : makeNode(item);
}

function makeNode(node) {
  const leaf = isLeaf(node);
  const parent = TREE.parent[node];
  const card = h("div", {
    class: `card ${leaf ? "leaf" : "split"}`,
    role: "treeitem",
    id: `node-${node}`,
    "data-item": node,
    "aria-level": TREE.depth[node] + 1,
    "aria-setsize": parent < 0 ? 1 : TREE.nChildren[parent],
    "aria-posinset": parent < 0 ? 1 : node - TREE.firstChild[parent] + 1,
    "aria-label": spoken(node),
  });
  const title = leaf ? predictionOf(node) : columnOf(node).name;
  const line = leaf ? leafLine(node) : [bdi(predictionOf(node)), ` · ${leafLine(node)}`];
  card.append(
    h("div", { class: "title", title }, bdi(title)),
    h("div", { class: "line", title: leaf ? false : predictionOf(node) }, line),
    NUMBERS ? scaleBar(node) : classBar(node),
  );
  if (!NUMBERS) card.style.setProperty("--own", colourOf(DATA.label[node]));
  if (node > 0) {
    const title = edgeOf(node, 200);
    card.append(h("div", { class: "edge", title }, bdi(edgeOf(node))));
  }
  if (!leaf) card.append(h("span", { class: "knob", "aria-hidden": "true" }));
  return card;
}

function leafLine(node) {
  const all = TREE.cases[node];
  if (NUMBERS) {
    const spread = DATA.deviation[node];
    return `${counted(all, "case")}${spread ? `, ± ${rounded(spread, 3)}` : ""}`;
  }
  const label = DATA.label[node];
  const right = classCases(node)?.[label];
  if (right === all) return counted(all, "case");
  const whole = (part, of) => `${Math.round((100 * part) / of)} %`;
  const found = `${cases(right)} of ${cases(all)}`;
  if (!WEIGHTED) return `${found}, ${whole(right, all)}`;
  const weighed = whole(classWeights(node)[label], TREE.weight[node]);
  return `${right === undefined ? counted(all, "case") : found}, ${weighed} of weight`;
}

/** A node for those who hear it. */
function spoken(node) {
  const way = node > 0 ? `${branchOf(node)}: ` : "";
  const prediction = `${predictionOf(node)}, ${supportOf(node)}`;
  if (isLeaf(node)) return `${way}prediction ${prediction}`;
  const branches = counted(TREE.nChildren[node], "branch", "branches");
  return `${way}split on ${columnOf(node).name}, ${branches}; prediction so far ${prediction}`;
}

function makeMore(node) {
  const rest = TREE.nChildren[node] - shownBranches(node);
  const words = `${grouped(rest)} more`;
  return h(
    "div",
    {
      class: "card more",
      role: "treeitem",
      "data-item": -1 - node,
      "aria-level": TREE.depth[node] + 2,
      "aria-label": `${words} branches; Enter shows the next ${NEXT_PAGE}`,
    },
    h("div", { class: "title" }, `… ${words}`),
    h("div", { class: "line" }, `show the next ${Math.min(rest, NEXT_PAGE)}`),
  );
}

/** Shares of the classes; small ones of many are put together. */
function classBar(node) {
  const whole = TREE.weight[node];
  let rest = 0;
  const parts = [];
  classWeights(node).forEach((weight, label) => {
    const share = weight / whole;
    if (!share) return;
    if (share < 0.015 || !hasOwnColour(label)) rest += share;
    else parts.push(segment(share, colourOf(label)));
  });
  if (rest) parts.push(segment(rest, SHARED_COLOUR));
  return h("div", { class: "bar", "aria-hidden": "true" }, parts);
}

function segment(share, background) {
  return h("i", { style: { flexGrow: String(share), background } });
}

/** The mean as a point on the scale of all nodes, in a band of ± deviation. */
function scaleBar(node) {
  const span = TREE.high - TREE.low || 1;
  const at = (value) => `${(100 * (value - TREE.low)) / span}%`;
  const mean = DATA.mean[node];
  const spread = DATA.deviation[node];
  return h(
    "div",
    { class: "scale", "aria-hidden": "true" },
    h("i", {
      class: "band",
      style: { left: at(mean - spread), width: `${(200 * spread) / span}%` },
    }),
    h("i", { class: "mean", style: { left: at(mean) } }),
  );
}

function drawLinks() {
  const { ids, parents, x, y, widths } = state.items;
  const part = drawn.everything
    ? { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity }
    : windowInPlaces(40);
  let used = 0;
  for (let at = 1; at < ids.length && used < MOST_LINKS; at++) {
    const parent = parents[at];
    const crosses =
      Math.max(x[parent], x[at]) > part.left &&
      Math.min(x[parent], x[at]) < part.right &&
      Math.max(y[parent], y[at]) > part.top &&
      Math.min(y[parent], y[at]) < part.bottom;
    if (!crosses) continue;
    const path = drawn.paths[used] ?? newPath();
    used++;
    path.setAttribute("d", curve(parent, at));
    path.setAttribute("stroke-width", widths[at].toFixed(2));
    path.classList.toggle("on-way", ids[at] >= 0 && state.way.has(ids[at]));
  }
  while (drawn.paths.length > used) drawn.paths.pop().remove();
}

function newPath() {
  const path = document.createElementNS(SVG, "path");
  links.append(path);
  drawn.paths.push(path);
  return path;
}

/** From the side of a card, bent at once, then straight to the branch's name. */
function curve(parent, at) {
  const { x, y, ids, spacings, offsets } = state.items;
  const { base } = camera;
  const most = CARD.height / 2 - 4;
  const spare = ids[at] < 0 ? 0 : 6; // the name hides the rest of the line
  const shift = Math.max(-most, Math.min(most, offsets[at]));
  if (state.direction === "down") {
    const x1 = x[parent] - base.x + CARD.width / 2 + shift;
    const y1 = y[parent] - base.y + CARD.height;
    const x2 = x[at] - base.x + CARD.width / 2;
    const y2 = y[at] - base.y;
    const bend = y1 + 52;
    return `M${x1} ${y1}C${x1} ${y1 + 30} ${x2} ${bend - 30} ${x2} ${bend}V${y2 - spare}`;
  }
  const x1 = x[parent] - base.x + CARD.width;
  const y1 = y[parent] - base.y + CARD.height / 2 + shift;
  const x2 = x[at] - base.x;
  const y2 = y[at] - base.y + CARD.height / 2;
  const bend = x2 - spacings[depthOf(ids[at])] - 4;
  return `M${x1} ${y1}C${x1 + 30} ${y1} ${bend - 30} ${y2} ${bend} ${y2}H${x2 - spare}`;
}
