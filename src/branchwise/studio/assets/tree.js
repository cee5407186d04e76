// The tree of a session as arrays, one entry a node, which edits change.
//
// The scripts of the viewer read the same arrays and functions from its own tree.js. Nodes
// come from the server by their paths and are numbered level by level, as a model numbers
// them. An edit replaces the nodes of one subtree.

const NUMBERS = OPENED.predicts === "numbers";
const WEIGHTED = Boolean(OPENED.weighted); // cases do not all weigh 1
const DATA = {
  classes: OPENED.classes ?? [],
  colours: OPENED.colours ?? [],
  shared_colour: OPENED.shared_colour,
  columns: OPENED.columns ?? [],
  target: OPENED.target,
  unit: OPENED.unit,
  percent: OPENED.percent,
  impurity: OPENED.impurity ?? "entropy",
};
const NODES = new Map(); // path -> node as the server tells it
const POSITIONS = new Map(DATA.columns.map((column, at) => [column.name, at]));
const TREE = { count: 0 };
replaceNodes("/", OPENED.tree ?? []);

function pathBelow(path, branch) {
  return path === "/" ? `/${branch}` : `${path}/${branch}`;
}

/** Whether a node is at or below another. */
function isBelow(path, above) {
  return above === "/" || path === above || path.startsWith(`${above}/`);
}

function parentPath(path) {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** Replace the subtree at a path by other nodes, and number all anew. */
function replaceNodes(at, nodes) {
  for (const path of [...NODES.keys()]) {
    if (isBelow(path, at)) NODES.delete(path);
  }
  for (const node of nodes) NODES.set(node.path, node);
  numberNodes();
}

/** Number the nodes level by level, and read their figures into arrays. */
function numberNodes() {
  const paths = NODES.size ? ["/"] : [];
  const firstChild = new Int32Array(NODES.size);
  for (let node = 0; node < paths.length; node++) {
    firstChild[node] = paths.length;
    const { n_children: many } = NODES.get(paths[node]);
    for (let branch = 0; branch < many; branch++) paths.push(pathBelow(paths[node], branch));
  }
  const records = paths.map((path) => NODES.get(path));
  const count = records.length;
  const of = (read, Type = Float64Array) => Type.from(records, read);
  const parent = new Int32Array(count).fill(-1);
  const nChildren = of((node) => node.n_children, Int32Array);
  for (let node = 0; node < count; node++) {
    parent.fill(node, firstChild[node], firstChild[node] + nChildren[node]);
  }
  const below = new Int32Array(count); // nodes under a node
  for (let node = count - 1; node > 0; node--) below[parent[node]] += below[node] + 1;
  const depth = new Int32Array(count);
  for (let node = 1; node < count; node++) depth[node] = depth[parent[node]] + 1;
  const weight = of((node) => (NUMBERS ? node.weight ?? node.cases : sum(node.weights)));
  Object.assign(TREE, {
    count,
    records,
    paths,
    numbers: new Map(paths.map((path, node) => [path, node])),
    ...{ firstChild, nChildren, parent, below, depth, weight },
    column: of((node) => POSITIONS.get(node.column) ?? -1, Int32Array),
    cases: of((node) => node.cases),
    maxDepth: count ? depth[count - 1] : 0,
    nLeaves: nChildren.reduce((total, many) => total + (many ? 0 : 1), 0),
  });
  DATA.label = records.map((node) => node.label);
  DATA.prediction = records.map((node) => node.prediction);
  if (NUMBERS) readNumbers(records);
}

/** One scale for all nodes, so that their means can be compared at a glance. */
function readNumbers(records) {
  DATA.mean = records.map((node) => node.mean);
  DATA.deviation = records.map((node) => node.deviation ?? 0);
  TREE.low = Infinity;
  TREE.high = -Infinity;
  for (const { mean, deviation = 0 } of records) {
    TREE.low = Math.min(TREE.low, mean - deviation);
    TREE.high = Math.max(TREE.high, mean + deviation);
  }
}

function classWeights(node) {
  return TREE.records[node].weights;
}

/** The number of cases of each class at a node; null where only weights are known. */
function classCases(node) {
  return WEIGHTED ? (TREE.records[node].class_cases ?? null) : classWeights(node);
}

function columnOf(node) {
  return { name: TREE.records[node].column };
}

/** The server phrases conditions. */
function conditionOf() {
  return { op: "in words" };
}

function edgeOf(node) {
  return TREE.records[node].edge;
}

function branchOf(node) {
  return TREE.records[node].condition;
}
