// Which nodes are open, and where everything that is open has its place.
//
// The tree grows along one axis ("along", by depth) and is spread over the other
// ("across", one row for everything that ends). The kind of a drawing says where: "right"
// has the names of branches beside the cards, "close" above them, which takes less of the
// width; "down" grows down; "outline", for narrow windows, has a row for every item, its
// branches below and a little to the right. An item is a node, or what stands for the
// branches of a node that are not shown: -1 - node.

// Cards are as wide as the words of their level; those of huge trees are all alike.
const CARD = { height: 62, least: 116, usual: 220, most: 340, sides: 28 };
const GAP = { across: 16, right: 42, close: 56, indent: 26, down: 26, level: 58 };
const EDGE = { line: 16, right: 150, beyond: { down: 16, close: 26, outline: 26 } }; // names of branches
const EDGE_LINES = { right: 4, down: 4, close: 2, outline: 2 };
const MEASURED = 5000; // items whose words are measured
const NARROW = 600; // windows that show an outline
const PAGE = 10; // branches shown at first, of nodes that have many more
const FULL = 14; // up to this many are all shown
const NEXT_PAGE = 100;
const FIRST_CARDS = 40; // at most so many are open at first
const FIRST_TRIALS = 60;
const FARTHEST_ROWS = 2; // between a node and its first branch, where many are open
const MANY = 60;
const THICKEST = 18; // the line of all cases
const THINNEST = 1.4;
const OUTLINE_THICKEST = 8;

const state = {
  open: new Uint8Array(TREE.count),
  shown: new Map(), // node -> how many of its branches are shown
  selected: 0, // an item
  way: new Set(), // nodes on the way of the case that is tried
  shares: new Map(), // where it arrives -> its share
  matches: [],
  matching: new Set(),
  direction: "right",
  close: false, // names of branches above the cards
  watched: null, // the class whose share all cards show
  items: null, // what layOut returns
  decorate: null, // adds the marks of a page to a card: (card, node)
};

function shownBranches(node) {
  const count = TREE.nChildren[node];
  if (count <= FULL) return count;
  return Math.min(count, state.shown.get(node) ?? PAGE);
}

function nodeOf(item) {
  return item < 0 ? -1 - item : item;
}

/** Open what can be read at a glance, with names where they leave room for more of it. */
function openFirst() {
  state.close = true;
  const close = openReadable();
  state.close = false;
  if (openReadable() >= close) return;
  state.close = true;
  openReadable();
}

/** Open level by level, large branches first, what fits; return the number of cards. */
function openReadable() {
  state.open.fill(0);
  const waiting = [0];
  let cards = 1;
  for (let trial = 0; waiting.length && trial < FIRST_TRIALS; trial++) {
    const node = waiting.shift();
    if (isLeaf(node) || (node && cards + shownBranches(node) > FIRST_CARDS)) continue;
    state.open[node] = 1;
    layOut();
    if (node && fittingScale() < READABLE) {
      state.open[node] = 0;
      continue;
    }
    cards += shownBranches(node);
    waiting.push(...childrenOf(node).slice(0, shownBranches(node)));
    waiting.sort((a, b) => TREE.depth[a] - TREE.depth[b] || TREE.weight[b] - TREE.weight[a]);
  }
  layOut();
  return cards;
}

function openToDepth(depth) {
  for (let node = 0; node < TREE.count; node++) {
    state.open[node] = TREE.depth[node] < depth && !isLeaf(node) ? 1 : 0;
  }
}

/** Open the way to a node, so that it is shown. */
function reveal(node) {
  for (let at = node; at > 0; at = TREE.parent[at]) {
    const parent = TREE.parent[at];
    state.open[parent] = 1;
    const needed = at - TREE.firstChild[parent] + 1;
    if (needed > shownBranches(parent)) state.shown.set(parent, needed);
  }
}

