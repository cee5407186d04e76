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
  const { x, y, ids } = state.items;
  card.style.left = `${x[at] - camera.base.x}px`;
  card.style.top = `${y[at] - camera.base.y}px`;
  card.style.width = `${cardWidth(ids[at])}px`;
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
  const title = titleOf(node);
  const line = lineOf(node);
  card.append(
    h("div", { class: "title", title }, nameOnCard(title)),
    h("div", { class: "line", title: line }, nameOnCard(line)),
    NUMBERS ? scaleBar(node) : classBar(node),
  );
  const tint = tintOf(node);
  card.style.setProperty("--own", tint.colour);
  card.style.setProperty("--tint", `${tint.share}%`);
  if (node > 0) card.append(edge(node));
  if (!leaf) card.append(h("span", { class: "knob", "aria-hidden": "true" }));
  state.decorate?.(card, node);
  return card;
}

function edge(node) {
  const { edges, kind } = state.items;
  const lines = edges.get(node) ?? edgeLines(node, kind, cardWidth(node));
  const words = lines.map((line) => h("span", {}, nameOnCard(line)));
  return h("div", { class: "edge", title: edgeOf(node, 200) }, words);
}

/** The words of a card and how they are set: [text, kind], for the room that they need. */
function wordsOf(item) {
  if (item >= 0) return [[`${titleOf(item)}?`, "title"], [lineOf(item), "line"]];
  const [title, line] = moreWords(nodeOf(item));
  return [[title, "title"], [line, "line"]];
}

function titleOf(node) {
  return isLeaf(node) ? predictionOf(node) : columnOf(node).name;
}

/** What a card says below its title, the share first: "76 % <=50K · 32,561". */
function lineOf(node) {
  const all = TREE.cases[node];
  if (NUMBERS) {
    const spread = DATA.deviation[node] ? `± ${targetNumber(DATA.deviation[node], 3)}` : "";
    const mean = isLeaf(node) ? "" : DATA.prediction[node];
    const said = [mean, spread].filter(Boolean).join(" ");
    return [said, counted(all, "case")].filter(Boolean).join(" · ");
  }
  const label = state.watched ?? DATA.label[node];
  const name = isLeaf(node) && state.watched === null ? "" : ` ${DATA.classes[label]}`;
  if (!WEIGHTED) {
    const share = wholePercent(classWeights(node)[label] / TREE.weight[node]);
    return name ? `${share}${name} · ${cases(all)}` : `${share} of ${counted(all, "case")}`;
  }
  const share = wholePercent(classWeights(node)[label] / TREE.weight[node]);
  const right = classCases(node)?.[label];
  const of = right === undefined ? "" : `${cases(right)} of `;
  return `${share} of weight${name} · ${of}${counted(all, "case")}`;
}

/** The colour of a node and how much of it a leaf has as its ground. */
function tintOf(node) {
  if (!NUMBERS) return { colour: colourOf(DATA.label[node]), share: 11 };
  const place = (DATA.mean[node] - TREE.low) / (TREE.high - TREE.low || 1);
  return { colour: "var(--number)", share: Math.round(4 + 30 * place) };
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
  const [title, line] = moreWords(node);
  return h(
    "div",
    {
      class: "card more",
      role: "treeitem",
      "data-item": -1 - node,
      "aria-level": TREE.depth[node] + 2,
      "aria-label": `${title.slice(2)} branches; Enter shows the next ${NEXT_PAGE}`,
    },
    h("div", { class: "title" }, title),
    h("div", { class: "line" }, line),
  );
}

function moreWords(node) {
  const rest = TREE.nChildren[node] - shownBranches(node);
  return [`… ${grouped(rest)} more`, `show the next ${Math.min(rest, NEXT_PAGE)}`];
}

/** Shares of the classes with their colours; small ones of many are put together. */
function barShares(node) {
  const whole = TREE.weight[node];
  let rest = 0;
  const parts = [];
  classWeights(node).forEach((weight, label) => {
    const share = weight / whole;
    if (!share) return;
    if (share < 0.015 || !hasOwnColour(label)) rest += share;
    else parts.push({ share, colour: colourOf(label) });
  });
  if (rest) parts.push({ share: rest, colour: SHARED_COLOUR });
  return parts;
}

function classBar(node) {
  const parts = barShares(node).map(({ share, colour }) =>
    h("i", { style: { flexGrow: String(share), background: colour } }),
  );
  return h("div", { class: "bar", "aria-hidden": "true" }, parts);
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
  const { ids, parents, x, y } = state.items;
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
    path.setAttribute("d", curve(parent, at, camera.base));
    path.setAttribute("stroke-width", lineWidth(at).toFixed(2));
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
function curve(parent, at, base) {
  const { x, y, ids, spacings, offsets, kind } = state.items;
  const most = CARD.height / 2 - 4;
  const spare = ids[at] < 0 || kind === "close" ? 0 : 6; // the name hides the rest of the line
  const shift = Math.max(-most, Math.min(most, offsets[at]));
  if (state.direction === "down") {
    const x1 = x[parent] - base.x + cardWidth(ids[parent]) / 2 + shift;
    const y1 = y[parent] - base.y + CARD.height;
    const x2 = x[at] - base.x + cardWidth(ids[at]) / 2;
    const y2 = y[at] - base.y;
    const bend = y1 + 52;
    return `M${x1} ${y1}C${x1} ${y1 + 30} ${x2} ${bend - 30} ${x2} ${bend}V${y2 - spare}`;
  }
  if (kind === "outline") {
    return elbow(x[parent] - base.x, y[parent] - base.y, x[at] - base.x, y[at] - base.y);
  }
  const x1 = x[parent] - base.x + cardWidth(ids[parent]);
  const y1 = y[parent] - base.y + CARD.height / 2 + shift;
  const x2 = x[at] - base.x;
  const y2 = y[at] - base.y + CARD.height / 2;
  const bend = kind === "close" ? x2 : x2 - spacings[depthOf(ids[at])] - 2;
  return `M${x1} ${y1}C${x1 + 26} ${y1} ${bend - 26} ${y2} ${bend} ${y2}H${x2 - spare}`;
}

/** In an outline: from below a card down, and to the side of the branch. */
function elbow(parentX, parentY, x, y) {
  const left = parentX + GAP.indent / 2;
  const side = y + CARD.height / 2;
  return `M${left} ${parentY + CARD.height}V${side - 9}Q${left} ${side} ${left + 9} ${side}H${x}`;
}

function lineWidth(at) {
  const { widths, kind } = state.items;
  if (kind !== "outline") return widths[at];
  return Math.max(THINNEST, (widths[at] * OUTLINE_THICKEST) / THICKEST);
}
