// Which nodes are open, and where everything that is open has its place.
//
// The tree grows along one axis ("along", by depth) and is spread over the other
// ("across", one row for everything that ends). An item is a node, or what stands for
// the branches of a node that are not shown: -1 - node.

const CARD = { width: 204, height: 62 };
const ROOM = {
  right: { across: CARD.height + 16, along: CARD.width + 60 },
  down: { across: CARD.width + 22, along: CARD.height + 88 },
};
const PAGE = 10; // branches shown at first, of nodes that have many more
const FULL = 14; // up to this many are all shown
const NEXT_PAGE = 100;
const FIRST_CARDS = 26; // about so many are open at first
const FIRST_DEPTH = 3;
const FARTHEST_ROWS = 3; // between a node and its first branch
const THICKEST = 18; // the line of all cases
const THINNEST = 1.4;

const state = {
  open: new Uint8Array(TREE.count),
  shown: new Map(), // node -> how many of its branches are shown
  selected: 0, // an item
  way: new Set(), // nodes on the way of the case that is tried
  shares: new Map(), // where it arrives -> its share
  matches: [],
  matching: new Set(),
  direction: "right",
  items: null, // what layOut returns
};

function shownBranches(node) {
  const count = TREE.nChildren[node];
  if (count <= FULL) return count;
  return Math.min(count, state.shown.get(node) ?? PAGE);
}

function nodeOf(item) {
  return item < 0 ? -1 - item : item;
}

/** Open what can be taken in at a glance. */
function openFirst() {
  let cards = 1;
  for (let node = 0; node < TREE.count; node++) {
    if (TREE.depth[node] >= FIRST_DEPTH || cards >= FIRST_CARDS) break;
    const parent = TREE.parent[node];
    if (isLeaf(node) || (parent >= 0 && !state.open[parent])) continue;
    const more = shownBranches(node);
    if (cards + more > FIRST_CARDS && node > 0) continue;
    state.open[node] = 1;
    cards += more;
  }
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
  let row = 0;
  for (let at = 0; at < count; at++) if (ends[at]) across[at] = row++;
  centre(parents, ends, across);
  const along = startsOfLevels(ids);
  const room = ROOM[state.direction].across;
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const down = state.direction === "down";
  const places = new Map();
  for (let at = 0; at < count; at++) {
    const main = along.starts[depthOf(ids[at])];
    x[at] = down ? across[at] * room : main;
    y[at] = down ? main : across[at] * room;
    places.set(ids[at], at);
  }
  const lines = linesBetween(ids, parents);
  state.items = { ids, parents, x, y, places, spacings: along.spacings, size: extent(x, y), ...lines };
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

/** Put parents in the middle of their branches, the last ones first; but never far
 * from the first branch, so that wherever one is in a large tree there is a way on. */
function centre(parents, ends, across) {
  const last = new Float64Array(parents.length).fill(NaN);
  const first = new Float64Array(parents.length);
  for (let at = parents.length - 1; at >= 0; at--) {
    if (!ends[at]) across[at] = first[at] + Math.min((last[at] - first[at]) / 2, FARTHEST_ROWS);
    const parent = parents[at];
    if (parent < 0) continue;
    if (Number.isNaN(last[parent])) last[parent] = across[at];
    first[parent] = across[at];
  }
}

/** Where the levels start; those with longer names of branches have more room. */
function startsOfLevels(ids) {
  let deepest = 0;
  for (const item of ids) deepest = Math.max(deepest, depthOf(item));
  const letters = new Int32Array(deepest + 1);
  for (const item of ids) {
    if (item <= 0) continue;
    const depth = TREE.depth[item];
    if (letters[depth] < 24) letters[depth] = Math.max(letters[depth], edgeOf(item).length);
  }
  const spacings = new Float64Array(deepest + 1);
  const starts = new Float64Array(deepest + 1);
  for (let depth = 1; depth <= deepest; depth++) {
    spacings[depth] = Math.min(180, Math.max(40, 24 + 7.6 * letters[depth]));
    const label = state.direction === "right" ? spacings[depth] : 0;
    starts[depth] = starts[depth - 1] + ROOM[state.direction].along + label;
  }
  return { spacings, starts };
}

function extent(x, y) {
  let width = 0;
  let height = 0;
  for (let at = 0; at < x.length; at++) {
    width = Math.max(width, x[at]);
    height = Math.max(height, y[at]);
  }
  // The knobs of closed nodes stick out.
  return { width: width + CARD.width + 30, height: height + CARD.height + 12 };
}
