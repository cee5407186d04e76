// What the model predicts for a case: the same arithmetic in the same order.
//
// A row has one cell for each column: null for a missing value, a number for numeric
// columns, else the position of the value among those of the column; -1 is a value
// that training did not have.

const UNSEEN = -1;
const TIE = 1e-9; // amounts this close are equal, and the first wins

/** The branch that a row takes at a node, or STOP or EVERY_BRANCH. */
function branchTaken(node, row) {
  const column = TREE.column[node];
  if (column < 0) return STOP;
  const cell = row[column];
  if (cell === null) return standIn(node, row) ?? TREE.missingTo[node];
  const numeric = DATA.columns[column].kind === "numeric";
  if (!numeric && cell === UNSEEN) return TREE.unseenTo[node];
  const code = numeric ? Number(cell > TREE.threshold[node]) : cell;
  for (let branch = 0; branch < TREE.nChildren[node]; branch++) {
    const codes = DATA.codes[TREE.firstChild[node] + branch];
    if (codes === code || (typeof codes !== "number" && codes.includes(code))) {
      return branch;
    }
  }
  return STOP;
}

/** The branch of the first surrogate whose column is known. */
function standIn(node, row) {
  for (const surrogate of DATA.surrogates[node] ?? []) {
    const cell = row[surrogate.column];
    if (cell === null) continue;
    const branch = surrogate.branches.findIndex((met) => meets(cell, met));
    if (branch >= 0) return branch;
  }
  return undefined;
}

function meets(cell, { op, threshold, codes }) {
  if (op === "<=") return cell <= threshold;
  if (op === ">") return cell > threshold;
  return codes.includes(cell);
}

/** Where a row arrives: nodes with shares, in the order of the nodes. */
function arrivalsOf(row) {
  const arrived = [];
  let open = [{ node: 0, share: 1 }];
  while (open.length) {
    const further = [];
    for (const part of open) {
      const branch = branchTaken(part.node, row);
      if (branch === STOP) arrived.push(part);
      else if (branch === EVERY_BRANCH) for (const piece of divided(part)) further.push(piece);
      else further.push({ node: TREE.firstChild[part.node] + branch, share: part.share });
    }
    open = further;
  }
  return arrived.sort((one, other) => one.node - other.node);
}

function divided({ node, share }) {
  const children = childrenOf(node);
  const whole = sum(children.map((child) => TREE.weight[child]));
  return children.map((child) => ({
    node: child,
    share: share * (TREE.weight[child] / whole),
  }));
}

/** Why the model would refuse a row, or null. */
function refusal(row) {
  for (const [at, column] of DATA.columns.entries()) {
    if (!column.used) continue;
    if (DATA.missing === "error" && row[at] === null) {
      return `This model takes no missing values: give “${column.name}” a value.`;
    }
    if (DATA.unseen === "error" && column.kind !== "numeric" && row[at] === UNSEEN) {
      return `This model takes no other values: choose one for “${column.name}”.`;
    }
  }
  return null;
}

/** Predict a row: { arrivals, probabilities, label } or { arrivals, number }. */
function decide(row) {
  const arrivals = arrivalsOf(row);
  if (NUMBERS) return { arrivals, number: expected(arrivals) };
  const [{ node }] = arrivals;
  if (arrivals.length === 1) {
    return { arrivals, probabilities: classProbabilities(node), label: DATA.label[node] };
  }
  const probabilities = new Array(DATA.classes.length).fill(0);
  for (const arrival of arrivals) {
    const own = classProbabilities(arrival.node);
    for (let at = 0; at < own.length; at++) probabilities[at] += own[at] * arrival.share;
  }
  const label = DATA.costs ? cheapest(probabilities, DATA.costs) : firstBest(probabilities);
  return { arrivals, probabilities, label };
}

function expected(arrivals) {
  if (arrivals.length === 1) return DATA.mean[arrivals[0].node];
  let mean = 0;
  for (const { node, share } of arrivals) mean += DATA.mean[node] * share;
  return mean;
}

/** The first of those that are nearly the best. */
function firstBest(scores) {
  let top = -Infinity;
  for (const score of scores) top = Math.max(top, score);
  const least = top - Math.abs(top) * TIE;
  return scores.findIndex((score) => score >= least);
}

/** The class of the least expected cost; a row of costs is a true class. */
function cheapest(probabilities, costs) {
  const expected = new Array(costs[0].length).fill(0);
  probabilities.forEach((probability, truth) => {
    costs[truth].forEach((cost, said) => {
      expected[said] += probability * cost;
    });
  });
  return firstBest(expected.map((amount) => -amount));
}

/** A row that leads to a node: for each column a value that its way allows. */
function exampleOf(node) {
  const row = DATA.columns.map(() => null);
  for (const condition of mergedConditions(node)) {
    const { column, op, threshold, codes } = condition;
    if (op === "in") row[column] = codes[0] ?? null;
    else if (op === "is known") row[column] = 0;
    else if (op === ">") row[column] = beyond(threshold);
    else if (op === "<=") row[column] = upTo(threshold, row[column]);
  }
  return row;
}

function beyond(threshold) {
  const next = Math.floor(threshold) + 1;
  return next > threshold ? next : threshold * (threshold > 0 ? 2 : 0.5);
}

/** A number up to a threshold, and above another if there is one. */
function upTo(threshold, wanted) {
  if (wanted === null) return Math.min(threshold, Math.floor(threshold));
  return wanted <= threshold ? wanted : threshold;
}
