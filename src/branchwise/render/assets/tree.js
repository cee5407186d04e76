// The tree as arrays, one entry a node, from the data that the page carries.
//
// All scripts of this folder are parts of one module, joined in the order that
// render/view.py states. Trees may have 100,000 nodes or levels: nothing recurses.

const STOP = -1; // a case stops at the node and gets its prediction
const EVERY_BRANCH = -2; // a case goes down every branch, by weight

const DATA = JSON.parse(document.getElementById("tree-data").textContent);
const NUMBERS = DATA.predicts === "numbers";
const WEIGHTED = Boolean(DATA.weighted); // cases do not all weigh 1
const TREE = shapeOf(DATA.n_children);
readSplits(TREE, DATA);
readLeafValues(TREE, DATA);

/** Parents, depths and sizes follow from the numbers of children alone. */
function shapeOf(numbers) {
  const count = numbers.length;
  const tree = {
    count,
    nChildren: Int32Array.from(numbers),
    firstChild: new Int32Array(count),
    parent: new Int32Array(count).fill(-1),
    depth: new Int32Array(count),
    below: new Int32Array(count), // nodes under a node
  };
  let next = 1;
  for (let node = 0; node < count; node++) {
    tree.firstChild[node] = next;
    for (let branch = 0; branch < numbers[node]; branch++, next++) {
      tree.parent[next] = node;
      tree.depth[next] = tree.depth[node] + 1;
    }
  }
  for (let node = count - 1; node > 0; node--) {
    tree.below[tree.parent[node]] += tree.below[node] + 1;
  }
  tree.maxDepth = tree.depth[count - 1];
  return tree;
}

/** The lists of splits have entries for split nodes only, in order. */
function readSplits(tree, data) {
  tree.column = new Int32Array(tree.count).fill(-1);
  tree.threshold = new Float64Array(tree.count).fill(NaN);
  tree.missingTo = new Int32Array(tree.count).fill(STOP);
  tree.unseenTo = new Int32Array(tree.count).fill(STOP);
  tree.gain = new Float64Array(tree.count);
  let at = 0;
  for (let node = 0; node < tree.count; node++) {
    if (!tree.nChildren[node]) continue;
    tree.column[node] = data.column[at];
    tree.threshold[node] = data.threshold[at] ?? NaN;
    tree.missingTo[node] = data.missing_to[at];
    tree.unseenTo[node] = data.unseen_to[at];
    tree.gain[node] = data.gain[at];
    at++;
  }
}

function readLeafValues(tree, data) {
  tree.weight = new Float64Array(tree.count);
  for (let node = 0; node < tree.count; node++) {
    tree.weight[node] = NUMBERS ? data.weight[node] : sum(classWeights(node));
  }
  tree.cases = WEIGHTED ? Float64Array.from(data.cases) : tree.weight;
  if (!NUMBERS) return;
  // One scale for all nodes, so that their means can be compared at a glance.
  tree.low = Infinity;
  tree.high = -Infinity;
  for (let node = 0; node < tree.count; node++) {
    tree.low = Math.min(tree.low, data.mean[node] - data.deviation[node]);
    tree.high = Math.max(tree.high, data.mean[node] + data.deviation[node]);
  }
}

/** The training weight of each class at a node. */
function classWeights(node) {
  if (!DATA.weights.pairs) return DATA.weights[node];
  const weights = new Array(DATA.classes.length).fill(0);
  const pairs = DATA.weights.pairs[node];
  for (let at = 0; at < pairs.length; at += 2) weights[pairs[at]] = pairs[at + 1];
  return weights;
}

/** The number of cases of each class at a node; null where only weights are known. */
function classCases(node) {
  if (!WEIGHTED) return classWeights(node);
  return DATA.class_cases ? DATA.class_cases[node] : null;
}

/** The probability of each class at a node, as the model has it. */
function classProbabilities(node) {
  if (DATA.probabilities) return DATA.probabilities[node];
  return classWeights(node).map((weight) => weight / TREE.weight[node]);
}

/** The codes of the parent's column that lead to a node; none for missing values. */
function codesOf(node) {
  const codes = DATA.codes[node];
  return typeof codes === "number" ? [codes] : codes;
}

function columnOf(node) {
  return DATA.columns[TREE.column[node]];
}

/** Entropy, Gini impurity or variance of a node. */
function impurityOf(node) {
  if (NUMBERS) return DATA.deviation[node] ** 2;
  const shares = classWeights(node).map((weight) => weight / TREE.weight[node]);
  if (DATA.impurity === "Gini impurity") return 1 - sum(shares.map((p) => p * p));
  return sum(shares.map((p) => (p > 0 ? -p * Math.log2(p) : 0)));
}

/** The number of cases that take none of a node's branches. */
function stoppedAt(node) {
  const rest = TREE.cases[node] - sum(childrenOf(node).map((c) => TREE.cases[c]));
  return rest > 1e-9 * TREE.cases[node] ? rest : 0;
}
