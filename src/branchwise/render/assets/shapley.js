// Shapley values of a case: what each column contributed, as model.shap without a background.
//
// Where the tree splits on a column that is not known, the case goes down every branch by
// the weights of the training cases. The share of a case that ends at a node is a product
// with one factor for each column on the path: its own where the column is known, that of
// the training cases where it is not. The Shapley value of such a product is an integral
// over a polynomial (Owen, 1972), which Gauss-Legendre quadrature gives without error.

const MOST_TERMS = 2e7; // beyond, the page would stutter

/** Base value and contributions of columns; valueOf is what a node predicts. */
function shapleyOf(row, valueOf) {
  const values = new Float64Array(DATA.columns.length);
  let base = 0;
  const open = [{ node: 0, turn: 0, columns: [], own: [], other: [] }];
  while (open.length) {
    const here = open.pop();
    const { node, turn } = here;
    if (isLeaf(node)) {
      base += addEnding(values, here, valueOf(node));
      continue;
    }
    const branches = TREE.nChildren[node];
    const own = ownShares(node, turn, row);
    const trained = trainedShares(node);
    for (let outcome = 0; outcome < branches + 2; outcome++) {
      const next = followed(here, testedColumn(node, turn), own[outcome], trained[outcome]);
      if (!next) continue;
      if (outcome < branches) open.push({ ...next, node: TREE.firstChild[node] + outcome, turn: 0 });
      else if (outcome === branches) open.push({ ...next, turn: turn + 1 });
      else base += addEnding(values, next, valueOf(node));
    }
  }
  return { base, values };
}

/** Whether the contributions of a case are found in no time. */
function hasShapley() {
  const used = DATA.columns.filter((column) => column.used).length;
  const columns = Math.min(used, TREE.maxDepth);
  return (TREE.count * columns * columns) / 2 <= MOST_TERMS;
}

/** A test is the split of a node (turn 0), or one of its surrogates. */
function testedColumn(node, turn) {
  return turn ? DATA.surrogates[node][turn - 1].column : TREE.column[node];
}

/** Which share of a row goes which way: branches, then the next surrogate, then it stops. */
function ownShares(node, turn, row) {
  const branches = TREE.nChildren[node];
  const shares = new Array(branches + 2).fill(0);
  const surrogates = DATA.surrogates[node] ?? [];
  let branch;
  if (turn) {
    const { column, branches: met } = surrogates[turn - 1];
    branch = row[column] === null ? -1 : met.findIndex((one) => meets(row[column], one));
    if (branch < 0 && turn === surrogates.length) branch = TREE.missingTo[node];
    else if (branch < 0) branch = branches;
  } else if (surrogates.length && row[TREE.column[node]] === null) branch = branches;
  else branch = branchTaken(node, row);
  if (branch === EVERY_BRANCH) {
    divided({ node, share: 1 }).forEach((part, at) => {
      shares[at] = part.share;
    });
  } else shares[branch === STOP ? branches + 1 : branch] = 1;
  return shares;
}

/** Which share of the training weight went which way. */
function trainedShares(node) {
  const below = childrenOf(node).map((child) => TREE.weight[child]);
  const whole = sum(below);
  const stops = TREE.missingTo[node] === STOP;
  const stopped = stops ? Math.max(TREE.weight[node] - whole, 0) : 0;
  return [...below, 0, stopped].map((weight) => weight / (whole + stopped));
}

/** The way one outcome further, or null where neither kind of case can go. */
function followed({ node, turn, columns, own, other }, column, ownShare, otherShare) {
  const known = columns.indexOf(column);
  const at = known < 0 ? columns.length : known;
  const factors = [(own[at] ?? 1) * ownShare, (other[at] ?? 1) * otherShare];
  if (!factors[0] && !factors[1]) return null;
  const next = { node, turn, columns: [...columns], own: [...own], other: [...other] };
  next.columns[at] = column;
  [next.own[at], next.other[at]] = factors;
  return next;
}

/** Add what the cases that end somewhere contribute; return their share of the base value. */
function addEnding(values, { columns, own, other }, value) {
  const n = columns.length;
  for (const [point, weight] of quadrature(Math.ceil(n / 2))) {
    const factors = own.map((share, at) => other[at] + point * (share - other[at]));
    let product = value * weight;
    for (const factor of factors) product *= factor;
    for (let at = 0; at < n; at++) {
      values[columns[at]] += (own[at] - other[at]) * (product / factors[at]);
    }
  }
  return other.reduce((product, share) => product * share, value);
}

const quadratures = new Map();

/** Points and weights of Gauss-Legendre quadrature between 0 and 1. */
function quadrature(n) {
  if (!quadratures.has(n)) {
    quadratures.set(
      n,
      Array.from({ length: n }, (_, at) => legendreRoot(n, at)),
    );
  }
  return quadratures.get(n);
}

function legendreRoot(n, at) {
  let x = Math.cos((Math.PI * (at + 0.75)) / (n + 0.5));
  let slope = 0;
  for (let turn = 0; turn < 100; turn++) {
    let [before, here] = [1, x];
    for (let degree = 2; degree <= n; degree++) {
      [before, here] = [here, ((2 * degree - 1) * x * here - (degree - 1) * before) / degree];
    }
    slope = (n * (x * here - before)) / (x * x - 1);
    const step = here / slope;
    x -= step;
    if (Math.abs(step) < 1e-16) break;
  }
  return [(x + 1) / 2, 1 / ((1 - x * x) * slope * slope)];
}