function isShown(node) {
  for (let at = node; at > 0; at = TREE.parent[at]) {
    const parent = TREE.parent[at];
    if (!state.open[parent]) return false;
    if (at - TREE.firstChild[parent] >= shownBranches(parent)) return false;
  }
  return true;
}

/** Open or close a node; what stands for more branches shows some of them. */
function toggle(item) {
  const node = nodeOf(item);
  if (item < 0) {
    const all = TREE.nChildren[node];
    const shown = shownBranches(node);
    state.shown.set(node, Math.min(all, shown + NEXT_PAGE));
    state.selected = TREE.firstChild[node] + shown;
  } else if (!isLeaf(node)) {
    state.open[node] = state.open[node] ? 0 : 1;
  }
}

/** All items that are open: a parent, then branch after branch. */
function openItems() {
  const ids = [];
  const parents = []; // positions in ids
  const stack = [[0, -1]];
  while (stack.length) {
    const [item, parent] = stack.pop();
    const at = ids.push(item) - 1;
    parents.push(parent);
    if (item < 0 || !state.open[item]) continue;
    const shown = shownBranches(item);
    if (shown < TREE.nChildren[item]) stack.push([-1 - item, at]);
    for (let branch = shown - 1; branch >= 0; branch--) {
      stack.push([TREE.firstChild[item] + branch, at]);
    }
  }
  return { ids, parents };
}

function depthOf(item) {
  return item < 0 ? TREE.depth[-1 - item] + 1 : TREE.depth[item];
}

/** Give every open item its place: x and y of its top left corner. */
function layOut() {
  const { ids, parents } = openItems();
  const count = ids.length;
  const across = new Float64Array(count);
  const ends = new Uint8Array(count).fill(1);
  for (const parent of parents) if (parent >= 0) ends[parent] = 0;
  const kind = kindOfDrawing();
  const down = kind === "down";
  const outline = kind === "outline";
  let row = 0;
  for (let at = 0; at < count; at++) if (ends[at] || outline) across[at] = row++;
  if (!outline) centre(parents, ends, across);
  stage.dataset.kind = kind;
  const words = measured(ids, kind);
  const along = startsOfLevels(words, kind);
  const room = down ? words.cards[0] + GAP.down : CARD.height + GAP.across + words.above;
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const places = new Map();
  for (let at = 0; at < count; at++) {
    const main = along.starts[depthOf(ids[at])];
    x[at] = down ? across[at] * room : main;
    y[at] = down ? main : across[at] * room + words.above;
    places.set(ids[at], at);
  }
  const lines = linesBetween(ids, parents);
  const { edges, cards } = words;
  const drawing = { ids, parents, x, y, places, edges, cards, kind, ...along, ...lines };
  state.items = { ...drawing, size: extent(drawing) };
}

function kindOfDrawing() {
  if (state.direction === "down") return "down";
  if (windowSize().width < NARROW) return "outline";
  return state.close ? "close" : "right";
}

function namesAbove(kind) {
  return kind === "outline" || kind === "close";
}

/** The width of a card, which all of its level have. */
function cardWidth(item) {
  return state.items.cards[depthOf(item)];
}

/** The widths of cards and the lines of branches' names, as their words need them. */
function measured(ids, kind) {
  let deepest = 0;
  for (const item of ids) deepest = Math.max(deepest, depthOf(item));
  const cards = new Float64Array(deepest + 1).fill(CARD.least);
  const few = ids.length <= MEASURED;
  if (!few) cards.fill(CARD.usual);
  const wide = (item) => Math.max(...wordsOf(item).map(([text, kind]) => widthOf(text, kind)));
  for (const item of few ? ids : []) {
    const depth = depthOf(item);
    cards[depth] = Math.min(CARD.most, Math.max(cards[depth], wide(item) + CARD.sides));
  }
  // Where the tree grows down, neighbours are of all levels.
  if (kind === "down") cards.fill(cards.reduce((a, b) => Math.max(a, b)));
  const edges = new Map();
  let nLines = 0;
  for (const item of few ? ids : []) {
    if (item > 0) edges.set(item, edgeLines(item, kind, cards[depthOf(item)]));
    nLines = Math.max(nLines, edges.get(item)?.length ?? 0);
  }
  const above = namesAbove(kind) ? EDGE.line * Math.max(nLines, 1) : 0;
  return { cards, edges, above, deepest };
}

/** The name of a branch in lines; above its card it is hardly wider than that. */
function edgeLines(node, kind, width) {
  const most = kind === "right" ? EDGE.right : width + EDGE.beyond[kind];
  return inLines(edgeOf(node), "edge", most, EDGE_LINES[kind]);
}

/** How thick each item's line is, and where it leaves the side of its parent. */
function linesBetween(ids, parents) {
  const widths = Float64Array.from(ids, thickness);
  const offsets = new Float64Array(ids.length);
  const taken = new Float64Array(ids.length);
  for (let at = 1; at < ids.length; at++) taken[parents[at]] -= widths[at] / 2;
  for (let at = 1; at < ids.length; at++) {
    offsets[at] = taken[parents[at]] + widths[at] / 2;
    taken[parents[at]] += widths[at];
  }
  return { widths, offsets };
}

function thickness(item) {
  let weight = item >= 0 ? TREE.weight[item] : 0;
  if (item < 0) {
    const node = nodeOf(item);
    const rest = childrenOf(node).slice(shownBranches(node));
    weight = sum(rest.map((child) => TREE.weight[child]));
  }
  return Math.max(THINNEST, (THICKEST * weight) / TREE.weight[0]);
}

/** Put parents in the middle of their branches, the last ones first; but in a large tree
 * never far from the first branch, so that wherever one is there is a way on. */
function centre(parents, ends, across) {
  const last = new Float64Array(parents.length).fill(NaN);
  const first = new Float64Array(parents.length);
  const farthest = parents.length > MANY ? FARTHEST_ROWS : Infinity;
  for (let at = parents.length - 1; at >= 0; at--) {
    if (!ends[at]) across[at] = first[at] + Math.min((last[at] - first[at]) / 2, farthest);
    const parent = parents[at];
    if (parent < 0) continue;
    if (Number.isNaN(last[parent])) last[parent] = across[at];
    first[parent] = across[at];
  }
}

/** Where the levels start, and the room for the names of branches before each. */
function startsOfLevels({ cards, edges, deepest }, kind) {
  const down = kind === "down";
  const spacings = new Float64Array(deepest + 1).fill(down || !edges.size ? EDGE.right : 30);
  const lines = new Float64Array(deepest + 1).fill(1);
  for (const [node, words] of edges) {
    const depth = TREE.depth[node];
    lines[depth] = Math.max(lines[depth], words.length);
    if (down) continue;
    const widest = Math.max(...words.map((line) => widthOf(line, "edge")));
    spacings[depth] = Math.max(spacings[depth], widest + 16);
  }
  const starts = new Float64Array(deepest + 1);
  for (let depth = 1; depth <= deepest; depth++) {
    const step = {
      right: cards[depth - 1] + GAP.right + spacings[depth],
      close: cards[depth - 1] + GAP.close,
      down: CARD.height + GAP.level + EDGE.line * (1 + lines[depth]),
      outline: GAP.indent,
    };
    starts[depth] = starts[depth - 1] + step[kind];
  }
  return { spacings, starts };
}

/** The size of the drawing, with what sticks out: knobs and names above cards. */
function extent({ ids, x, y, cards }) {
  let width = 0;
  let height = 0;
  for (let at = 0; at < x.length; at++) {
    width = Math.max(width, x[at] + cards[depthOf(ids[at])]);
    height = Math.max(height, y[at]);
  }
  return { width: width + 30, height: height + CARD.height + 12 };
}
